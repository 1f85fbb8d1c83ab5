"""ralph.yml as data with line numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("ralph.yml", "ralph.yaml")


class Entry(msgspec.Struct, frozen=True):
    """One key with its value, and the line it stands on (from 1)."""

    value: Any
    line: int


class YamlFile(msgspec.Struct, frozen=True):
    path: Path
    #: dotted keys, two levels deep: `max_iterations`, `cli`, `cli.backend`
    entries: dict[str, Entry]


def find_upward(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        for name in NAMES:
            if (folder / name).is_file():
                return folder / name
    return None


def load(path: Path) -> YamlFile:
    """Reads a file; a broken one is a UsageError that says where."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    try:
        data = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UsageError(f"{path}{where}: this is not valid YAML: {error.problem or error.context}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: this is not valid YAML: {str(error).splitlines()[0]}") from None
    if data is None:
        return YamlFile(path, {})
    if not isinstance(data, CommentedMap):
        raise UsageError(f"{path}:1: expected keys with values, like 'max_iterations: 20'")
    entries: dict[str, Entry] = {}
    for key, value in data.items():
        entries[str(key)] = Entry(_plain(value), data.lc.key(key)[0] + 1)
        if isinstance(value, CommentedMap):
            for inner, inner_value in value.items():
                entries[f"{key}.{inner}"] = Entry(_plain(inner_value), value.lc.key(inner)[0] + 1)
    return YamlFile(path, entries)


def _plain(value: Any) -> Any:
    """Without ruamel's own types."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return str(value)
