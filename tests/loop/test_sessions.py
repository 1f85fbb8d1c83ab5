"""Which session an iteration belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.judging.judge import Outcome, Verdict
from ralph.judging.signals import Claim, Signal
from ralph.launching.launcher import SessionMode
from ralph.loop.sessions import Sessions, Ticket, find_session_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

TELLS = SessionMode.RESUME
NAMED = SessionMode.NAME


def verdict(outcome: Outcome = Outcome.OK) -> Verdict:
    return Verdict(outcome, "", Claim(Signal.NONE, ""))


def test_without_the_wish_there_is_no_session() -> None:
    sessions = Sessions(SessionMode.FRESH, 0)
    sessions.after(Ticket(), "abc", verdict())
    assert sessions.next() == Ticket()


def test_the_id_that_the_agent_told_is_resumed() -> None:
    sessions = Sessions(TELLS, 0)
    first = sessions.next()
    assert first == Ticket()
    sessions.after(first, "abc", verdict())
    assert sessions.next() == Ticket("abc", resume=True)


def test_an_agent_that_tells_no_id_gets_one_from_us() -> None:
    sessions = Sessions(NAMED, 0)
    first = sessions.next()
    assert first.session
    assert not first.resume
    sessions.after(first, None, verdict())
    assert sessions.next() == Ticket(first.session, resume=True)


def test_a_session_that_is_too_old_is_not_resumed() -> None:
    sessions = Sessions(TELLS, expiry=100, now=0)
    sessions.after(sessions.next(now=0), "abc", verdict())
    assert sessions.next(now=99) == Ticket("abc", resume=True)
    assert sessions.next(now=101) == Ticket()


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.EMPTY, Outcome.CONTEXT_EXCEEDED])
def test_a_resumed_session_that_fails_is_given_up(outcome: Outcome) -> None:
    sessions = Sessions(TELLS, 0)
    sessions.after(sessions.next(), "abc", verdict())
    sessions.after(sessions.next(), None, verdict(outcome))
    assert sessions.next() == Ticket()


def test_a_session_outlives_a_busy_provider() -> None:
    sessions = Sessions(TELLS, 0)
    sessions.after(sessions.next(), "abc", verdict())
    sessions.after(sessions.next(), None, verdict(Outcome.RATE_LIMITED))
    assert sessions.next() == Ticket("abc", resume=True)


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
def test_an_id_is_found_in_the_raw_output_in_the_order_of_the_chain(
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


def test_a_loop_resumes_only_when_asked(ralph: Callable[..., CompletedProcess[str]], codex: Path) -> None:
    ralph("run", "--agent", "codex", "2")
    fresh = codex.read_text().splitlines()
    assert len(fresh) == 2
    assert not any("resume" in call for call in fresh)
    codex.unlink()
    ralph("run", "--agent", "codex", "--continue-session", "3")
    calls = codex.read_text().splitlines()
    assert ["resume T-1" in call for call in calls] == [False, True, True]


def test_a_run_that_is_gone_on_with_goes_on_with_its_session(
    ralph: Callable[..., CompletedProcess[str]], codex: Path
) -> None:
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
