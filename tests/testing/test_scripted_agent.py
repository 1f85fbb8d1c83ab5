"""What a scripted agent prints is what really happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.testing.scripted_agent import ScriptedAgent
from ralph.transcripts.events import Text, ToolEnd, ToolOutput, ToolStart, ToolStatus, UsageEvent
from ralph.transcripts.rtf1 import Rtf1Adapter

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.transcripts.events import TranscriptEvent


@pytest.fixture
def agent(tmp_path: Path) -> ScriptedAgent:
    return ScriptedAgent(tmp_path, pace=0)


def printed(capfd: pytest.CaptureFixture[str]) -> list[TranscriptEvent]:
    adapter = Rtf1Adapter()
    return [event for line in capfd.readouterr().out.split("\n")[:-1] for event in adapter.feed(line)]


@pytest.mark.parametrize(("command", "ok"), [("true", True), ("exit 3", False), ("kill -9 $$", False)])
def test_a_command_ends_with_its_real_status(
    agent: ScriptedAgent, capfd: pytest.CaptureFixture[str], command: str, ok: bool
) -> None:
    assert agent.shell(command) is ok
    start, end = printed(capfd)
    assert isinstance(start, ToolStart)
    assert start.tool.input == {"command": command}
    assert isinstance(end, ToolEnd)
    assert end.tool.id == start.tool.id
    assert end.tool.status is (ToolStatus.OK if ok else ToolStatus.FAIL)


def test_both_streams_of_a_command_are_shown_line_by_line(
    agent: ScriptedAgent, capfd: pytest.CaptureFixture[str]
) -> None:
    agent.shell("echo one; echo two >&2; printf three")
    assert [e.text for e in printed(capfd) if isinstance(e, ToolOutput)] == ["one", "two", "three"]


def test_the_duration_is_measured(agent: ScriptedAgent, capfd: pytest.CaptureFixture[str]) -> None:
    agent.shell("sleep 0.3")
    end = printed(capfd)[-1]
    assert isinstance(end, ToolEnd)
    assert end.tool.duration_ms is not None
    assert 300 <= end.tool.duration_ms < 5000


def test_a_command_finds_the_python_that_runs_us(
    agent: ScriptedAgent, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from ralph.testing.scripted_agent import python

    agent.shell(f"{python()} -c 'import sys; print(sys.prefix)'")
    assert [e.text for e in printed(capfd) if isinstance(e, ToolOutput)] == [sys.prefix]


def test_git_variables_do_not_reach_commands(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    ScriptedAgent(tmp_path, pace=0).shell("env | grep -c ^GIT_DIR=")
    assert [e.text for e in printed(capfd) if isinstance(e, ToolOutput)] == ["0"]


def test_an_edit_shows_the_lines_that_changed(
    agent: ScriptedAgent, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    agent.write("a.txt", "one\n2\nthree\n")
    agent.write("new/b.txt", "x\ny\n")
    agent.write("new/c.txt", "x\n")
    events = printed(capfd)
    assert [e.tool.name for e in events if isinstance(e, ToolStart)] == ["edit", "write", "write"]
    assert [e.text for e in events if isinstance(e, ToolOutput)] == ["-two\n+2", "2 lines", "1 line"]
    assert (tmp_path / "a.txt").read_text() == "one\n2\nthree\n"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.txt", "b.txt", "c.txt", "new"]


def test_text_with_line_ends_and_symbols_is_unchanged(agent: ScriptedAgent, capfd: pytest.CaptureFixture[str]) -> None:
    agent.say('two\nlines "and" …\u2028')
    agent.usage(10, 5)
    words, usage = printed(capfd)
    assert isinstance(words, Text)
    assert words.text == 'two\nlines "and" …\u2028'
    assert isinstance(usage, UsageEvent)
    assert (usage.usage.total_tokens, usage.usage.cost_usd) == (15, None)
