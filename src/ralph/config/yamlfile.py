"""Reads ralph.yml into keys and values with line numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.errors import UsageError
from ralph.system import files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ruamel.yaml.error import MarkedYAMLError

NAMES = ("ralph.yml", "ralph.yaml")
_MAX_VALUES = 100_000
#: In bytes. The parser takes seconds for that much, and nobody writes so many settings.
_MAX_SIZE = 256 << 10


class Entry(msgspec.Struct, frozen=True):
    """The value of a key, and its line (from 1)."""

    value: Any
    line: int


class YamlFile(msgspec.Struct, frozen=True):
    path: Path
    #: dotted keys, three levels deep: `max_iterations`, `cli`, `cli.backend`, `adapters.claude.timeout`
    entries: dict[str, Entry]


def find_upward(start: Path) -> Path | None:
    """The nearest ralph.yml in this directory or above, up to the top of the repository.

    It may be no regular file, and somebody else's: `load` and the caller check that.
    """
    top = files.repository_top(start)
    return next((path for path in _upward(start) if top is None or path.parent.is_relative_to(top)), None)


def above_repository(start: Path) -> Path | None:
    """The nearest ralph.yml above the repository, which is not part of it."""
    top = files.repository_top(start)
    return None if top is None else next(_upward(top.parent), None)


def _upward(start: Path) -> Iterator[Path]:
    for folder in (start, *start.parents):
        yield from (folder / name for name in NAMES if os.path.lexists(folder / name))


def load(path: Path, shown: str, *, named: bool = False) -> YamlFile:
    """Reads a file. If it is broken, a UsageError says where. `shown` is its name in messages.

    A file that the user `named` may be a pipe.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    text = _text(path, shown, named=named)
    try:
        data = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UsageError(f"{shown}{where}: this is not valid YAML: {_in_words(error)}") from None
    except (YAMLError, ValueError, RecursionError, AttributeError, TypeError, LookupError, AssertionError) as error:
        # ruamel raises the last four for a tag that does not fit its value, such as `!!set` or `!!int x`.
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(f"{shown}: this is not valid YAML: {reason}") from None
    if data is None:
        return YamlFile(path, {})
    if not isinstance(data, CommentedMap):
        raise UsageError(f"{shown}:1: expected keys with values, such as 'max_iterations: 20'")
    entries: dict[str, Entry] = {}
    try:
        _flatten(data, "", 3, entries, _Budget(_MAX_VALUES))
    except (_TooMuchError, RecursionError):
        raise UsageError(f"{shown}: this file has too many values (do its aliases refer to each other?)") from None
    return YamlFile(path, entries)


def _text(path: Path, shown: str, *, named: bool) -> str:
    try:
        data = files.read_any(path, _MAX_SIZE) if named else files.read(path, _MAX_SIZE)
    except FileNotFoundError:
        raise UsageError(f"{shown}: there is no such file") from None
    except IsADirectoryError:
        raise UsageError(f"{shown}: this is a directory, not a file") from None
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{shown}:{line}: this is not UTF-8 text (byte 0x{data[error.start]:02x})") from None


def _in_words(error: MarkedYAMLError) -> str:
    problem = str(error.problem or error.context)
    if "'\\t'" in problem:
        return "there is a tab; indent with spaces"
    if "another document" in problem:
        return "a second document ('---') begins here; a file can have only one"
    return problem


class _TooMuchError(Exception):
    """The file has more values than a person would write."""


class _Budget:
    """Limits the number of values: with aliases, a few lines can expand to billions."""

    def __init__(self, left: int) -> None:
        self._left = left

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooMuchError


def _flatten(data: Any, prefix: str, depth: int, entries: dict[str, Entry], budget: _Budget) -> None:
    from ruamel.yaml.comments import CommentedMap

    for key, value in data.items():
        try:
            line = data.lc.key(key)[0] + 1
        except (KeyError, TypeError):  # a merged key (<<) has no line of its own
            line = (data.lc.line or 0) + 1
        entries[f"{prefix}{key}"] = Entry(_plain(value, budget), line)
        if depth > 1 and isinstance(value, CommentedMap):
            _flatten(value, f"{prefix}{key}.", depth - 1, entries, budget)


def _plain(value: Any, budget: _Budget | None = None) -> Any:
    """A value in plain Python types instead of ruamel's own."""
    budget = budget or _Budget(_MAX_VALUES)
    budget.spend()
    if isinstance(value, dict):
        return {str(k): _plain(v, budget) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v, budget) for v in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    # "\\ud83d\\ude00" is a surrogate pair as in JSON; a lone half of a pair is replaced.
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
