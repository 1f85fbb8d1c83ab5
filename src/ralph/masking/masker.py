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
#: Fields whose values other code compares or looks up. The user's own patterns are for texts and do not apply to them.
_NAMES = frozenset({"agent", "class", "end", "id", "names", "outcome", "session_id", "signal", "state", "status"})
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
        self._known: Finder[str] = Finder(self.secrets, (), str) if self.patterns else self.finder

    def text(self, text: str) -> str:
        """Masks a text, including the larger part of a secret at its end: callers may have cut the text short."""
        if not self.on or not text:
            return text
        spans = self.finder.spans(text)
        cut = self.finder.most_of_one(text)
        return replaced(text, merged([*spans, cut]) if cut else spans)

    def name(self, text: str) -> str:
        """Masks a name that other code relies on: only secrets, not what the user's patterns match."""
        return replaced(text, self._known.spans(text)) if self.on and text else text

    def value(self, value: Any, field: str = "", *, keys: bool = True) -> Any:
        """Masks all strings in a JSON value and, with `keys`, secrets in the names of its fields."""
        if not self.on:
            return value
        match value:
            case str():
                return self.name(value) if field in _NAMES else self.text(value)
            case dict():
                return {
                    (self.name(k) if keys and isinstance(k, str) else k): (
                        v if k in _STRUCTURE else self.value(v, k, keys=keys)
                    )
                    for k, v in value.items()
                }
            case list():
                return [self.value(v, field, keys=keys) for v in value]
            case tuple():
                return tuple(self.value(v, field, keys=keys) for v in value)
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
