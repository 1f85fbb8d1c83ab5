"""Private keys that come line by line: all that stands between the two marks is one secret."""

from __future__ import annotations

import re

from ralph.masking.finder import Span
from ralph.masking.formats import PEM_BEGIN, PEM_END

_BEGIN = re.compile(PEM_BEGIN)
_END = re.compile(PEM_END)
#: base64, or a header of an encrypted key, or nothing
_LINE = re.compile(r"[ \t>|]*(?:[A-Za-z0-9+/=\\]+|[A-Z][A-Za-z]+-[A-Z][a-z]+: ?[\w,. -]+)?[ \t\r]*")


def block_spans(text: str, *, within: bool) -> tuple[list[Span], bool]:
    """What of a text belongs to a key, if the text begins `within` one or one begins in it; and whether it ends
    within one."""
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
    """How far the key goes, and whether it may go on after the text."""
    while True:
        stop = text.find("\n", at)
        line_end = len(text) if stop < 0 else stop
        end = _END.search(text, at, line_end)
        if end is not None:
            return end.end(), False
        if _LINE.fullmatch(text, at, line_end) is None:
            return at, False  # these are no lines of a key: what follows is as it was
        if stop < 0:
            return len(text), True
        at = stop + 1
