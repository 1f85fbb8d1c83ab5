"""Nobody else can write what ralph creates, or read what is private, whatever the umask is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

DONE = "<promise>COMPLETE</promise>"
#: What is in here must not even be readable for others.
PRIVATE = (".ralph/runs/", "home/", "config/")


def ralph(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "config" / "deeper"),
        "XDG_STATE_HOME": str(folder / "home" / "state"),
        "RALPH_TRUST": "1",
    }
    return subprocess.run(
        ["sh", "-c", 'umask 000; exec "$@"', "sh", sys.executable, "-m", "ralph", *arguments],
        cwd=folder / "repo",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    subprocess.run(["git", "init", "-q", tmp_path / "repo"], check=True)
    return tmp_path


def test_nothing_is_writable_for_others_with_a_umask_of_0(place: Path) -> None:
    before = {path for path in place.rglob("*") if ".git/" in f"{path}/"}
    assert ralph(place, "init").returncode == 0
    done = ralph(place, "run", "2", "--agent-cmd", f"echo '{DONE}'", "-p", "x", "--verify", "true")
    assert done.returncode == 0, done.stderr
    ralph(place, "trust")
    ralph(place, "steer", "more")
    assert ralph(place, "as-claude", "--install", str(place / "bin" / "claude"), "--agent", "demo").returncode == 0
    checked = 0
    for path in set(place.rglob("*")) - before - {place / "repo"}:
        if path.is_symlink() or "/.git/" in f"{path}/":
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        assert not mode & 0o022, f"{path} has the mode {mode:o}"
        if any(f"/{private}" in f"{path}/" for private in PRIVATE):
            assert not mode & 0o077, f"{path} has the mode {mode:o}"
        checked += 1
    assert checked > 15
    assert {"ralph.yml", "PROMPT.md", ".ralph"} <= {path.name for path in (place / "repo").iterdir()}
