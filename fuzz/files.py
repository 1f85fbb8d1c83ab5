"""Files that people write: an invalid one gives a UsageError that names it, a valid one always means the same."""

from __future__ import annotations

import math
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fuzz.checks import require
from ralph.agents import specfile
from ralph.config import layers
from ralph.config.durations import format_duration, parse_duration, write_duration
from ralph.dialects import modules
from ralph.dialects.detect import Dialect, Found
from ralph.dialects.driver import ralphrc
from ralph.errors import UsageError

if TYPE_CHECKING:
    from ralph.config.layers import Resolved


def work_in(folder: str) -> None:
    """Sets the folder to work in. The parent process removes it."""
    _given.append(folder)


@cache
def _folder() -> Path:
    """A folder with an empty project and an empty home."""
    if not _given:
        _BUILD.mkdir(parents=True, exist_ok=True)
        _kept.append(tempfile.TemporaryDirectory(prefix="work-", dir=_BUILD))
        _given.append(_kept[0].name)
    path = Path(_given[-1])
    (path / "home").mkdir()
    (path / "project" / ".ralphex").mkdir(parents=True)
    return path


#: Inside the checkout, so that a killed process leaves nothing elsewhere.
_BUILD = Path(__file__).parent.parent / ".build" / "fuzz"
_given: list[str] = []
#: Removed when the process ends.
_kept: list[tempfile.TemporaryDirectory[str]] = []


def isolated() -> Path:
    """The project's folder. The user's own settings are removed from the environment."""
    home = str(_folder() / "home")
    if os.environ.get("HOME") != home:
        os.environ["HOME"] = home
        for name in [n for n in os.environ if n.startswith(("RALPH", "XDG_"))]:
            del os.environ[name]
    return _folder() / "project"


def durations(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        require(str(error).startswith("expected "), "an invalid duration has our own error message", text, error)
        return
    require(math.isfinite(seconds) and seconds >= 0, "a duration is a time", text, seconds)
    require(bool(format_duration(seconds)), "a duration can be shown", text)
    again = parse_duration(write_duration(seconds))
    require(
        math.isclose(again, seconds, rel_tol=1e-5, abs_tol=1e-9),
        "it can be written and read",
        text,
        seconds,
        again,
    )


def config(data: bytes) -> None:
    workdir = isolated()
    path = workdir / "ralph.yml"
    path.write_bytes(data)
    _twice(lambda: layers.resolve(workdir, {}, config_file=path, environ={}), "ralph.yml")


def agent_file(data: bytes) -> None:
    path = isolated() / "agent.toml"
    path.write_bytes(data)
    first, second = specfile.read(path), specfile.read(path)
    require(first == second, "a file means the same each time", first, second)
    require((first.spec is None) == bool(first.problems), "a file is read, or its problems are reported", first)
    if first.problems:
        require(str(path) in first.complaint(), "a complaint names the file", first)


def rc_file(data: bytes) -> None:
    workdir = isolated()
    path = workdir / ".ralphrc"
    path.write_bytes(data)
    text = data.decode("utf-8", "surrogateescape")
    file = ralphrc.read(text, {})
    lines = text.count("\n") + 1
    for line in (*(a.line for a in file.values.values()), *(n for n, _ in (*file.problems, *file.remarks))):
        require(1 <= line <= lines, "a reported line number exists", line, lines)
    _twice(lambda: _by_dialect(Dialect.DRIVER, path), ".ralphrc")
    path.unlink()


def ini_file(data: bytes) -> None:
    path = isolated() / ".ralphex" / "config"
    path.write_bytes(data)
    _twice(lambda: _by_dialect(Dialect.PROVIDER, path), ".ralphex/config")
    path.unlink()


def _by_dialect(dialect: Dialect, path: Path) -> Resolved:
    workdir = isolated()
    layer = modules.module(dialect).layer(Found(dialect, path, "it is there"), workdir, {})
    return layers.resolve(workdir, {}, environ={}, dialect=layer)


def _twice(read: _Reading, shown: str) -> None:
    results = []
    for _ in range(2):
        try:
            resolved = read()
        except UsageError as error:
            require(shown in str(error), "a complaint names the file", error)
            results.append(str(error))
            continue
        for name, value in msgspec.structs.asdict(resolved.settings).items():
            if isinstance(value, float):
                require(math.isfinite(value) and value >= 0, f"{name} is a possible number", value)
        for warning in resolved.warnings:
            require(isinstance(warning, str), "a warning is a text", warning)
        results.append(repr((resolved.settings, resolved.origins, resolved.warnings)))
    require(results[0] == results[1], "a file means the same each time", results)


if TYPE_CHECKING:
    from collections.abc import Callable

    _Reading = Callable[[], Resolved]
