"""The patterns of a `.gitignore`, as git reads them.

They come from a repository that someone else may control, so matching takes at most the product of the lengths of
pattern and name; regular expressions could take forever.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

#: One position of a glob: a byte, a set of bytes, or None for `*`.
_Token: TypeAlias = int | frozenset[int] | None
_Glob: TypeAlias = tuple[_Token, ...]

_SLASH = ord("/")
_ANY = frozenset(range(256)) - {_SLASH}
_CLASSES = {
    b"alnum": b"0-9A-Za-z",
    b"alpha": b"A-Za-z",
    b"blank": b" \t",
    b"cntrl": b"\x00-\x1f\x7f",
    b"digit": b"0-9",
    b"graph": b"!-~",
    b"lower": b"a-z",
    b"print": b" -~",
    b"punct": b"!-/:-@[-`{-~",
    b"space": b"\t-\r ",
    b"upper": b"A-Z",
    b"xdigit": b"0-9A-Fa-f",
}


class _Pattern(msgspec.Struct, frozen=True):
    number: int
    ignores: bool
    folders_only: bool
    #: for a pattern with a slash: a glob for each part of the path; None for `**`
    parts: tuple[_Glob | None, ...]
    #: whether it matches the last part of a path only
    by_name: bool

    def matches(self, path: bytes, name: bytes) -> bool:
        if self.by_name:
            glob = self.parts[0]
            return glob is not None and _matches(glob, name)
        return _matches_path(self.parts, path.split(b"/"))


class Patterns:
    """The patterns of one file. Most are plain names or endings, which a dictionary or `endswith` finds."""

    def __init__(self, text: bytes) -> None:
        self._names: dict[bytes, list[_Pattern]] = {}
        self._endings: dict[bytes, list[_Pattern]] = {}
        self._others: list[_Pattern] = []
        for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n")):
            self._add(number, _trimmed(line.removesuffix(b"\r")))
        self._suffixes = tuple(self._endings)

    def decide(self, path: bytes, name: bytes, *, is_folder: bool) -> bool | None:
        """Whether the last pattern that matches ignores this path, relative to the file's folder. None: none does."""
        ends = name.endswith(self._suffixes)
        if not ends and name not in self._names and not self._others:
            return None  # as for most files
        found = [*self._names.get(name, ())]
        if ends:
            found += [p for ending, patterns in self._endings.items() if name.endswith(ending) for p in patterns]
        found += [p for p in self._others if p.matches(path, name)]
        found = [p for p in found if is_folder or not p.folders_only]
        return max(found, key=lambda p: p.number).ignores if found else None

    def _add(self, number: int, line: bytes) -> None:
        if not line or line.startswith(b"#"):
            return
        ignores = not line.startswith(b"!")
        text = line if ignores else line[1:]
        folders_only = text.endswith(b"/")
        text = text.removesuffix(b"/")
        by_name = b"/" not in text
        text = text.removeprefix(b"/")
        parts: list[_Glob | None] = []
        for part in text.split(b"/"):
            glob = None if part == b"**" and not by_name else _compile(part)
            if glob == ():
                return  # a bracket that is not closed, or an empty part: git never matches it
            if glob is not None or not parts or parts[-1] is not None:  # `**/**` is `**`
                parts.append(glob)
        pattern = _Pattern(number, ignores, folders_only, tuple(parts), by_name)
        only = parts[0]
        if not by_name or only is None:
            self._others.append(pattern)
        elif all(isinstance(token, int) for token in only):
            self._names.setdefault(_literal(only), []).append(pattern)
        elif only[0] is None and len(only) > 1 and all(isinstance(token, int) for token in only[1:]):
            self._endings.setdefault(_literal(only[1:]), []).append(pattern)
        else:
            self._others.append(pattern)


def _literal(glob: _Glob) -> bytes:
    return bytes(token for token in glob if isinstance(token, int))


def _trimmed(line: bytes) -> bytes:
    """Without the spaces at its end that no backslash protects."""
    end = len(line.rstrip(b" "))
    backslashes = len(line[:end]) - len(line[:end].rstrip(b"\\"))
    return line[: end + 1] if backslashes % 2 and end < len(line) else line[:end]


def _compile(text: bytes) -> _Glob:
    """The glob of one part of a path; empty if it can never match."""
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        char = text[at : at + 1]
        at += 1
        match char:
            case b"*":
                if not tokens or tokens[-1] is not None:
                    tokens.append(None)
            case b"?":
                tokens.append(_ANY)
            case b"[":
                allowed, at = _bracket(text, at)
                if not allowed:
                    return ()
                tokens.append(allowed)
            case b"\\":
                if at == len(text):
                    return ()
                tokens.append(text[at])
                at += 1
            case _:
                tokens.append(char[0])
    return tuple(tokens)


def _bracket(text: bytes, at: int) -> tuple[frozenset[int], int]:
    """The bytes that a bracket allows, and where it ends; an empty set if it is not closed."""
    inverted = text[at : at + 1] in (b"!", b"^")
    at += inverted
    found: set[int] = set()
    first = True
    while at < len(text) and (first or text[at] != ord("]")):
        first = False
        if text[at : at + 2] == b"[:" and (end := text.find(b":]", at)) > 0:
            found |= _range_set(_CLASSES.get(text[at + 2 : end], b""))
            at = end + 2
            continue
        low, at = _char(text, at)
        high = low
        if text[at : at + 1] == b"-" and text[at + 1 : at + 2] not in (b"]", b""):
            high, at = _char(text, at + 1)
        found |= set(range(low, high + 1))
    if at >= len(text):
        return frozenset(), at
    return (_ANY - found if inverted else frozenset(found) & _ANY), at + 1


def _char(text: bytes, at: int) -> tuple[int, int]:
    if text[at] == ord("\\") and at + 1 < len(text):
        at += 1
    return text[at], at + 1


def _range_set(text: bytes) -> set[int]:
    found: set[int] = set()
    at = 0
    while at < len(text):
        if text[at + 1 : at + 2] == b"-":
            found |= set(range(text[at], text[at + 2] + 1))
            at += 3
        else:
            found.add(text[at])
            at += 1
    return found


def _matches(glob: _Glob, name: bytes) -> bool:
    """If a byte does not fit, only the last `*` can take one more: an earlier one could not make a difference."""
    at = token = 0
    star, resume = -1, 0
    while at < len(name):
        wanted = glob[token] if token < len(glob) else -1
        if wanted is None:
            star, resume = token, at
            token += 1
        elif wanted == name[at] or (isinstance(wanted, frozenset) and name[at] in wanted):
            at += 1
            token += 1
        elif star >= 0:
            resume += 1
            at, token = resume, star + 1
        else:
            return False
    return all(rest is None for rest in glob[token:])


def _matches_path(parts: tuple[_Glob | None, ...], path: list[bytes]) -> bool:
    """Whether the parts of a pattern match a path. `**` stands for any number of folders, and at the end for at least
    one entry."""
    if parts[-1] is None:
        if len(path) < 2 and len(parts) > 1:
            return False
        return len(parts) == 1 or any(_matches_path(parts[:-1], path[:end]) for end in range(1, len(path)))
    at = part = 0
    star, resume = -1, 0
    while at < len(path):
        wanted = parts[part] if part < len(parts) else ()
        if wanted is None:
            star, resume = part, at
            part += 1
        elif wanted and _matches(wanted, path[at]):
            at += 1
            part += 1
        elif star >= 0:
            resume += 1
            at, part = resume, star + 1
        else:
            return False
    return part == len(parts)
