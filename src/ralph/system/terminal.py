"""Makes text and JSON from any source safe to print on a terminal."""

from __future__ import annotations

import re
from functools import cache

#: A longer line is cut on the screen; the journal has it whole.
MAX_SHOWN = 4000
_UNSAFE = r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
#: The same in UTF-8, as far as JSON allows it unescaped: DEL, C1, and characters that change the direction of text.
_UNSAFE_JSON = rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"


def safe(text: str) -> str:
    """The text with control characters replaced by visible symbols, cut if it is very long."""
    if len(text) > MAX_SHOWN:
        text = f"{text[:MAX_SHOWN]} … ({len(text):,} characters; the journal has all of them)"
    if text.isprintable():
        return text
    return _unsafe().sub(_visible, text.replace("\t", "    "))


def escaped_json(data: bytes) -> bytes:
    """The same JSON with everything escaped that could control a terminal."""
    return _unsafe_json().sub(lambda found: b"\\u%04x" % ord(found.group().decode()), data)


# Compiled at the first use, to keep the start fast.


@cache
def _unsafe() -> re.Pattern[str]:
    return re.compile(_UNSAFE)


@cache
def _unsafe_json() -> re.Pattern[bytes]:
    return re.compile(_UNSAFE_JSON)


def _visible(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"
