"""What is said instead of secrets, in texts and in structures."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ralph.masking.finder import Finder, Span, mark, merged
from ralph.masking.known import secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Names that programs tell events apart by; no secret can be hidden there.
_STRUCTURE = frozenset({"type", "tag", "kind"})
_OFF = frozenset({"0", "false", "no", "off"})


class Masker:
    """Knows the secrets of one run. With `on=False` it lets everything through."""

    def __init__(
        self, secrets: Mapping[str, str] | None = None, patterns: Iterable[str] = (), *, on: bool = True
    ) -> None:
        self.on = on
        self.secrets = dict(secrets or {}) if on else {}
        self.patterns = tuple(patterns)
        self.finder: Finder[str] = Finder(self.secrets, self.patterns, str)

    def text(self, text: str) -> str:
        """Also the larger part of a value at its end: texts are cut short before they come here."""
        if not self.on or not text:
            return text
        spans = self.finder.spans(text)
        cut = self.finder.most_of_one(text)
        return replaced(text, merged([*spans, cut]) if cut else spans)

    def value(self, value: Any) -> Any:
        """Whatever JSON can hold, with all its texts masked, names of fields as well."""
        if not self.on:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {
                    (self.text(k) if isinstance(k, str) else k): (v if k in _STRUCTURE else self.value(v))
                    for k, v in value.items()
                }
            case list():
                return [self.value(v) for v in value]
            case tuple():
                return tuple(self.value(v) for v in value)
            case _:
                return value


def replaced(text: str, spans: list[Span]) -> str:
    """The text with a mark in the place of each span."""
    if not spans:
        return text
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], mark(span.label)]
        at = span.end
    return "".join([*parts, text[at:]])


def for_environment(environ: Mapping[str, str] | None = None) -> Masker:
    """Where no settings were read: what the environment alone says."""
    environ = os.environ if environ is None else environ
    if environ.get("RALPH_MASK", "").strip().lower() in _OFF:
        return Masker(on=False)
    more = [name for name in re.split(r"[,\s]+", environ.get("RALPH_MASK_ENV", "")) if name]
    return Masker(secrets_of(environ, more))
