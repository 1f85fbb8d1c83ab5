"""A repository's own .git/config, for example from an unpacked archive, starts no program when ralph reads it."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from .support import AGENT

if TYPE_CHECKING:
    from pathlib import Path

    from .support import Ralph


def git(repo: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True)


def bait(folder: Path) -> str:
    """A program that leaves a trace when it runs; it passes its input on."""
    program = folder / "bait"
    program.write_text(f"#!/bin/sh\ntouch {folder}/ran\ncat\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("how", ["fsmonitor", "hooks", "filter", "process", "included filter"])
def test_reading_the_repository_starts_no_program(ralph: Ralph, repo: Path, outside: Path, how: str) -> None:
    program = bait(outside)
    match how:
        case "fsmonitor":
            git(repo, "config", "core.fsmonitor", program)
        case "hooks":
            (outside / "hooks").mkdir()
            for name in ("post-index-change", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction"):
                (outside / "hooks" / name).symlink_to(program)
            git(repo, "config", "core.hooksPath", str(outside / "hooks"))
        case "included filter":
            (repo / ".git" / "more").write_text(f'[filter "evil"]\n\tclean = {program}\n')
            git(repo, "config", "include.path", "more")
        case _:
            git(repo, "config", f"filter.evil.{'clean' if how == 'filter' else 'process'}", program)
    (repo / ".gitattributes").write_text("* filter=evil\n")
    (repo / "README.md").write_text("HELLO\n")  # of the same size, so that git must read it
    os.utime(repo / "README.md", (1, 1))
    for command in (AGENT, ["doctor"], [*AGENT, "--dry-run"]):
        ralph(*command)
        assert not (outside / "ran").exists(), command
    assert (repo / "received").exists()


def test_missing_objects_are_not_fetched_with_the_repositorys_program(ralph: Ralph, repo: Path, outside: Path) -> None:
    git(repo, "config", "extensions.partialClone", "origin")
    git(repo, "config", "remote.origin.url", str(outside))
    git(repo, "config", "remote.origin.promisor", "true")
    git(repo, "config", "remote.origin.uploadpack", bait(outside))
    commit = "git rm -q --cached README.md; git commit -qm x; rm -f .git/objects/??/*"
    done = ralph("run", "1", "--agent-cmd", commit)
    assert done.returncode in (1, 2, 4), done
    assert not (outside / "ran").exists()


def test_a_work_tree_outside_the_repository_is_ignored(ralph: Ralph, repo: Path, outside: Path) -> None:
    git(repo, "config", "core.worktree", str(outside))
    done = ralph("run", "1", "--agent-cmd", f"touch {outside}/new; touch here; echo '<promise>COMPLETE</promise>'")
    assert done.returncode == 0, done
    assert "1 file" in done.stdout, done.stdout


def test_worktrees_and_submodules_still_work(ralph: Ralph, repo: Path, outside: Path) -> None:
    git(repo, "worktree", "add", "-q", str(outside / "tree"))
    done = ralph(*AGENT, cwd=outside / "tree")
    assert done.returncode == 0
    assert "received" in done.stdout, done.stdout
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repo), "sub")
    done = ralph(*AGENT, "-P", "PROMPT.md", cwd=repo / "sub")
    assert done.returncode == 0
    assert "received" in done.stdout, done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_a_repository_of_another_user_is_reported(ralph: Ralph, repo: Path) -> None:
    for path in (repo, repo / ".git"):
        os.chown(path, 12345, 12345)
    done = ralph(*AGENT)
    assert "safe.directory" in done.stdout, done
    assert done.returncode == 0
    assert "safe.directory" in ralph("doctor").stdout
