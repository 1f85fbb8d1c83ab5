"""Replaces the secrets in texts and in structures with masks."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ralph.masking.credentials import secrets_of
from ralph.masking.finder import Finder, Span, mark, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Fields that tell events apart; their values are never secrets.
_STRUCTURE = frozenset({"type", "tag", "kind"})
_OFF = frozenset({"0", "false", "no", "off"})


class Masker:
    """Knows the secrets of one run. With `on=False` it changes nothing."""

    def __init__(
        self, secrets: Mapping[str, str] | None = None, patterns: Iterable[str] = (), *, on: bool = True
    ) -> None:
        self.on = on
        self.secrets = dict(secrets or {}) if on else {}
        self.patterns = tuple(patterns)
        self.finder: Finder[str] = Finder(self.secrets, self.patterns, str)

    def text(self, text: str) -> str:
        """Masks a text, including the larger part of a secret at its end: callers may have cut the text short."""
        if not self.on or not text:
            return text
        spans = self.finder.spans(text)
        cut = self.finder.most_of_one(text)
        return replaced(text, merged([*spans, cut]) if cut else spans)

    def value(self, value: Any) -> Any:
        """Masks all strings in a JSON value, including the names of fields."""
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
    """The text with a mask in place of each span."""
    if not spans:
        return text
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], mark(span.label)]
        at = span.end
    return "".join([*parts, text[at:]])


def for_environment(environ: Mapping[str, str] | None = None) -> Masker:
    """A masker for code that has no settings: it uses the environment alone."""
    environ = os.environ if environ is None else environ
    if environ.get("RALPH_MASK", "").strip().lower() in _OFF:
        return Masker(on=False)
    more = [name for name in re.split(r"[,\s]+", environ.get("RALPH_MASK_ENV", "")) if name]
    return Masker(secrets_of(environ, more))
