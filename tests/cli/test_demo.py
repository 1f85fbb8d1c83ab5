"""`ralph demo` as a new user sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ralph.testing.demo_agent import FAST
from ralph.testing.demo_project import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


def events(folder: Path) -> list[dict[str, Any]]:
    text = (folder / ".ralph" / "latest" / "events.jsonl").read_bytes()
    return [msgspec.json.decode(line) for line in text.splitlines()]


def metas(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [e["meta"] for e in events(folder) if e["type"] == "meta" and e["meta"]["kind"] == kind]


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def assert_done(folder: Path) -> None:
    tasks = (folder / "TASKS.md").read_text()
    assert (tasks.count("- [x] "), tasks.count("- [ ] ")) == (4, 0)
    assert git(folder, "status", "--porcelain") == ""
    tests = subprocess.run([sys.executable, "-B", "-m", "unittest"], cwd=folder, check=False, capture_output=True)
    assert tests.returncode == 0


def test_from_an_empty_folder_to_a_verified_end(ralph: Ralph, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = ralph("demo", "--fast", "--ui", "plain", "--dir", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert_done(folder)
    # the checks: before the run, after the false claim, after the true one
    assert [(c["baseline"], c["ok"]) for c in metas(folder, "verify")] == [(True, True), (False, False), (False, True)]
    ends = metas(folder, "iteration_end")
    assert [e["completed"] for e in ends] == [False, False, False, True, True]
    assert [e["commits"] for e in ends] == [1, 1, 1, 1, 1]
    assert {e["outcome"] for e in ends} == {"ok"}
    assert sum(e["tools"]["fail"] for e in ends) == 1
    assert "but a check fails" in done.stdout
    assert metas(folder, "parse_error") == []
    (end,) = metas(folder, "run_end")
    assert (end["end"], end["iterations"]) == ("complete", 5)
    assert end["usage"]["total_tokens"] > 0
    assert "cost_usd" not in end["usage"]
    # the next steps name the iteration with the false claim
    assert "--iteration 4" in done.stderr
    assert f"cd {folder.relative_to(tmp_path)}" in done.stderr
    prompt = (folder / ".ralph" / "latest" / "iterations" / "0005" / "prompt.md").read_text()
    assert prompt.startswith("<ralph-notes>\n")
    assert "test_an_apostrophe_belongs_to_its_word" in prompt


@pytest.mark.endurance
def test_an_earlier_demo_is_replaced_and_every_demo_is_the_same(ralph: Ralph, tmp_path: Path) -> None:
    folder = tmp_path / "demo"

    def story() -> list[Any]:
        assert ralph("demo", "--fast", "--ui", "quiet", "--dir", str(folder)).returncode == 0
        assert len(list((folder / ".ralph" / "runs").iterdir())) == 1
        assert git(folder, "rev-list", "--count", "HEAD").strip() == "6"
        return [
            (e["tag"], e["text"]) if e["type"] == "text" else e["tool"]["input"]
            for e in events(folder)
            if e["type"] in ("text", "tool_start")
        ]

    assert story() == story()


@pytest.mark.endurance
def test_a_demo_stopped_in_the_middle_can_be_finished(ralph: Ralph, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo = subprocess.Popen(
        [sys.executable, "-m", "ralph", "demo", "--dir", str(folder), "--ui", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    assert demo.stdout is not None
    with demo.stdout as lines:
        for line in lines:
            event = msgspec.json.decode(line)  # with --ui json there is nothing else on stdout
            if event["iteration"] == 2 and event["type"] == "tool_start" and event["tool"]["name"] == "edit":
                demo.send_signal(signal.SIGINT)
                break
        lines.read()
    assert demo.wait(timeout=20) == 130
    tasks = (folder / "TASKS.md").read_text()
    assert (tasks.count("- [x] "), tasks.count("- [ ] ")) == (1, 3)
    again = ralph("run", "--ui", "plain", cwd=folder, env={FAST: "1"})
    assert again.returncode == 0, again.stdout + again.stderr
    assert_done(folder)
    assert metas(folder, "parse_error") == []


@pytest.mark.endurance
def test_a_demo_stopped_after_the_false_claim_detects_it_again(ralph: Ralph, tmp_path: Path) -> None:
    """The notes of the first run are lost by then, and the check fails even before the second run."""
    folder = tmp_path / "demo"
    assert ralph("demo", "--fast", "--ui", "quiet", "--dir", str(folder)).returncode == 0
    git(folder, "reset", "-q", "--hard", "HEAD~1")
    again = ralph("run", "--ui", "plain", cwd=folder, env={FAST: "1"})
    assert again.returncode == 0, again.stdout + again.stderr
    assert [(c["baseline"], c["ok"]) for c in metas(folder, "verify")] == [(True, False), (False, True)]
    assert_done(folder)


def test_without_a_directory_the_demo_creates_one_and_names_it(ralph: Ralph, tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    done = ralph("demo", "--fast", "--ui", "quiet", env={"TMPDIR": str(place)})
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = place.glob("ralph-demo-*")
    assert str(folder) in done.stderr
    assert_done(folder)


def test_a_directory_with_other_files_is_refused(ralph: Ralph, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    done = ralph("demo", "--fast", "--dir", str(mine))
    assert done.returncode == 64
    assert "not empty" in done.stderr
    assert [p.name for p in mine.iterdir()] == ["thesis.txt"]


def test_without_git_the_demo_is_refused(ralph: Ralph, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = ralph("demo", "--fast", "--dir", str(folder), env={"PATH": str(tmp_path)})
    assert done.returncode == 64
    assert "needs git" in done.stderr
    assert not folder.exists()


def test_an_unknown_screen_is_a_usage_error(ralph: Ralph, tmp_path: Path) -> None:
    done = ralph("demo", "--fast", "--ui", "cinema", "--dir", str(tmp_path / "demo"))
    assert done.returncode == 64
    assert "--ui" in done.stderr


def test_the_users_settings_do_not_change_the_demo(ralph: Ralph, tmp_path: Path) -> None:
    configuration = tmp_path / "config" / "ralph"
    configuration.mkdir(parents=True)
    (configuration / "ralph.yml").write_text("agent: nobody\nmodel: big\nmax_iterations: 1\nallowed_paths: [nothing]\n")
    strange = {
        "XDG_CONFIG_HOME": str(configuration.parent),
        "RALPH_AGENT": "nobody",
        "RALPH_MAX_ITERATIONS": "1",
        "RALPH_VERIFY": "false",
        "AGENT_CMD": "false",
        "GIT_DIR": str(tmp_path / "nowhere"),
    }
    folder = tmp_path / "demo"
    done = ralph("demo", "--fast", "--ui", "quiet", "--dir", str(folder), env=strange)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_done(folder)


def test_the_demo_agent_is_harmless_in_other_repositories(ralph: Ralph, repo: Path) -> None:
    for name in ("msgspec.py", "re.py", "ralph.py"):
        (repo / name).write_text("raise SystemExit('this is not what was meant')\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "modules with common names")
    # from outside, because `python -m ralph` would import these modules from the current directory
    done = ralph("run", "--cwd", str(repo), "--agent", "demo", "--ui", "plain", env={FAST: "1"}, cwd=repo.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "I change nothing" in done.stdout
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "rev-list", "--count", "HEAD").strip() == "2"
    assert metas(repo, "parse_error") == []
    assert not (repo / MARKER).exists()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_on_a_terminal_the_demo_ends_with_next_steps(tmp_path: Path) -> None:
    master, slave = os.openpty()
    demo = subprocess.Popen(
        [sys.executable, "-m", "ralph", "demo", "--fast", "--dir", str(tmp_path / "demo")],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"TERM": "xterm"},
        cwd=tmp_path,
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(master)
    assert demo.wait(timeout=20) == 0
    text = seen.decode()
    assert text.index("A demo agent works") < text.index("Iteration 1 of 10") < text.index("Complete")
    assert text.rindex("Complete") < text.index("git log --oneline ", text.rindex("Complete"))
