"""No program comes from the work tree through a relative or empty entry of PATH."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ralph.system.programs import search_path, which
from security.support import DONE, harmless

if TYPE_CHECKING:
    from pathlib import Path

    from security.support import Ralph

NAMES = ("git", "bash", "sh", "jq", "claude", "codex", "gemini", "node", "ps", "env")


@pytest.fixture
def planted(repo: Path) -> str:
    """A PATH with every kind of entry that leads into the work tree, which has a program of every name."""
    (repo / "bin").mkdir()
    for name in NAMES:
        for folder in (repo, repo / "bin"):
            (folder / name).write_text(f"#!/bin/sh\necho {name} >> '{repo}/planted-ran'\necho 9.9.9\n")
            (folder / name).chmod(0o755)
    return ":.:./bin:bin::/usr/local/bin:/usr/bin:/bin:"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "1", "--agent-cmd", f"echo path=$PATH; echo '{DONE}'", "--verify", "true"),
        ("run", "1", "--agent", "claude"),
        ("run", "1", "--dry-run"),
        ("doctor",),
        ("agents",),
    ],
    ids=lambda arguments: arguments[0] + arguments[-1],
)
def test_nothing_planted_in_the_work_tree_is_started(
    ralph: Ralph, repo: Path, planted: str, arguments: tuple[str, ...]
) -> None:
    done = ralph(*arguments, env={"PATH": planted})
    harmless(done)
    assert not (repo / "planted-ran").exists(), (repo / "planted-ran").read_text()


def test_a_driver_does_not_find_its_program_in_the_work_tree(ralph: Ralph, repo: Path, planted: str) -> None:
    (repo / ".ralphrc").write_text("PLATFORM_DRIVER=claude-code\n")
    done = ralph("run", "1", env={"PATH": planted})
    assert done.returncode == 64
    assert not (repo / "planted-ran").exists()


def test_agents_and_checks_keep_the_users_path(ralph: Ralph, repo: Path, planted: str) -> None:
    # A login shell may set a PATH of its own, so this asks a check.
    ralph("run", "1", "--agent-cmd", f"echo '{DONE}'", "--verify", 'echo "$PATH" > seen', env={"PATH": planted})
    assert (repo / "seen").read_text() == f"{planted}\n"


def test_only_absolute_folders_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    for path in ("", ".", ":", "./", os.path.relpath(tmp_path), "../" + tmp_path.name):
        assert which("tool", path) is None
        assert search_path(path) == ""
    assert which("tool", f".:{tmp_path}") == str(tool)
    assert which("./tool") == "./tool"
