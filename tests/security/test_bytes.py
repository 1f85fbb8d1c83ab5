"""Names, arguments, variables and output that are not UTF-8: every command takes them, and none crashes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

DONE = b"<promise>COMPLETE</promise>"
ODD = b"odd-\xff\xfe"
SECRET = b"se\xffcret-value-123456"


class Place:
    """A repository whose path is not UTF-8, below a home whose path is not either."""

    def __init__(self, folder: Path) -> None:
        self.base = folder / os.fsdecode(ODD)
        self.repo, self.home = self.base / os.fsdecode(b"repo \xe9"), self.base / "home"
        self.repo.mkdir(parents=True)
        self.home.mkdir()
        subprocess.run(["git", "init", "-q", self.repo], check=True)
        self.write(b"prompt-\xff.md", b"do \xff\n")

    def file(self, name: bytes) -> Path:
        return self.repo / os.fsdecode(name)

    def write(self, name: bytes, content: bytes, mode: int = 0o644) -> None:
        self.file(name).write_bytes(content)
        self.file(name).chmod(mode)

    def ralph(self, *arguments: bytes, **variables: bytes) -> subprocess.CompletedProcess[bytes]:
        environment = {
            name: value for name, value in os.environb.items() if not name.startswith((b"RALPH_", b"LC_", b"XDG_"))
        }
        environment |= {
            b"HOME": os.fsencode(self.home),
            b"LC_ALL": b"C.UTF-8",
            b"VAR_\xff": b"\xfe",
            b"MY_TOKEN": SECRET,
        }
        environment |= {name.encode(): value for name, value in variables.items()}
        done = subprocess.run(
            [os.fsencode(sys.executable), b"-m", b"ralph", *arguments],
            cwd=self.repo,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        output = done.stdout + done.stderr
        assert b"bug in ralph" not in output, output
        assert b"Traceback" not in output, output
        if b"--raw" not in arguments:
            output.decode()  # what ralph prints is UTF-8
        return done


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_run_gets_and_records_odd_bytes(place: Place) -> None:
    script = (
        b"cat > received; env > vars; touch \"$(printf 'new-\\377')\"; printf 'is se\\377cret-value-123456 \\377\\n'"
    )
    done = place.ralph(b"run", b"1", b"--agent-cmd", script + b"; echo '" + DONE + b"'", b"-P", b"prompt-\xff.md")
    assert done.returncode == 0, done.stderr
    assert place.file(b"received").read_bytes() == b"do \xff\n"
    assert b"VAR_\xff=\xfe" in place.file(b"vars").read_bytes()
    assert b"[masked:MY_TOKEN]" in done.stdout
    lines = place.file(b".ralph/latest/events.jsonl").read_bytes().decode().splitlines()
    assert "secret-value" not in "".join(lines).replace("\ufffd", "")
    assert [json.loads(line) for line in lines]
    json.loads(place.file(b".ralph/latest/run.json").read_bytes().decode())
    for command in (
        (b"runs",),
        (b"runs", b"--json"),
        (b"show",),
        (b"show", b"--json"),
        (b"tail",),
        (b"show", b"--raw"),
    ):
        assert b"bug" not in place.ralph(*command).stderr
    assert place.ralph(b"runs").returncode == place.ralph(b"show").returncode == 0


@pytest.mark.parametrize(
    "flags",
    [
        (b"-p", b"do \xff"),
        (b"-p", b"x", b"--mask-env", b"\xff"),
        (b"-p", b"x", b"--verify", b"true \xff"),
        (b"-p", b"x", b"--allowed-paths", b"\xff/**"),
        (b"-p", b"x", b"--env-deny", b"\xff"),
        (b"-p", b"x", b"--complete", b"\xff"),
    ],
)
def test_flags_of_a_run_may_have_odd_bytes(place: Place, flags: tuple[bytes, ...]) -> None:
    agent = (b"--agent-cmd", b"echo '" + DONE + b"'; echo '\xff'")
    assert place.ralph(b"run", b"1", *agent, *flags).returncode in (0, 2, 5, 64)
    assert place.ralph(b"run", b"--dry-run", *agent, *flags).returncode in (0, 64)


@pytest.mark.parametrize("locale", [b"C.UTF-8", b"C", b"POSIX"])
@pytest.mark.parametrize(
    "command",
    [
        (b"config",), (b"config", b"--json"), (b"doctor",), (b"doctor", b"--json"), (b"trust",), (b"trust", b"--list"),
        (b"agents",), (b"init",), (b"init", b"--from-existing"), (b"runs",), (b"show", b"\xff"), (b"stop", b"\xff"),
        (b"steer", b"\xff"), (b"run", b"\xff"), (b"run", b"--\xff"), (b"\xff",), (b"run", b"--resume", b"\xff"),
        (b"run", b"-P", b"missing-\xff"), (b"run", b"--agent", b"\xff", b"-p", b"x"), (b"replay", b"\xff"),
        (b"run", b"-C", b"/missing-\xff", b"-p", b"x"), (b"as-claude", b"--agent", b"\xff", b"-p", b"\xff"),
        (b"as-claude", b"--agent", b"demo", b"-p", b"\xff", b"--append-system-prompt", b"\xff"),
        (b"replay", b"prompt-\xff.md", b"--transcript", b"plain", b"--json"),
    ],
)  # fmt: skip
def test_no_command_crashes(place: Place, command: tuple[bytes, ...], locale: bytes) -> None:
    place.ralph(*command, LC_ALL=locale)


def test_variables_that_ralph_reads_may_have_odd_bytes(place: Place) -> None:
    for name in ("RALPH_MODEL", "RALPH_AGENT", "RALPH_PROMPT", "RALPH_MASK_ENV", "EDITOR", "PATH"):
        value = b"\xff:" + os.environb[b"PATH"] if name == "PATH" else b"\xff"
        for command in ((b"config",), (b"run", b"--dry-run", b"-p", b"x"), (b"doctor",)):
            place.ralph(*command, **{name: value})


def test_approvals_in_directories_with_odd_names_are_kept_apart(place: Place) -> None:
    """Two directories whose names differ only in such bytes must not share an approval."""
    place.write(b"ralph.yml", b"agent: custom\ncommand: ./agent.sh\nargs: []\n")
    place.write(b"agent.sh", b"#!/bin/sh\necho '" + DONE + b"'\n", 0o755)
    assert place.ralph(b"run", b"1", b"-p", b"x").returncode == 64
    assert place.ralph(b"trust").returncode == 0
    assert place.ralph(b"run", b"1", b"-p", b"x").returncode == 0
    other = place.base / os.fsdecode(b"repo \xe8")
    shutil.copytree(place.repo, other, symlinks=True)
    place.repo = other
    assert place.ralph(b"run", b"1", b"-p", b"x").returncode == 64
    assert place.ralph(b"trust", b"--list").returncode == 0
