"""Finds secrets in text or bytes, including one that is only begun at the end."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, AnyStr, Generic

import msgspec

from ralph.masking import formats
from ralph.masking.credentials import SHORTEST
from ralph.masking.views import View, view_of_bytes, view_of_text
from ralph.system import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

#: How far back to look for the start of a key. PEM blocks are longer.
_TAIL = 4096
_CODE = re.compile(r"\\u([0-9a-f]{4})")


class Span(msgspec.Struct, frozen=True):
    """One secret: where it starts and ends, and the label of its mask."""

    start: int
    end: int
    label: str
    #: whether the next characters could belong to it
    open_ended: bool = False


def mark(label: str) -> str:
    return f"[masked:{label}]"


def _readable(value: str) -> list[str]:
    """A value that is not UTF-8, as the screen and the journal show it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        from ralph.transcripts.events import replace_surrogates  # late: few values need it

        return [replace_surrogates(value)]
    return []


def forms(value: str) -> list[str]:
    """The forms in which a secret may be printed: as it is, or escaped as JSON, once or twice.

    Bytes that are not UTF-8 are surrogates in a variable, and U+FFFD in text that was read from an agent.
    """
    plain = [value, *_readable(value)]
    once = [form for text in plain for form in _escaped(text)]
    return list(dict.fromkeys([*plain, *once, *(more for form in once for more in _escaped(form))]))


def _escaped(text: str) -> list[str]:
    import json  # most environments hold no secret

    plain = [json.dumps(text, ensure_ascii=only)[1:-1] for only in (True, False)]
    plain.append(_CODE.sub(lambda found: "\\u" + found[1].upper(), plain[0]))
    return [*plain, *(form.replace("/", "\\/") for form in plain)]


class _Pattern(Generic[AnyStr]):
    """One format of secrets. It is compiled for the first text that could contain one, to keep the start fast."""

    def __init__(self, source: AnyStr, needs: tuple[AnyStr, ...], label: str, open_ended: bool) -> None:
        self._source: AnyStr = source
        self._needs: tuple[AnyStr, ...] = needs
        self._label = label
        self._open_ended = open_ended

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self._source)

    def spans(self, data: AnyStr) -> list[Span]:
        if self._needs and not any(need in data for need in self._needs):
            return []
        found = self._compiled.finditer(data)
        return [Span(m.start(), m.end(), self._label, self._open_ended) for m in found if m.end() > m.start()]


class _OwnPattern(Generic[AnyStr]):
    """A pattern from the settings. It may come from a repository, so it is matched in linear time."""

    def __init__(self, source: AnyStr) -> None:
        self._source: AnyStr = source

    def spans(self, data: AnyStr) -> list[Span]:
        return [Span(start, end, "pattern") for start, end in patterns.spans(self._source, data) if end > start]


