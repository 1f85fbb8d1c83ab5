"""Private keys that arrive line by line: everything between the BEGIN and END lines is one secret."""

from __future__ import annotations

import re

from ralph.masking.finder import Span
from ralph.masking.formats import PEM_BEGIN, PEM_END

_BEGIN = re.compile(PEM_BEGIN)
_END = re.compile(PEM_END)
#: base64, a header of an encrypted key, or an empty line
_LINE = re.compile(r"[ \t>|]*(?:[A-Za-z0-9+/=\\]+|[A-Z][A-Za-z]+-[A-Z][a-z]+: ?[\w,. -]+)?[ \t\r]*")


def block_spans(text: str, *, within: bool) -> tuple[list[Span], bool]:
    """The parts of a text that belong to a private key, and whether the text ends inside one.

    `within` says whether the text starts inside one.
    """
    spans: list[Span] = []
    at = 0
    while True:
        if within:
            end, within = _inside(text, at)
            if end > at:
                spans.append(Span(spans.pop().start if spans and spans[-1].end == at else at, end, "key"))
            if within or end >= len(text):
                return spans, within
            at = end
        begin = _BEGIN.search(text, at)
        if begin is None:
            return spans, False
        spans.append(Span(begin.start(), begin.end(), "key"))
        at, within = begin.end(), True


def _inside(text: str, at: int) -> tuple[int, bool]:
    """Where the key ends, and whether it may continue after the text."""
    while True:
        stop = text.find("\n", at)
        line_end = len(text) if stop < 0 else stop
        end = _END.search(text, at, line_end)
        if end is not None:
            return end.end(), False
        if _LINE.fullmatch(text, at, line_end) is None:
            return at, False  # not a line of a key, so the key has ended
        if stop < 0:
            return len(text), True
        at = stop + 1
