"""The demo agent as a process: what it does depends only on the prompt and the files."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from ralph.testing import demo_project
from ralph.testing.demo_agent import FAST, failed_checks
from ralph.testing.demo_tasks import TASKS, tick
from ralph.transcripts.events import Meta, Tag, Text, ToolEnd, ToolStart, ToolStatus, UsageEvent
from ralph.transcripts.meta import Kind
from ralph.transcripts.rtf1 import SENTINEL, Rtf1Adapter

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.transcripts.events import TranscriptEvent

COMPLETE = "<promise>COMPLETE</promise>"
NAMES = list(TASKS)


class Transcript(msgspec.Struct):
    events: list[TranscriptEvent]

    @property
    def words(self) -> list[str]:
        return [e.text for e in self.events if isinstance(e, Text) and e.tag is Tag.AI]

    @property
    def claims(self) -> bool:
        return COMPLETE in self.words

    @property
    def failed(self) -> int:
        return sum(isinstance(e, ToolEnd) and e.tool.status is ToolStatus.FAIL for e in self.events)

    @property
    def tools(self) -> list[str]:
        return [e.tool.name for e in self.events if isinstance(e, ToolStart)]

    @property
    def error(self) -> str | None:
        errors = [e.meta for e in self.events if isinstance(e, Meta) and e.meta.get("kind") == Kind.ERROR]
        return errors[0]["class"] if errors else None


def agent(folder: Path, prompt: str = "Do the work.") -> Transcript:
    done = subprocess.run(
        [sys.executable, "-m", "ralph.testing.demo_agent"],
        cwd=folder,
        env=os.environ | {FAST: "1"},
        input=prompt,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    adapter = Rtf1Adapter()
    lines = done.stdout.split("\n")[:-1]
    assert all(line.startswith(SENTINEL) for line in lines)
    events = [event for line in lines for event in adapter.feed(line)]
    assert not [e for e in events if isinstance(e, Meta) and e.meta.get("kind") == Kind.PARSE_ERROR]
    return Transcript(events)


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def all_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def open_tasks(folder: Path) -> int:
    return (folder / "TASKS.md").read_text().count("- [ ] ")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    demo_project.create(folder)
    return folder


def test_each_iteration_does_ticks_and_commits_one_task(project: Path) -> None:
    transcript = agent(project)
    assert not transcript.claims
    assert transcript.failed == 0
    assert open_tasks(project) == 3
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "log", "--format=%s", "-1").strip() == TASKS[NAMES[0]].commit
    assert all_tests(project).returncode == 0
    usage = [e.usage for e in transcript.events if isinstance(e, UsageEvent)]
    assert len(usage) == 1
    assert usage[0].cost_usd is None


def test_it_breaks_a_test_once_and_repairs_it_after_a_note(project: Path) -> None:
    transcript = [agent(project) for _ in NAMES]
    assert [s.claims for s in transcript] == [False, False, False, True]
    assert open_tasks(project) == 0
    broken = all_tests(project)
    assert broken.returncode == 1, "it claims to be done although a test fails"
    repaired = agent(project, f"<ralph-notes>\nFix this.\n\n{broken.stderr}\n</ralph-notes>\n\nDo the work.")
    assert "test_an_apostrophe_belongs_to_its_word" in repaired.words[0]
    assert repaired.failed == 1, "it runs the failing test itself"
    assert repaired.claims
    assert all_tests(project).returncode == 0
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "rev-list", "--count", "HEAD").strip() == "6"


def test_without_notes_it_finds_the_failure_after_the_last_task(project: Path) -> None:
    for _ in NAMES:
        agent(project)
    again = agent(project)
    assert again.failed == 1
    assert again.claims
    assert all_tests(project).returncode == 0


def test_with_everything_done_it_says_so_and_changes_nothing(project: Path) -> None:
    for _ in range(5):
        agent(project)
    head = git(project, "rev-parse", "HEAD")
    transcript = agent(project)
    assert transcript.claims
    assert transcript.failed == 0
    assert git(project, "rev-parse", "HEAD") == head


@pytest.mark.endurance
@pytest.mark.parametrize(
    ("done", "kept"),
    [
        (2, ("textkit.py",)),
        (2, ("textkit.py", "tests", "TASKS.md")),
        (4, ("textkit.py", "tests")),
        (4, ("textkit.py", "tests", "TASKS.md")),
        (5, ("textkit.py",)),
    ],
)
def test_an_iteration_that_was_cut_short_is_continued(project: Path, done: int, kept: tuple[str, ...]) -> None:
    """As if it was killed before its commit, when it had written only these files."""
    for _ in range(done):
        agent(project)
    last = git(project, "rev-parse", "HEAD").strip()
    git(project, "reset", "-q", "--hard", "HEAD~1")
    for path in kept:
        git(project, "checkout", last, "--", path)
        git(project, "reset", "-q")
    for _ in range(6):
        transcript = agent(project)
        assert transcript.error is None
        if transcript.claims and all_tests(project).returncode == 0:
            break
    else:
        pytest.fail("it was never done")
    assert open_tasks(project) == 0
    assert git(project, "status", "--porcelain") == ""
    assert {f"tests/test_{n}.py" for n in NAMES} <= set(git(project, "ls-files").split())


def test_tasks_are_done_in_the_order_of_the_list(project: Path) -> None:
    tasks = project / "TASKS.md"
    tasks.write_text("\n".join(reversed(tasks.read_text().splitlines())) + "\n")
    agent(project)
    assert (project / "tests" / "test_accents.py").exists()
    assert not (project / "tests" / "test_slugify.py").exists()


def test_an_unknown_task_needs_a_person(project: Path) -> None:
    text = (project / "TASKS.md").read_text()
    for name in NAMES:
        text = tick(text, name)
    (project / "TASKS.md").write_text(text + "- [ ] coffee: make some\n")
    transcript = agent(project)
    assert transcript.error == "question"
    assert "coffee" in " ".join(transcript.words)
    assert not transcript.claims


def test_a_failure_it_did_not_cause_needs_a_person(project: Path) -> None:
    for _ in range(5):
        agent(project)
    (project / "tests" / "test_mine.py").write_text(
        "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.fail('mine')\n"
    )
    transcript = agent(project)
    assert transcript.error == "question"
    assert not transcript.claims


@pytest.mark.parametrize("with_tasks", [False, True])
def test_in_other_folders_it_changes_nothing(repo: Path, with_tasks: bool) -> None:
    if with_tasks:
        (repo / "TASKS.md").write_text("- [ ] slugify: the same name\n")
        (repo / "textkit.py").write_text("mine = 1\n")
    head, status = git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")
    content = {p: p.read_bytes() for p in repo.iterdir() if p.is_file()}
    transcript = agent(repo)
    assert transcript.tools == ["shell"]
    assert transcript.claims
    assert (git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain")) == (head, status)
    assert {p: p.read_bytes() for p in repo.iterdir() if p.is_file()} == content


def test_only_notes_before_the_prompt_count() -> None:
    notes = "<ralph-notes>\nFAIL: test_a (x.y)\nERROR: test_b\n</ralph-notes>\n"
    assert failed_checks(f"{notes}\nDo it.") == ["test_a", "test_b"]
    assert failed_checks(f"Do it.\n{notes}") == []
    assert failed_checks("FAIL: test_a") == []
