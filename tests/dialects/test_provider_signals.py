"""The signals of the provider convention, in the forms in which agents write them."""

from __future__ import annotations

import pytest

from ralph.dialects.provider.signals import RalphexReader
from ralph.judging.signals import Signal


def read(*texts: str, structured: bool = True, objection: str | None = None, plan: bool = False) -> tuple[Signal, str]:
    reader = RalphexReader((lambda: objection) if plan or objection else None)
    for text in texts:
        reader.boundary() if text == "TOOL" else reader.feed(text)
    claim = reader.claim(structured=structured)
    return claim.signal, claim.why


@pytest.mark.parametrize(
    ("name", "signal"),
    [
        ("ALL_TASKS_DONE", Signal.COMPLETE),
        ("COMPLETED", Signal.COMPLETE),
        ("REVIEW_DONE", Signal.COMPLETE),
        ("CODEX_REVIEW_DONE", Signal.COMPLETE),
        ("PLAN_READY", Signal.COMPLETE),
        ("TASK_FAILED", Signal.TASK_FAILED),
        ("FAILED", Signal.FAILED),
        ("SOMETHING_NEW", Signal.NONE),
    ],
)
def test_each_signal_has_the_meaning_that_the_convention_defines(name: str, signal: Signal) -> None:
    assert read(f"I am at the end.\n<<<RALPHEX:{name}>>>")[0] is signal


@pytest.mark.parametrize(
    "line",
    [
        "<<<RALPHEX:COMPLETED>>>",
        "  **<<<RALPHEX:COMPLETED>>>**  ",
        "`<<<RALPHEX:COMPLETED>>>`",
        "All tests pass. <<<RALPHEX:COMPLETED>>>",
        "<<<RALPHEX:COMPLETED>>> All tests pass.",
        "Done: <<<RALPHEX:COMPLETED>>>.",
    ],
)
def test_a_signal_alone_or_at_the_start_or_end_of_its_line_counts(line: str) -> None:
    assert read(line)[0] is Signal.COMPLETE


@pytest.mark.parametrize(
    "text",
    [
        "I will not print <<<RALPHEX:COMPLETED>>> yet.",
        "When all is done I print `<<<RALPHEX:COMPLETED>>>`.",
        'At the end comes "<<<RALPHEX:COMPLETED>>>"',
        "```\n<<<RALPHEX:COMPLETED>>>\n```",
        "<<<RALPHEX:COMPLETED",
        "<<RALPHEX:COMPLETED>>",
    ],
)
def test_a_signal_that_is_only_mentioned_does_not_count(text: str) -> None:
    assert read(text)[0] is Signal.NONE


def test_text_after_a_tool_call_is_a_new_message() -> None:
    assert read("Then I print <<<RALPHEX:COMPLETED>>>", "TOOL", "Task 1 is done, two are left.")[0] is Signal.NONE
    assert read("<<<RALPHEX:COMPLETED>>>", "TOOL")[0] is Signal.COMPLETE


def test_the_last_signal_of_a_message_counts() -> None:
    assert read("<<<RALPHEX:TASK_FAILED>>>\nNo, it works.\n<<<RALPHEX:COMPLETED>>>")[0] is Signal.COMPLETE
    assert read("<<<RALPHEX:COMPLETED>>>", "Error: the commit failed", "<<<RALPHEX:TASK_FAILED>>>")[0] is (
        Signal.TASK_FAILED
    )


def test_without_structure_only_the_last_line_counts() -> None:
    assert read("<<<RALPHEX:COMPLETED>>>", "the end", structured=False)[0] is Signal.NONE
    assert read("the end", "<<<RALPHEX:COMPLETED>>>", "", structured=False)[0] is Signal.COMPLETE


@pytest.mark.parametrize("size", [1, 2, 5, 11, 20])
def test_a_signal_that_a_wrapper_broke_into_lines_counts(size: int) -> None:
    """Some wrappers print a newline after each fragment of a model's text."""
    words = "All is done. <<<RALPHEX:ALL_TASKS_DONE>>>"
    assert read(*(words[at : at + size] for at in range(0, len(words), size)))[0] is Signal.COMPLETE
    assert read("if a <", "b then c <<", "2 and <<<RALPHEX:", "no")[0] is Signal.NONE


def test_text_that_a_wrapper_joined_to_a_signal_does_not_hide_it() -> None:
    assert read("Task 3 is done.<<<RALPHEX:ALL_TASKS_DONE>>>Summary: all tests pass")[0] is Signal.COMPLETE


def test_a_question_is_shown_with_its_options() -> None:
    signal, why = read(
        '<<<RALPHEX:QUESTION>>>\n{"question": "Which database?",\n "options": ["A", "B"]}', "<<<RALPHEX:END>>>"
    )
    assert signal is Signal.QUESTION
    assert "Which database? (A / B)" in why


def test_a_question_may_be_on_one_line_or_plain_text() -> None:
    assert read('<<<RALPHEX:QUESTION>>>{"question": "Why?"}<<<RALPHEX:END>>>')[1].endswith("Why?")
    assert read("<<<RALPHEX:QUESTION>>> really? <<<RALPHEX:END>>>")[1].endswith("really?")


def test_a_question_without_end_does_not_count() -> None:
    assert read('<<<RALPHEX:QUESTION>>>\n{"question": "Why?"}')[0] is Signal.NONE


def test_a_draft_waits_for_a_person_and_is_kept() -> None:
    reader = RalphexReader()
    reader.feed("Here it is:\n<<<RALPHEX:PLAN_DRAFT>>>\n# Plan\n- [ ] one")
    reader.feed("<<<RALPHEX:COMPLETED>>> stands in the draft\n<<<RALPHEX:END>>>")
    assert reader.claim(structured=True).signal is Signal.QUESTION
    assert reader.draft == "# Plan\n- [ ] one\n<<<RALPHEX:COMPLETED>>> stands in the draft"


def test_an_objection_prevents_completion() -> None:
    signal, why = read("<<<RALPHEX:ALL_TASKS_DONE>>>", objection="plan.md has an open box")
    assert signal is Signal.NONE
    assert why.endswith("but plan.md has an open box")
    assert read("<promise>COMPLETE</promise>", objection="plan.md has an open box")[0] is Signal.NONE


def test_the_signals_of_reviews_do_not_end_a_plan() -> None:
    assert read("<<<RALPHEX:REVIEW_DONE>>>", plan=True)[0] is Signal.NONE
    assert read("<<<RALPHEX:ALL_TASKS_DONE>>>", plan=True)[0] is Signal.COMPLETE


def test_completion_markers_count_as_well() -> None:
    assert read("done\n<promise>COMPLETE</promise>")[0] is Signal.COMPLETE
    assert read("no\n<promise>REPLAN</promise>")[0] is Signal.REPLAN


def test_in_plain_output_an_echo_of_the_prompt_is_no_signal() -> None:
    prompt = "Do the tasks of the plan. When all of them are done, output:\n\n<<<RALPHEX:ALL_TASKS_DONE>>>\n"
    reader = RalphexReader()
    reader.feed(f"wrapper 1.0\n{prompt}")
    assert reader.claim(structured=False, prompt=prompt).signal is Signal.NONE
    assert "repeat the prompt" in reader.claim(structured=False, prompt=prompt).why
    reader.feed("All tasks are done.\n<<<RALPHEX:ALL_TASKS_DONE>>>")
    assert reader.claim(structured=False, prompt=prompt).signal is Signal.COMPLETE
    reader.boundary()
    assert reader.claim(structured=False, prompt=prompt).signal is Signal.NONE, "something followed it"
