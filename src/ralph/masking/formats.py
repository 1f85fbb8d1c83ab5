"""Keys that are known by their form, whoever they belong to."""

from __future__ import annotations

import re

import msgspec

# In front of a key stands nothing that could be part of it, or an escaped line break, or the end of a colour.
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=[0-9;]m))"
_W = "[A-Za-z0-9_-]"
_AN = "[A-Za-z0-9]"


class Format(msgspec.Struct, frozen=True):
    """One form. `begun` is what the beginning of such a key looks like, as far as the text goes."""

    name: str
    whole: str
    begun: str
    #: whether it ends only where the text does or something else follows
    open_ended: bool = True


def _begun(literal: str, body: str) -> str:
    """The literal, or any beginning of it, or the literal and some of the body."""
    pattern = f"{re.escape(literal[-1])}{body}*"
    for character in reversed(literal[:-1]):
        pattern = f"{re.escape(character)}(?:{pattern})?"
    return _START + pattern


#: Numbers in what follows keep out names and words: `sk-loading-indicator`, `Bearer YOUR_API_KEY`.
FORMATS: tuple[Format, ...] = (
    Format(
        "key",
        rf"{_START}sk-(?:(?=[a-z]+-)(?={_W}*[0-9])(?:ant|proj|svcacct|admin|or|lf)-{_W}{{20,400}}"
        rf"|(?={_AN}*[0-9]){_AN}{{20,200}})",
        rf"{_START}s(?:k(?:-(?:{_AN}*|(?:ant|proj|svcacct|admin|or|lf)-{_W}*))?)?",
    ),
    Format("key", rf"{_START}gh[pousr]_{_AN}{{36,255}}", _START + rf"g(?:h(?:[pousr](?:_{_AN}*)?)?)?"),
    Format("key", rf"{_START}github_pat_[A-Za-z0-9_]{{40,255}}", _begun("github_pat_", "[A-Za-z0-9_]")),
    Format("key", rf"{_START}glpat-(?={_W}*[0-9]){_W}{{20,200}}", _begun("glpat-", _W)),
    Format("key", rf"{_START}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?!{_AN})", _START + r"A(?:[KS](?:I(?:A[A-Z0-9]*)?)?)?", False),
    Format(
        "key", rf"{_START}xox[abeoprs]-(?={_W}*[0-9]){_W}{{16,300}}", _START + rf"x(?:o(?:x(?:[a-z](?:-{_W}*)?)?)?)?"
    ),
    Format("key", rf"{_START}AIza{_W}{{35}}(?!{_W})", _begun("AIza", _W), False),
    Format(
        "key",
        rf"{_START}eyJ{_W}{{8,4000}}\.eyJ{_W}{{8,8000}}\.{_W}{{8,2000}}",
        _begun("eyJ", "[A-Za-z0-9_.-]"),
    ),
)

#: Only what follows the word is the secret.
BEARER = r"(?<=\bBearer )(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{20,4000}=*"
BEARER_BEGUN = r"\bB(?:e(?:a(?:r(?:e(?:r(?: [A-Za-z0-9._~+/=-]*)?)?)?)?)?)?"

PEM_BEGIN = r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY-----"
PEM_END = r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY-----"
#: Base64, line breaks (escaped ones as well), and the headers that an encrypted key has.
PEM_BODY = r"[A-Za-z0-9+/=\s\\:,.()-]"
PEM_LONGEST = 32 << 10
PEM = rf"{PEM_BEGIN}{PEM_BODY}{{0,{PEM_LONGEST}}}?{PEM_END}"

# What must be there for any of these, in the form in which Python's `re` finds it fastest: one literal character
# that is rare, and a look back from it.
_HINTS = (
    re.compile(rb"-(?<=[a-z]-)(?:(?<=[^A-Za-z0-9_-]sk-)|(?<=[ntrm]sk-)|(?<=glpat-)|(?<=xox[a-z]-))"),
    re.compile(rb"_(?<=[pousrt]_)(?:(?<=gh[pousr]_)|(?<=github_pat_))"),
    re.compile(rb"J(?<=eyJ)"),
    re.compile(rb"A(?:KIA|SIA|Iza)"),
    re.compile(rb"Bearer"),
    re.compile(rb"KEY-----"),
)
_SEARCHES = [hint.search for hint in _HINTS]
_PEM_BEGUN = b"-----BEGIN"


def hinted(data: bytes, *, pieces: bool = False) -> bool:
    """Whether a look at all is worth while. Costs a few nanoseconds a byte."""
    for search in _SEARCHES:
        if search(data) is not None:
            return True
    return pieces and _PEM_BEGUN in data
