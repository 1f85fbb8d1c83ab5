"""Keys that can be recognised by their format."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

# A key is not preceded by a character that could be part of it, except in an escaped line break or a colour code.
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=[0-9;]m))"
_W = "[A-Za-z0-9_-]"
_AN = "[A-Za-z0-9]"


class Format(msgspec.Struct, frozen=True):
    """One format. `begun` matches a text that ends before such a key is complete."""

    name: str
    whole: str
    begun: str
    #: every such key contains one of these
    needs: tuple[str, ...]
    #: whether it can be of any length, so that it ends only where another character follows
    open_ended: bool = True


def _begun(literal: str, body: str) -> str:
    """A pattern for any prefix of the literal, or the literal and a part of the body."""
    pattern = f"{re.escape(literal[-1])}{body}*"
    for character in reversed(literal[:-1]):
        pattern = f"{re.escape(character)}(?:{pattern})?"
    return _START + pattern


#: Many require a digit, which excludes names and words: `sk-loading-indicator`, `Bearer YOUR_API_KEY`.
FORMATS: tuple[Format, ...] = (
    Format(
        "key",
        rf"{_START}sk-(?:(?=[a-z]+-)(?={_W}*[0-9])(?:ant|proj|svcacct|admin|or|lf)-{_W}{{20,400}}"
        rf"|(?={_AN}*[0-9]){_AN}{{20,200}})",
        rf"{_START}s(?:k(?:-(?:{_AN}*|(?:ant|proj|svcacct|admin|or|lf)-{_W}*))?)?",
        ("sk-",),
    ),
    Format(
        "key",
        rf"{_START}gh[pousr]_{_AN}{{36,255}}",
        _START + rf"g(?:h(?:[pousr](?:_{_AN}*)?)?)?",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    ),
    Format(
        "key",
        rf"{_START}github_pat_[A-Za-z0-9_]{{40,255}}",
        _begun("github_pat_", "[A-Za-z0-9_]"),
        ("github_pat_",),
    ),
    Format("key", rf"{_START}glpat-(?={_W}*[0-9]){_W}{{20,200}}", _begun("glpat-", _W), ("glpat-",)),
    Format(
        "key",
        rf"{_START}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?!{_AN})",
        _START + r"A(?:[KS](?:I(?:A[A-Z0-9]*)?)?)?",
        ("AKIA", "ASIA"),
        open_ended=False,
    ),
    Format(
        "key",
        rf"{_START}xox[abeoprs]-(?={_W}*[0-9]){_W}{{16,300}}",
        _START + rf"x(?:o(?:x(?:[a-z](?:-{_W}*)?)?)?)?",
        ("xox",),
    ),
    Format("key", rf"{_START}AIza{_W}{{35}}(?!{_W})", _begun("AIza", _W), ("AIza",), open_ended=False),
    Format(
        "key",
        rf"{_START}eyJ{_W}{{8,4000}}\.eyJ{_W}{{8,8000}}\.{_W}{{8,2000}}",
        _begun("eyJ", "[A-Za-z0-9_.-]"),
        ("eyJ",),
    ),
)

#: The secret is what follows the word.
BEARER = r"(?<=\bBearer )(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{20,4000}=*"
BEARER_BEGUN = r"\bB(?:e(?:a(?:r(?:e(?:r(?: [A-Za-z0-9._~+/=-]*)?)?)?)?)?)?"

PEM_BEGIN = r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY-----"
PEM_END = r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY-----"
#: Base64, line breaks (also escaped), and the headers of an encrypted key.
PEM_BODY = r"[A-Za-z0-9+/=\s\\:,.()-]"
PEM_LONGEST = 32 << 10
PEM = rf"{PEM_BEGIN}{PEM_BODY}{{0,{PEM_LONGEST}}}?{PEM_END}"

# What a text must contain for any of these, in the form that Python's `re` finds fastest: a literal, rare character,
# and what surrounds it.
_DASH = (
    rb"-(?:(?<=[a-z]-)(?:(?<=[^A-Za-z0-9_-]sk-)|(?<=[ntrm]sk-)|(?<=glpat-)|(?<=xox[a-z]-))"
    rb"|----(?:(?<=KEY-----)%b))"
)
_HINTS = (
    rb"_(?<=[hu][pousrb]_)(?:(?<=gh[pousr]_)|(?<=github_)pat_)",
    rb"J(?<=eyJ)",
    rb"A(?:KIA|SIA|Iza)",
    rb"Bearer",
)
#: How a piece may end the first line of a private key that began in an earlier one: with some of the dashes alone,
#: before a line break (which JSON escapes) or the end of the piece, or with more.
_PEM_BEGIN_ENDS = (rb'"--{0,4} *(?:\\|")', rb"Y-----")


def hinted(data: bytes, *, pieces: bool = False) -> bool:
    """Whether data may contain a key at all. Takes a nanosecond or two per byte.

    With `pieces`, the first line of a private key may be split anywhere.
    """
    # `in` is many times faster than any pattern at finding out that something is missing.
    return any(literal in data and search(data) is not None for literal, search in _searches(pieces))


@cache
def _searches(pieces: bool) -> list[tuple[bytes, Callable[[bytes], re.Match[bytes] | None]]]:
    """Patterns, each with literal characters that it starts with."""
    patterns = [(pattern[:1], pattern) for pattern in (_DASH % (b"|BEGIN" if pieces else b""), *_HINTS)]
    if pieces:
        patterns += [(pattern[:2], pattern) for pattern in _PEM_BEGIN_ENDS]
    return [(literal, re.compile(pattern).search) for literal, pattern in patterns]
