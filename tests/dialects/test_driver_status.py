"""When the RALPH_STATUS block and the fix plan complete a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ralph.dialects.driver import fix_plan
from ralph.dialects.driver.status import StatusReader
from ralph.judging.signals import Claim, Markers, Signal

if TYPE_CHECKING:
    from pathlib import Path


def block(status: str | None = None, signal: str | None = None, advice: str | None = None) -> str:
    lines = ["---RALPH_STATUS---"]
    lines += [f"STATUS: {status}"] if status else []
    lines += ["TASKS_COMPLETED_THIS_LOOP: 1"]
    lines += [f"EXIT_SIGNAL: {signal}"] if signal else []
    lines += [f"RECOMMENDATION: {advice}"] if advice else []
    return "\n".join([*lines, "---END_RALPH_STATUS---"])


def claim(*texts: str, plan: Path | None = None, structured: bool = True) -> Claim:
    reader = StatusReader(Markers(), plan)
    for text in texts:
        reader.feed(text)
    return reader.claim(structured=structured)


@pytest.mark.parametrize(
    ("status", "signal", "expected"),
    [
        ("IN_PROGRESS", "false", Signal.NONE),
        ("COMPLETE", "true", Signal.COMPLETE),
        ("COMPLETE", None, Signal.COMPLETE),
        ("IN_PROGRESS", None, Signal.NONE),
        ("COMPLETE", "false", Signal.NONE),  # an explicit EXIT_SIGNAL beats STATUS
        ("IN_PROGRESS", "true", Signal.COMPLETE),
        (None, "true", Signal.COMPLETE),
        (None, "false", Signal.NONE),
        ("BLOCKED", "false", Signal.QUESTION),
        ("BLOCKED", None, Signal.QUESTION),
        ("BLOCKED", "true", Signal.QUESTION),  # an agent that is blocked is not done
        ("complete", "TRUE", Signal.COMPLETE),
    ],
)
def test_the_exit_rule(status: str | None, signal: str | None, expected: Signal) -> None:
    assert claim(block(status, signal)).signal is expected


def test_the_reason_quotes_the_block() -> None:
    why = claim(block("BLOCKED", "false", "the database is down")).why
    assert "STATUS: BLOCKED" in why
    assert "the database is down" in why


def test_the_last_whole_block_wins() -> None:
    assert claim(block("IN_PROGRESS", "false"), "more work", block("COMPLETE", "true")).signal is Signal.COMPLETE
    assert claim(block("COMPLETE", "true"), "not yet", block("IN_PROGRESS", "false")).signal is Signal.NONE
    cut = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true"
    assert claim(block("IN_PROGRESS", "false"), cut).signal is Signal.NONE


def test_the_markers_of_a_block_must_be_at_the_start_of_a_line() -> None:
    quoted = "\n".join("> " + line for line in block("COMPLETE", "true").split("\n"))
    assert claim(quoted).signal is Signal.NONE
    assert claim("I will print " + block("COMPLETE", "true")).signal is Signal.NONE
    assert claim("Done.\n" + block("COMPLETE", "true") + "\nBye.").signal is Signal.COMPLETE


def test_a_block_may_come_line_by_line_and_in_a_fence() -> None:
    assert claim("```", *block("COMPLETE", "true").split("\n"), "```").signal is Signal.COMPLETE


def test_a_template_that_lists_the_choices_decides_nothing() -> None:
    template = block("IN_PROGRESS | COMPLETE | BLOCKED", "true | false")
    assert claim(template).signal is Signal.NONE
    assert claim(block("COMPLETE", "true"), template).signal is Signal.COMPLETE


def test_a_block_inside_a_line_of_json_counts_if_it_is_the_agents_own() -> None:
    text = "Done.\n" + block("COMPLETE", "true")
    assert claim(json.dumps({"type": "result", "result": text}), structured=False).signal is Signal.COMPLETE
    message = {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}
    assert claim(json.dumps(message), structured=False).signal is Signal.COMPLETE
    for other in (
        {"type": "user", "message": {"content": text}},
        {"type": "message", "message": {"role": "user", "content": text}},
        {"type": "tool_result", "content": text},
        {"prompt": text},
    ):
        assert claim(json.dumps(other), structured=False).signal is Signal.NONE
    assert claim('{"result": "---RALPH_STATUS---\\n broken', structured=False).signal is Signal.NONE


def test_a_block_without_end_does_not_count() -> None:
    assert (
        claim("---RALPH_STATUS---", *["x"] * 5000, "EXIT_SIGNAL: true", "---END_RALPH_STATUS---").signal is Signal.NONE
    )


def test_without_a_block_the_completion_markers_count() -> None:
    assert claim("All is done.\n<promise>COMPLETE</promise>").signal is Signal.COMPLETE
    assert claim("<promise>COMPLETE</promise>", block("IN_PROGRESS", "false")).signal is Signal.NONE
    assert "no RALPH_STATUS block" in claim("hello").why


# -- the plan


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("- [x] a\n- [X] b\n", True),
        ("- [x] a\n- [ ] b\n", False),
        ("- [x] a\n  - [ ] within\n", False),
        ("* [x] a\n", True),
        ("nothing to tick\n", False),
        ("", False),
    ],
)
def test_a_plan_is_complete_when_all_its_boxes_are_ticked(tmp_path: Path, text: str, complete: bool) -> None:
    plan = tmp_path / "fix_plan.md"
    plan.write_text(text)
    assert fix_plan.count(plan).complete is complete


def test_a_missing_plan_is_not_complete(tmp_path: Path) -> None:
    assert not fix_plan.count(tmp_path / "none.md").complete


def test_a_ticked_plan_completes_the_run_without_a_block(tmp_path: Path) -> None:
    plan = tmp_path / "fix_plan.md"
    plan.write_text("- [ ] a\n")
    reader = StatusReader(Markers(), plan)
    reader.feed("worked")
    plan.write_text("- [x] a\n")
    assert reader.claim(structured=True) == Claim(Signal.COMPLETE, "every box in fix_plan.md is ticked (1 of 1)")


def test_an_agent_that_is_not_done_gets_one_more_try_after_the_plan_is_ticked(tmp_path: Path) -> None:
    plan = tmp_path / "fix_plan.md"
    plan.write_text("- [ ] a\n")
    first = StatusReader(Markers(), plan)
    plan.write_text("- [x] a\n")
    first.feed(block("IN_PROGRESS", "false"))
    assert first.claim(structured=True).signal is Signal.NONE
    second = StatusReader(Markers(), plan)
    second.feed(block("IN_PROGRESS", "false"))
    assert second.claim(structured=True).signal is Signal.COMPLETE


def test_blocked_needs_a_person_even_if_the_plan_is_ticked(tmp_path: Path) -> None:
    plan = tmp_path / "fix_plan.md"
    plan.write_text("- [x] a\n")
    assert claim(block("BLOCKED"), plan=plan).signal is Signal.QUESTION


@pytest.mark.parametrize("words", [block("COMPLETE", "true"), "<promise>COMPLETE</promise>"])
def test_a_claim_that_the_plan_contradicts_is_rejected(tmp_path: Path, words: str) -> None:
    plan = tmp_path / "fix_plan.md"
    plan.write_text("- [x] a\n- [ ] b\n")
    rejected = claim(words, plan=plan)
    assert rejected.signal is Signal.NONE
    assert rejected.why.endswith(", but 1 box is still open in fix_plan.md")
    plan.write_text("- [ ] a\n- [ ] b\n")
    assert claim(words, plan=plan).why.endswith(", but 2 boxes are still open in fix_plan.md")


def test_a_claim_without_a_ticked_plan_must_be_repeated(tmp_path: Path) -> None:
    plan = tmp_path / "fix_plan.md"
    plan.write_text("nothing to tick\n")
    assert claim(block("COMPLETE", "true"), plan=plan).times == 2
    assert claim(block("COMPLETE", "true")).times == 2
    plan.write_text("- [x] a\n")
    assert claim(block("COMPLETE", "true"), plan=plan).times == 1


# -- whose words they are


def test_only_a_block_in_the_final_message_counts() -> None:
    reader = StatusReader(Markers())
    reader.feed(block("COMPLETE", "true"))
    reader.boundary()
    assert reader.claim(structured=True).signal is Signal.COMPLETE, "a boundary alone is no new message"
    reader.feed("There is more to do.")
    assert reader.claim(structured=True).signal is Signal.NONE


@pytest.mark.parametrize("fence", ["```", "~~~", "````text"])
def test_a_fenced_block_counts_at_the_end_of_the_message_only(fence: str) -> None:
    fenced = f"{fence}\n{block('COMPLETE', 'true')}\n{fence.rstrip('tex')}"
    assert claim(f"Done.\n{fenced}\n").signal is Signal.COMPLETE
    assert claim(f"I will print\n{fenced}\nwhen it is done.").signal is Signal.NONE
    assert claim(f"{block('IN_PROGRESS', 'false')}\n{fenced}\nis what comes later.").signal is Signal.NONE
    assert claim(f"I will print\n{fenced}\n", "when it is done.").signal is Signal.NONE


PROMPT = f"Work through the plan. When it is done, end with this block:\n\n{block('COMPLETE', 'true', 'none')}\n"


@pytest.mark.parametrize("banner", ["", "agent 1.0\n\n", "> "])
def test_a_block_in_an_echo_of_the_prompt_does_not_count(banner: str) -> None:
    reader = StatusReader(Markers())
    reader.feed(banner + PROMPT)
    assert reader.claim(structured=False, prompt=PROMPT).signal is Signal.NONE
    reader.feed(f"All is done.\n\n{block('COMPLETE', 'true', 'none')}")
    assert reader.claim(structured=False, prompt=PROMPT).signal is Signal.COMPLETE
    reader.feed("$ cat PROMPT.md\n" + PROMPT)
    assert reader.claim(structured=False, prompt=PROMPT).signal is Signal.COMPLETE, "the last block of its own"


@pytest.mark.parametrize("between", ["", "Or:\n", "### Example 2\n```\n"])
def test_examples_one_after_the_other_are_echoes_too(between: str) -> None:
    blocks = f"{block('IN_PROGRESS', 'false')}\n{between}{block('COMPLETE', 'true')}"
    prompt = f"Work.\n\nAt the end, print one of these:\n{blocks}\n"
    output = f"agent 1.0\n{prompt}"
    for texts in ([output], output.split("\n")):
        reader = StatusReader(Markers())
        for text in texts:
            reader.feed(text)
        assert reader.claim(structured=False, prompt=prompt).signal is Signal.NONE
        reader.feed(f"I have done all of it.\n{block('COMPLETE', 'true')}")
        assert reader.claim(structured=False, prompt=prompt).signal is Signal.COMPLETE


def test_in_json_only_the_last_message_counts() -> None:
    done = json.dumps({"type": "assistant", "text": "Done.\n" + block("COMPLETE", "true")})
    more = json.dumps({"type": "assistant", "text": "There is more to do."})
    end = json.dumps({"type": "usage", "tokens": 3})
    assert claim(done, end, structured=False).signal is Signal.COMPLETE
    assert claim(done, more, structured=False).signal is Signal.NONE
    assert claim(f"{done}\n{more}", structured=False).signal is Signal.NONE


@pytest.mark.parametrize("kind", [{"": 8}, ["user"], None, 1])
def test_json_whose_type_is_not_a_string_is_read_all_the_same(kind: object) -> None:
    line = json.dumps({"type": kind, "role": kind, "result": block("COMPLETE", "true")})
    assert claim(line).signal is Signal.COMPLETE
