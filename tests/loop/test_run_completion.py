"""Completion from end to end: every sentence of the contract as a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loop.conftest import ai, meta, rtf1

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loop.conftest import Ran

    Run = Callable[..., Ran]

MARK = "<promise>COMPLETE</promise>"
REPLAN = "<promise>REPLAN</promise>"


def test_a_plain_agent_completes_with_its_last_line(run: Run) -> None:
    ran = run(f"echo hello; echo '{MARK}'")
    assert (ran.code, len(ran.iterations), ran.end["end"]) == (0, 1, "complete")
    assert MARK in ran.end["reason"]


def test_a_mentioned_marker_does_not_complete_and_the_run_says_why(run: Run) -> None:
    ran = run(f'echo "I will not print {MARK} yet"', "3")
    assert (ran.code, len(ran.iterations)) == (2, 3)
    assert f"the agent mentioned {MARK}, but not" in ran.end["reason"]
    assert f"the agent mentioned {MARK}" in ran.out


@pytest.mark.parametrize(
    "script",
    [
        rtf1("text", tag="THINK", text=MARK),
        rtf1("text", tag="SYS", text=MARK),
        rtf1("text", tag="TOOL", text=MARK),
        rtf1("text", tag="PROMPT", text=MARK),
        rtf1("text", tag="USER", text=MARK),
        rtf1("tool_start", tool={"id": "1", "name": "sh", "input": {"cmd": MARK}})
        + "\n"
        + rtf1("tool_output", tool={"id": "1"}, text=f"x\n{MARK}\n")
        + "\n"
        + rtf1("tool_end", tool={"id": "1", "status": "ok"}),
        meta("result", ok=True, text=MARK),
        f"echo '{MARK}' >&2",
        ai(f"```\n{MARK}\n```"),
        ai(f"> {MARK}"),
        f"""echo '@@RALPH@@ {{"type":"text","tag":"AI","text":"{MARK}"'""",
    ],
    ids=["think", "sys", "tool", "prompt", "user", "tool_output", "meta", "stderr", "fence", "quote", "broken"],
)
def test_a_marker_in_other_words_than_the_agents_does_not_complete(run_rtf1: Run, script: str) -> None:
    ran = run_rtf1(f"{ai('working')}\n{script}", "1")
    assert (ran.code, ran.outcomes) == (2, ["ok"])


def test_the_prompt_echoed_by_a_plain_agent_does_not_complete(run: Run, repo: Path) -> None:
    (repo / "PROMPT.md").write_text(f"Do it. When all is done, print this line:\n\n{MARK}\n")
    assert run("cat", "1").code == 2


def test_an_agent_that_echoes_the_prompt_and_then_prints_the_marker_completes(run: Run, repo: Path) -> None:
    (repo / "PROMPT.md").write_text(f"Do it. When all is done, print this line:\n\n{MARK}\n")
    assert run(f"cat; echo '{MARK}'", "1").code == 0


def test_structured_the_marker_may_be_followed_by_words_in_the_final_message(run_rtf1: Run) -> None:
    assert run_rtf1(ai(f"Done.\n{MARK}\nSee the README.")).code == 0


def test_an_earlier_message_followed_by_tools_and_other_words_does_not_count(run_rtf1: Run) -> None:
    tool = (
        rtf1("tool_start", tool={"id": "1", "name": "sh"}) + "\n" + rtf1("tool_end", tool={"id": "1", "status": "ok"})
    )
    ran = run_rtf1(f"{ai(MARK)}\n{tool}\n{ai('one more thing to do')}", "1")
    assert ran.code == 2


def test_a_marker_with_a_bad_exit_code_does_not_complete(run: Run) -> None:
    ran = run(f"echo '{MARK}'; exit 3", "1")
    assert (ran.code, ran.outcomes) == (2, ["failed"])
    assert "not a success" in ran.iterations[0]["completion"]


def test_done_in_the_last_allowed_iteration_is_done(run: Run) -> None:
    ran = run(f"echo work; [ $RALPH_ITERATION = 3 ] && echo '{MARK}'; exit 0", "3")
    assert (ran.code, len(ran.iterations)) == (0, 3)


def test_done_with_the_last_token_is_done(run_rtf1: Run) -> None:
    script = f"{ai(MARK)}\n" + rtf1("usage", usage={"total_tokens": 5000})
    assert run_rtf1(script, "--max-tokens", "100").code == 0


def test_replan_ends_with_its_own_code(run: Run) -> None:
    ran = run(f"echo 'the plan is wrong'; echo '{REPLAN}'")
    assert (ran.code, ran.end["end"]) == (3, "replan")


def test_complete_beats_replan(run_rtf1: Run) -> None:
    assert run_rtf1(ai(f"{MARK}\n{REPLAN}")).code == 0


def test_a_configured_marker_replaces_the_default_ones(run: Run) -> None:
    assert run("echo ALL-DONE", "1", "--completion-promise", "ALL-DONE").code == 0
    assert run(f"echo '{MARK}'", "1", "--completion-promise", "ALL-DONE").code == 2
    assert run("echo LOOP_COMPLETE", "1", "--completion-promise", "ALL-DONE").code == 2


def test_confirmations_must_come_in_a_row(run: Run) -> None:
    script = f"echo working; [ $RALPH_ITERATION = 2 ] || echo '{MARK}'; exit 0"
    ran = run(script, "--confirmations", "2")
    assert (ran.code, len(ran.iterations)) == (0, 4)
    assert "2 times in a row" in ran.end["reason"]
    assert "1 of 2" in ran.iterations[0]["next"]


def test_the_marker_without_a_newline_at_the_end_counts(run: Run) -> None:
    assert run(f"printf '{MARK}'").code == 0


def test_with_crlf_the_marker_counts(run: Run) -> None:
    assert run(f"printf 'done\\r\\n{MARK}\\r\\n'").code == 0


def test_on_a_terminal_colours_and_overwritten_lines_do_not_hide_the_marker(run: Run) -> None:
    ran = run(f"printf 'working 1%%\\rworking 100%%\\r\\n\\033[1;32m{MARK}\\033[0m\\033[K\\r\\n'", "1", "--pty")
    assert ran.code == 0
    words = [e["text"] for e in ran.events if e["type"] == "text"]
    assert words == ["working 100%", MARK]