class Finder(Generic[AnyStr]):
    """Finds secrets in text or in bytes; `to` converts a string to the type that is searched."""

    def __init__(self, secrets: Mapping[str, str], own: Iterable[str], to: Callable[[str], AnyStr]) -> None:
        self._labels: dict[AnyStr, str] = {to(form): name for value, name in secrets.items() for form in forms(value)}
        self._forms: list[AnyStr] = sorted(self._labels, key=len, reverse=True)
        joined = to("|").join(map(re.escape, self._forms))
        self._values: re.Pattern[AnyStr] | None = re.compile(joined) if self._forms else None
        known = [
            *((f.whole, f.needs, f.name, f.open_ended) for f in formats.FORMATS),
            (formats.BEARER, ("Bearer ",), "key", True),
            (formats.PEM, ("-----BEGIN ",), "key", False),
        ]
        self._patterns: list[_Pattern[AnyStr] | _OwnPattern[AnyStr]] = [
            _Pattern(to(whole), tuple(map(to, needs)), label, open_ended) for whole, needs, label, open_ended in known
        ]
        self._patterns += [_OwnPattern(to(pattern)) for pattern in own]
        self._to: Callable[[str], AnyStr] = to
        self._view: Callable[[AnyStr], View[AnyStr] | None] = view_of_text if to is str else view_of_bytes  # type: ignore[assignment]
        self._beginning: AnyStr = to("-----BEGIN ")

    # Only streams need the next three.

    @cached_property
    def _begun(self) -> re.Pattern[AnyStr]:
        begun = "|".join([*(f.begun for f in formats.FORMATS), formats.BEARER_BEGUN])
        return re.compile(self._to(rf"(?:{begun})\Z"))

    @cached_property
    def _pem_begun(self) -> re.Pattern[AnyStr]:
        return re.compile(self._to(rf"{formats.PEM_BEGIN}{formats.PEM_BODY}*\Z"))

    @cached_property
    def _dashes(self) -> re.Pattern[AnyStr]:
        return re.compile(self._to(r"-----BEGIN[A-Z0-9 ]{0,40}-{0,5}\Z|-{1,5}(?:B(?:E(?:G(?:I)?)?)?)?\Z"))

    def spans(self, data: AnyStr) -> list[Span]:
        """All secrets, in order and without overlaps, also those that control characters or escapes interrupt."""
        found = self._plain_spans(data)
        if (view := self._view(data)) is not None:
            seen = self._plain_spans(view.data)
            found += [msgspec.structs.replace(s, start=view.start(s.start), end=view.end(s.end)) for s in seen]
        return merged(found)

    def _plain_spans(self, data: AnyStr) -> list[Span]:
        found: list[Span] = []
        if self._values is not None and any(form in data for form in self._forms):
            found += [Span(m.start(), m.end(), self._labels[m.group()]) for m in self._values.finditer(data)]
        for pattern in self._patterns:
            found += pattern.spans(data)
        return found

    def unfinished(self, data: AnyStr, least: int = 1) -> int:
        """Where an incomplete secret may start at the end of `data`; `len(data)` if there is none.

        A start of fewer than `least` characters does not count.
        """
        start = min(self._begun_value(data, least), self._begun_format(data, least))
        if (view := self._view(data)) is not None:
            seen = min(self._begun_value(view.data, least), self._begun_format(view.data, least))
            start = min(start, view.start(seen) if seen < len(view.data) else len(data))
        return start

    def unfinished_block(self, data: AnyStr) -> int:
        """Where a private key starts whose end is missing; `len(data)` if there is none."""
        where = data.rfind(self._beginning, max(0, len(data) - formats.PEM_LONGEST))
        return where if where >= 0 and self._pem_begun.match(data, where) else len(data)

    def most_of_one(self, data: AnyStr) -> Span | None:
        """The larger part of a known secret at the end of `data`."""
        plain = self._plain_most(data)
        if plain is not None or (view := self._view(data)) is None:
            return plain
        seen = self._plain_most(view.data)
        return None if seen is None else msgspec.structs.replace(seen, start=view.start(seen.start), end=len(data))

    def _plain_most(self, data: AnyStr) -> Span | None:
        for form in self._forms:
            length = _overlap(data, form, max(SHORTEST, len(form) // 2))
            if length:
                return Span(len(data) - length, len(data), self._labels[form])
        return None

    def _begun_value(self, data: AnyStr, least: int) -> int:
        return len(data) - max((_overlap(data, form, least) for form in self._forms), default=0)

    def _begun_format(self, data: AnyStr, least: int) -> int:
        size = len(data)
        found = (pattern.search(data, max(0, size - _TAIL)) for pattern in (self._begun, self._dashes))
        start = min((m.start() for m in found if m is not None), default=size)
        return start if size - start >= least else size


def _overlap(data: AnyStr, form: AnyStr, least: int) -> int:
    """The length of the longest proper prefix of `form` that `data` ends with; 0 if it is less than `least`."""
    length = min(len(form) - 1, len(data))
    while length >= least:
        # Try only prefixes with the right last character: some secrets have thousands of characters.
        length = form.rfind(data[-1:], least - 1, length) + 1
        if length and data.endswith(form[:length]):
            return length
        length -= 1
    return 0


def merged(spans: list[Span]) -> list[Span]:
    """Merges overlapping spans. A label that names a variable takes precedence."""
    result: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        last = result[-1] if result else None
        if last is None or span.start >= last.end:
            result.append(span)
            continue
        label = span.label if last.label in ("key", "pattern") else last.label
        result[-1] = Span(
            last.start, max(last.end, span.end), label, (span if span.end > last.end else last).open_ended
        )
    return result
