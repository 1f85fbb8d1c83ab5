"""Agents that record how they were started, for tests."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

DONE = "LOOP_COMPLETE"

#: Prints its version for --version. Otherwise records how it was called, and reports completion.
_FAKE = """#!/bin/bash
case " $* " in
  *" --version "*) echo "{version}"; exit {answer} ;;
  *" --help "*) exit 0 ;;
esac
printf '%s\\0' "$@" > "{seen}/{name}.argv"
[ -t 0 ] || cat > "{seen}/{name}.stdin"
pwd > "{seen}/{name}.pwd"
{body}
"""


class Tools:
    """Fake CLIs in a PATH of their own, and the arguments and input that each one got."""

    def __init__(self, folder: Path, seen: Path) -> None:
        self.folder, self.seen = folder, seen
        self.env = {"PATH": f"{folder}:/usr/bin:/bin"}

    def add(self, name: str, body: str = f"echo {DONE}", version: str = "9.9.9", answer: int = 0) -> Path:
        path = self.folder / name
        path.write_text(_FAKE.format(name=name, seen=self.seen, body=body, version=version, answer=answer))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def used(self) -> set[str]:
        return {path.stem for path in self.seen.glob("*.argv")}

    def argv(self, name: str) -> list[str]:
        return (self.seen / f"{name}.argv").read_text().split("\0")[:-1]

    def stdin(self, name: str) -> str:
        return (self.seen / f"{name}.stdin").read_text()

    def pwd(self, name: str) -> str:
        return (self.seen / f"{name}.pwd").read_text().strip()


@pytest.fixture
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(tmp_path_factory.mktemp("bin"), tmp_path_factory.mktemp("seen"))
