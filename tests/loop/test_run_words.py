"""Whose words count: real agents that echo, leave processes behind, or talk while they are being ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loop.conftest import Ran

    Run = Callable[..., Ran]

MARK = "<promise>COMPLETE</promise>"
PROMPT = f"Work through TODO.md.\n\nWhen everything is done, end with this line:\n\n{MARK}\n"


@pytest.mark.parametrize(
    "script",
    [
        "cat",
        "echo 'agent 1.0'; echo; cat",
        "echo 'agent 1.0'; cat | sed 's/^/    /'",
        "echo 'agent 1.0'; cat | fold -s -w 30",
        "cat > /dev/null; echo 'I will look at the task first.'; cat PROMPT.md",
        "cat > /dev/null; echo 'I will look at the end of the task.'; tail -n 3 PROMPT.md",
    ],
)
def test_an_echoed_prompt_completes_nothing(run: Run, repo: Path, script: str) -> None:
    (repo / "PROMPT.md").write_text(PROMPT)
    ran = run(script, "1")
    assert (ran.code, ran.iterations[0]["completed"]) == (2, False)


@pytest.mark.parametrize("answer", [f"echo '{MARK}'", f"echo Done.; echo '**{MARK}**'"])
def test_an_answer_after_the_echo_completes(run: Run, repo: Path, answer: str) -> None:
    (repo / "PROMPT.md").write_text(PROMPT)
    assert run(f"echo 'agent 1.0'; cat; {answer}", "1").code == 0


#: Waits until the agent is gone: its parent is then another process.
LATER = "(trap '' TERM; while kill -0 $$ 2>/dev/null; do sleep 0.01; done; sleep 0.05; printf '{}\\n') &"


def test_what_a_background_process_prints_after_the_agents_exit_does_not_count(run: Run) -> None:
    ran = run(f"{LATER.format(MARK)}\necho working", "1")
    assert (ran.code, ran.iterations[0]["completed"]) == (2, False)
    raw = (ran.root / "iterations" / "0001" / "stdout.raw").read_text()
    assert MARK in raw, "it is recorded"
    assert [e["text"] for e in ran.events if e["type"] == "text" and e["tag"] == "SYS"] == [MARK]
    assert any("does not count" in notice["text"] for notice in ran.metas("notice"))


def test_it_does_not_complete_a_line_that_the_agent_began(run: Run) -> None:
    ran = run(f"{LATER.format('COMPLETE')}\nprintf LOOP_", "1")
    assert (ran.code, ran.iterations[0]["completed"]) == (2, False)


def test_it_does_not_spoil_the_agents_own_last_line(run: Run) -> None:
    assert run(f"{LATER.format('bye')}\nprintf LOOP_COMPLETE", "1").code == 0


def test_what_a_background_process_prints_when_it_is_ended_does_not_count(run: Run) -> None:
    stray = f"(trap 'echo \"{MARK}\"; exit' TERM; touch .git/ready; while :; do sleep 0.05; done) &"
    ran = run(f"{stray}\nuntil [ -e .git/ready ]; do sleep 0.01; done\necho working", "1")
    assert (ran.code, ran.iterations[0]["completed"]) == (2, False)
    assert MARK in (ran.root / "iterations" / "0001" / "stdout.raw").read_text()


def test_everything_the_agent_printed_before_its_exit_counts(run: Run) -> None:
    """More than a pipe takes, and a process that keeps it open."""
    ran = run(f"sleep 30 &\nseq 1 400000\necho '{MARK}'", "1")
    assert ran.code == 0
