"""Links and special files in a repository: nothing outside it is read or written."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .support import AGENT, DONE, contents, harmless

if TYPE_CHECKING:
    from pathlib import Path

    from .support import Ralph


# -- writing


@pytest.mark.parametrize("link", [".ralph", ".ralph/runs"])
def test_a_journal_outside_the_repository_is_written_only_if_trusted(
    ralph: Ralph, repo: Path, outside: Path, link: str
) -> None:
    (repo / link).parent.mkdir(exist_ok=True)
    (repo / link).symlink_to(outside)
    before = contents(outside)
    done = ralph(*AGENT)
    assert done.returncode == 64, done
    assert str(outside) in done.stderr
    assert contents(outside) == before
    assert not (repo / "received").exists()
    for command in (["runs"], ["show"], ["tail"], ["doctor"], ["run", "--resume"]):
        harmless(ralph(*command))
        assert contents(outside) == before
    assert ralph("trust").returncode == 0
    assert ralph(*AGENT).returncode == 0
    assert contents(outside) != before


@pytest.mark.parametrize("link", [".ralph/lock", ".ralph/.gitignore", ".agent/events.jsonl", ".ralph/latest"])
@pytest.mark.parametrize("dangling", [True, False])
def test_a_link_in_place_of_a_file_of_ours_is_not_followed(
    ralph: Ralph, repo: Path, outside: Path, link: str, dangling: bool
) -> None:
    (repo / link).parent.mkdir()
    (repo / link).symlink_to(outside / ("none" if dangling else "secret"))
    before = contents(outside)
    harmless(ralph(*AGENT))
    assert contents(outside) == before


def test_no_file_is_written_to_an_agent_folder_outside_the_repository(ralph: Ralph, repo: Path, outside: Path) -> None:
    (repo / ".agent").symlink_to(outside)
    before = contents(outside)
    assert ralph(*AGENT).returncode == 0
    assert contents(outside) == before


def test_a_linked_lock_in_a_foreign_run_is_not_emptied(ralph: Ralph, repo: Path, outside: Path) -> None:
    """It is neither locked nor empty, so it looks like the lock of a process that died."""
    run = repo / ".ralph" / "runs" / "20200101-000000-000aa"
    run.mkdir(parents=True)
    (run / "lock").symlink_to(outside / "secret")
    (run.parent / "20200101-000000-000bb").symlink_to(outside)
    (outside / "lock").write_text("somebody else's\n")
    before = contents(outside)
    for command in (AGENT, ["runs"], ["doctor"]):
        harmless(ralph(*command))
        assert contents(outside) == before


def test_a_crash_report_is_not_written_through_a_link(repo: Path, outside: Path) -> None:
    (repo / ".ralph").symlink_to(outside)
    before = contents(outside)
    code = "from ralph.cli.crash import report; report(ValueError('x'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=repo, capture_output=True, text=True, check=False)
    assert "this is a bug in ralph" in done.stderr
    assert contents(outside) == before


# -- reading


@pytest.mark.parametrize("name", ["PROMPT.md", ".ralph/PROMPT.md", "docs/plans/only.md", ".ralphex/prompts/task.txt"])
def test_a_prompt_that_links_to_the_users_files_is_not_sent_to_an_agent(
    ralph: Ralph, repo: Path, outside: Path, name: str
) -> None:
    (repo / "PROMPT.md").unlink()
    if name == ".ralph/PROMPT.md":
        (repo / ".ralphrc").write_text("MAX_LOOPS=3\n")
    if name.startswith(("docs", ".ralphex")):
        (repo / ".ralphex" / "prompts").mkdir(parents=True)
        (repo / ".ralphex" / "config").write_text("max_iterations = 3\n")
        (repo / "docs/plans").mkdir(parents=True)
        if not name.startswith("docs"):
            (repo / "docs/plans/only.md").write_text("# Plan\n- [ ] one\n")
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).symlink_to(outside / "secret")
    for command in (AGENT, [*AGENT, "--dry-run"]):
        done = ralph(*command)
        harmless(done)
        assert str(outside / "secret") in done.stdout + done.stderr, done
        assert "the-secret" not in done.stdout + done.stderr
        assert "the-secret" not in ((repo / "received").read_text() if (repo / "received").exists() else "")
    assert ralph(*AGENT).returncode == 64


def test_a_file_that_the_user_names_may_be_anywhere(ralph: Ralph, repo: Path, outside: Path) -> None:
    (repo / "PROMPT.md").unlink()
    (repo / "PROMPT.md").symlink_to(outside / "secret")
    assert ralph(*AGENT, "-P", "PROMPT.md").returncode == 0
    assert (repo / "received").read_text() == "the-secret\n"
    (repo / "received").unlink()
    assert ralph("trust").returncode == 0
    assert ralph(*AGENT).returncode == 0
    assert (repo / "received").read_text() == "the-secret\n"


def test_a_link_within_the_repository_is_followed(ralph: Ralph, repo: Path) -> None:
    (repo / "docs").mkdir()
    (repo / "PROMPT.md").rename(repo / "docs" / "task.md")
    (repo / "PROMPT.md").symlink_to("docs/task.md")
    (repo / "sub").mkdir()
    (repo / "sub" / "PROMPT.md").symlink_to("../docs/task.md")
    assert ralph(*AGENT).returncode == 0
    assert ralph(*AGENT, cwd=repo / "sub").returncode == 0


@pytest.mark.parametrize("name", ["ralph.yml", ".ralphrc", ".ralphex/config"])
def test_a_configuration_that_links_to_the_users_files_is_refused(
    ralph: Ralph, repo: Path, outside: Path, name: str
) -> None:
    """Otherwise its errors would be shown, and a prompt in it sent."""
    text = {"ralph.yml": "prompt: the-secret\n", ".ralphrc": "MAX_LOOPS=the-secret\n"}
    (outside / "secret").write_text(text.get(name, "max_iterations = the-secret\n"))
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).symlink_to(outside / "secret")
    for command in (AGENT, ["config"], ["doctor"], ["trust"]):
        done = ralph(*command)
        harmless(done)
        assert done.returncode in (1, 64), done
        assert str(outside / "secret") in done.stdout + done.stderr
        assert "the-secret" not in done.stdout + done.stderr
    assert not (repo / "received").exists()
    if name == "ralph.yml":
        assert ralph(*AGENT, "-c", "ralph.yml").returncode == 0  # named by the user


def test_trust_shows_where_the_link_to_a_script_leads(ralph: Ralph, repo: Path, outside: Path) -> None:
    (repo / "agents").mkdir()
    (repo / "config").write_text("AGENT=one\n")
    (repo / "agents" / "one.sh").symlink_to(outside / "secret")
    done = ralph("trust", "--dry-run")
    assert str(outside / "secret") in done.stdout, done


# -- special files

NAMES = ["ralph.yml", "PROMPT.md", ".ralphrc", ".ralph/.ralphrc", ".ralphex/config", "config", ".ralph/agents/x.toml"]
NAMES += ["agents/one.sh", ".ralph/PROMPT.md", "docs/plans/a.md", ".ralph/fix_plan.md", ".ralph/drivers/x.sh"]


ODD = [(name, kind) for name in NAMES for kind in ("fifo", "huge")]
ODD += [(name, kind) for name in NAMES[:3] for kind in ("zero", "folder")]


@pytest.mark.parametrize(("name", "kind"), ODD)
def test_special_files_do_not_hang_it_or_fill_the_memory(ralph: Ralph, repo: Path, name: str, kind: str) -> None:
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    make_special(path, kind)
    make_it_read(repo, name)
    agent = ("--agent", "x") if name.endswith(".toml") else AGENT[2:]
    # 2 GB of address space: reading 1 TB, or /dev/zero to its end, would fail
    limited = "import resource, runpy; resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31));"
    limited += "runpy.run_module('ralph', run_name='__main__')"
    for command in (["run", "1", *agent], ["trust"]):
        done = subprocess.run(
            [sys.executable, "-c", limited, *command],
            cwd=repo,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=20,
            check=False,
        )
        harmless(done)
        assert done.returncode in (0, 1, 64), done


def make_special(path: Path, kind: str) -> None:
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "zero":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(1 << 40)


def make_it_read(repo: Path, name: str) -> None:
    """Writes the other files of the convention, without which ralph would not read this one."""
    if name in ("config", "agents/one.sh"):
        (repo / "agents").mkdir(exist_ok=True)
        for other in (repo / "config", repo / "agents" / "one.sh"):
            if other != repo / name:
                other.write_text("AGENT=one\n")
    if name.startswith("docs"):
        (repo / "PROMPT.md").unlink()
        (repo / ".ralphex").mkdir()
        (repo / ".ralphex" / "config").write_text("max_iterations = 3\n")
    if name.startswith(".ralph/") and "rc" not in name:
        (repo / ".ralphrc").write_text("PLATFORM_DRIVER=x\n" if "drivers" in name else "MAX_LOOPS=3\n")


def test_a_pipe_that_the_user_names_is_read(repo: Path) -> None:
    command = f"{sys.executable} -m ralph run 1 --agent-cmd \"cat > received; echo '{DONE}'\" -P"
    for given in ("<(echo from a pipe)", "- <<< 'from a pipe'"):
        done = subprocess.run(["bash", "-c", f"{command} {given}"], cwd=repo, capture_output=True, check=False)
        assert done.returncode == 0, done
        assert (repo / "received").read_text() == "from a pipe\n"
