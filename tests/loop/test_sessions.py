"""Which session an iteration belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.judging.judge import Outcome, Verdict
from ralph.judging.signals import Claim, Signal
from ralph.launching.launcher import SessionMode
from ralph.loop.sessions import Session, SessionRequest, find_session_id, next_request, session_after
from ralph.transcripts.events import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

RESUME = SessionMode.RESUME
NAME = SessionMode.NAME
USED = Usage(total_tokens=7)


def verdict(outcome: Outcome = Outcome.OK) -> Verdict:
    return Verdict(outcome, "", Claim(Signal.NONE, ""))


def test_without_continue_session_there_is_no_session() -> None:
    assert next_request(SessionMode.FRESH, Session("abc"), 0, now=0) == SessionRequest()


def test_the_id_that_the_agent_reported_is_resumed() -> None:
    first = next_request(RESUME, Session(), 0, now=5)
    assert first == SessionRequest()
    session = session_after(Session(), first, "abc", verdict(), USED, started=5)
    assert session == Session("abc", 5, USED)
    assert next_request(RESUME, session, 0, now=10) == SessionRequest("abc", resume=True)


def test_an_agent_that_reports_no_id_gets_one_from_us() -> None:
    first = next_request(NAME, Session(), 0, now=5)
    assert first.id
    assert not first.resume
    session = session_after(Session(), first, None, verdict(), None, started=5)
    assert next_request(NAME, session, 0, now=10) == SessionRequest(first.id, resume=True)


def test_an_agent_that_reports_no_id_and_takes_none_has_no_session() -> None:
    assert session_after(Session(), SessionRequest(), None, verdict(), USED, started=5) == Session()


def test_a_session_that_is_too_old_is_not_resumed() -> None:
    session = Session("abc", since=0)
    assert next_request(RESUME, session, 100, now=99) == SessionRequest("abc", resume=True)
    assert next_request(RESUME, session, 100, now=101) == SessionRequest()
    again = session_after(session, SessionRequest(), "new", verdict(), None, started=101)
    assert again == Session("new", 101), "it starts anew, without the usage of the old one"


def test_a_resumed_session_keeps_its_age_and_the_usage_that_was_reported_last() -> None:
    session = Session("abc", 5, USED)
    resume = SessionRequest("abc", resume=True)
    assert session_after(session, resume, None, verdict(), None, started=50) == session
    more = Usage(total_tokens=9)
    assert session_after(session, resume, "def", verdict(), more, started=50) == Session("def", 5, more)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.EMPTY, Outcome.CONTEXT_EXCEEDED, Outcome.NOT_FOUND])
def test_a_resumed_session_that_fails_is_abandoned(outcome: Outcome) -> None:
    resume = SessionRequest("abc", resume=True)
    assert session_after(Session("abc"), resume, "abc", verdict(outcome), USED, started=5) == Session()


def test_a_session_outlives_a_busy_provider() -> None:
    resume = SessionRequest("abc", resume=True)
    session = session_after(Session("abc"), resume, None, verdict(Outcome.RATE_LIMITED), None, started=5)
    assert session.id == "abc"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ('{"session_id":"c"}\n{"metadata":{"session_id":"b"}}\n{"sessionId":"a"}\n', "a"),
        ('{"session_id":"c"}\nnoise\n{"metadata":{"session_id":"b"}}\n', "b"),
        ('{"type":"x","session_id":"c"}\n', "c"),
        ('{"type":"thread.started","thread_id":"t"}\n', "t"),
        ('{"type":"other","thread_id":"t"}\n', None),
        ('{"session_id":7}\n{"session_id":""}\n{broken session\n', None),
        ("", None),
    ],
)
def test_session_ids_in_the_raw_output_have_an_order_of_preference(
    tmp_path: Path, lines: str, found: str | None
) -> None:
    (tmp_path / "raw").write_text(lines)
    assert find_session_id(tmp_path / "raw") == found


SPEAKER = """#!/bin/sh
case "$1" in --version) echo 9.9.9; exit;; esac
cat > /dev/null
echo "$@" >> calls
printf '{"type":"thread.started","thread_id":"T-1"}\\n{"type":"turn.started"}\\n'
printf '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"hi"}}\\n'
printf '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}\\n'
"""


@pytest.fixture
def codex(repo: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that answers like Codex and writes down how it was called."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "codex").write_text(SPEAKER)
    (folder / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return repo / "calls"


def test_a_loop_resumes_sessions_only_on_request(ralph: Callable[..., CompletedProcess[str]], codex: Path) -> None:
    ralph("run", "--agent", "codex", "2")
    fresh = codex.read_text().splitlines()
    assert len(fresh) == 2
    assert not any("resume" in call for call in fresh)
    codex.unlink()
    ralph("run", "--agent", "codex", "--continue-session", "3")
    calls = codex.read_text().splitlines()
    assert ["resume T-1" in call for call in calls] == [False, True, True]


def test_a_resumed_run_resumes_its_session(ralph: Callable[..., CompletedProcess[str]], codex: Path) -> None:
    ralph("run", "--agent", "codex", "--continue-session", "2")
    ralph("run", "4", "--resume")
    calls = codex.read_text().splitlines()
    assert ["resume T-1" in call for call in calls] == [False, True, True, True]


def test_an_agent_that_cannot_restrict_its_tools_says_so(
    ralph: Callable[..., CompletedProcess[str]], codex: Path
) -> None:
    ran = ralph("run", "--agent", "codex", "--allowed-tools", "Read")
    assert ran.returncode == 64
    assert "cannot restrict its tools" in ran.stderr
    assert not codex.exists()


def test_flags_for_known_agents_are_refused_with_a_command(ralph: Callable[..., CompletedProcess[str]]) -> None:
    for flags in (["--model", "x"], ["--allowed-tools", "Read"], ["--continue-session"]):
        ran = ralph("run", "--agent-cmd", "echo hi", *flags)
        assert ran.returncode == 64
        assert f"{flags[0]} has no effect" in ran.stderr
