"""When an agent's words say that it is done, and when they only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.judging.signals import FinalMessage, Markers, Signal

MARK = "<promise>COMPLETE</promise>"
REPLAN = "<promise>REPLAN</promise>"


def claim(*texts: str, structured: bool = True, markers: Markers | None = None) -> Signal:
    message = FinalMessage(markers or Markers())
    for text in texts:
        message.feed(text)
    return message.claim(structured=structured).signal


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("marker", [MARK, "LOOP_COMPLETE"])
@pytest.mark.parametrize("form", ["{}", "done.\n{}", "done.\n\n  {}  \n\n", "a\r\n{}\r\n"])
def test_alone_on_the_last_line_it_completes(structured: bool, marker: str, form: str) -> None:
    assert claim(form.format(marker), structured=structured) is Signal.COMPLETE


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        f"I will not print {MARK} yet",
        f"{MARK} is what I print when I am done",
        f"> {MARK}",
        f'"{MARK}"',
        f"- {MARK}",
        f"{MARK}{MARK}",
        f"{MARK}.",
        "<promise>COMPLETE",
        "<promise>complete</promise>",
        "loop_complete",
        "LOOP_COMPLETED",
        "COMPLETE",
        "<promise>DONE</promise>",
        "",
    ],
)
def test_mentioned_quoted_or_changed_it_does_not(structured: bool, text: str) -> None:
    assert claim(text, structured=structured) is Signal.NONE


def test_structured_other_words_may_follow_it_in_the_same_message() -> None:
    assert claim(f"{MARK}\nThat was all.") is Signal.COMPLETE


def test_plain_other_words_may_not_follow_it() -> None:
    assert claim(MARK, "That was all.", structured=False) is Signal.NONE
    assert claim(f"{MARK}\nThat was all.", structured=False) is Signal.NONE


def test_plain_empty_lines_may_follow_it() -> None:
    assert claim(MARK, "", "   ", "\t", structured=False) is Signal.COMPLETE


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{MARK}\n```",
        f"~~~\n{MARK}\n~~~",
        f"```xml\n{MARK}\n```\nThat is how it looks.",
        f"```\nunclosed\n{MARK}",
        f"~~~ text\n```\n{MARK}\n```\n~~~",
        f"````\n```\n{MARK}\n```\n````",
        f"   ```\n{MARK}\n   ```",
        f"```\n``` not a closing fence\n{MARK}\n```",
        f"```\n~~~\n{MARK}\n```",
    ],
)
def test_in_a_code_fence_it_does_not_count(text: str) -> None:
    assert claim(text) is Signal.NONE
    assert claim(*text.split("\n")) is Signal.NONE, "line by line is the same"


@pytest.mark.parametrize(
    "text",
    [
        f"```\ncode\n```\n{MARK}",
        f"```py\n```\n~~~\n~~~\n{MARK}",
        f"````\n```\n````\n{MARK}",
        f"```\ncode\n``````\n{MARK}",
        f"```make test``` passes now.\n{MARK}",
        f"``` is a fence, and ` is not\n{MARK}",
    ],
)
def test_after_a_fence_that_was_closed_it_counts(text: str) -> None:
    assert claim(text) is Signal.COMPLETE
    assert claim(*text.split("\n")) is Signal.COMPLETE


def test_only_the_final_message_counts() -> None:
    message = FinalMessage(Markers())
    message.feed(MARK)
    message.boundary()
    message.feed("I have to look once more.")
    assert message.claim(structured=True).signal is Signal.NONE


def test_tools_after_the_last_words_do_not_take_them_back() -> None:
    message = FinalMessage(Markers())
    message.feed(MARK)
    message.boundary()
    message.feed(" \n")
    assert message.claim(structured=True).signal is Signal.COMPLETE


def test_an_unclosed_fence_ends_with_its_message() -> None:
    message = FinalMessage(Markers())
    message.feed("```\nnot closed")
    message.boundary()
    message.feed(MARK)
    assert message.claim(structured=True).signal is Signal.COMPLETE


@pytest.mark.parametrize("structured", [True, False])
def test_replan_is_a_signal_of_its_own(structured: bool) -> None:
    assert claim("the plan is wrong", REPLAN, structured=structured) is Signal.REPLAN


def test_complete_beats_replan_in_either_order() -> None:
    assert claim(f"{REPLAN}\n{MARK}") is Signal.COMPLETE
    assert claim(f"{MARK}\n{REPLAN}") is Signal.COMPLETE


@pytest.mark.parametrize("structured", [True, False])
def test_a_configured_marker_replaces_both(structured: bool) -> None:
    markers = Markers.configured("ALL DONE HERE")
    assert claim("ALL DONE HERE", structured=structured, markers=markers) is Signal.COMPLETE
    assert claim("<promise>ALL DONE HERE</promise>", structured=structured, markers=markers) is Signal.COMPLETE
    assert claim(MARK, structured=structured, markers=markers) is Signal.NONE
    assert claim("LOOP_COMPLETE", structured=structured, markers=markers) is Signal.NONE


def test_a_configured_marker_leaves_replan_as_it_is() -> None:
    assert claim(REPLAN, markers=Markers.configured("X")) is Signal.REPLAN


def test_a_configured_marker_with_spaces_around_it_still_matches() -> None:
    assert claim("DONE", markers=Markers.configured(" DONE ")) is Signal.COMPLETE


@given(st.text(min_size=1).filter(lambda t: t.strip()), st.booleans())
def test_words_on_the_same_line_never_complete(words: str, structured: bool) -> None:
    for line in words.splitlines() or [words]:
        if line.strip():
            assert claim(f"{line.strip()} {MARK}", structured=structured) is Signal.NONE


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("gap", [1, 80, 300, 5000])
def test_a_long_line_that_ends_with_the_marker_does_not_complete(structured: bool, gap: int) -> None:
    assert claim("x" * 500 + " " * gap + MARK, structured=structured) is Signal.NONE


def test_the_reason_says_what_was_printed_and_where() -> None:
    message = FinalMessage(Markers())
    message.feed(f"I will not print {MARK} yet")
    why = message.claim(structured=True).why
    assert MARK in why
    assert "not alone on a line of its final message" in why


def test_the_reason_names_the_marker_that_was_printed() -> None:
    message = FinalMessage(Markers())
    message.feed("LOOP_COMPLETE")
    assert message.claim(structured=False).why == "the agent printed LOOP_COMPLETE as the last line of its output"


def test_the_reason_names_the_expected_markers() -> None:
    assert "LOOP_COMPLETE" in FinalMessage(Markers()).claim(structured=True).why


@given(st.lists(st.sampled_from(["a", MARK, REPLAN, "```", "~~~", "", "x " + MARK]), max_size=8))
def test_one_block_and_line_by_line_are_the_same(lines: list[str]) -> None:
    assert claim("\n".join(lines)) is claim(*lines)
    assert claim("\n".join(lines), structured=False) is claim(*lines, structured=False)


# -- emphasis


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("marker", [MARK, "LOOP_COMPLETE"])
@pytest.mark.parametrize("form", ["**{}**", "*{}*", "__{}__", "_{}_", "***{}***", "`{}`", "**`{}`**", "  **{}**  "])
def test_emphasis_and_inline_code_around_the_whole_marker_do_not_matter(
    structured: bool, marker: str, form: str
) -> None:
    assert claim(f"All done.\n{form.format(marker)}", structured=structured) is Signal.COMPLETE


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize(
    "text", ["**LOOP_COMPLETE", "LOOP_COMPLETE**", "**LOOP_COMPLETE*", "**LOOP_COMPLETE**!", "~~LOOP_COMPLETE~~", "**"]
)
def test_other_signs_around_it_do(structured: bool, text: str) -> None:
    assert claim(text, structured=structured) is Signal.NONE


def test_a_marker_that_has_such_signs_itself_counts() -> None:
    markers = Markers.configured("__DONE__")
    assert claim("__DONE__", markers=markers) is Signal.COMPLETE
    assert claim("**__DONE__**", markers=markers) is Signal.COMPLETE
    assert claim("DONE", markers=markers) is Signal.NONE
    assert claim("*LOOP_REPLAN*", markers=Markers(replan=("LOOP_REPLAN",))) is Signal.REPLAN


def test_plain_nothing_may_follow_it_not_even_a_tool_call_or_an_echo() -> None:
    message = FinalMessage(Markers())
    message.feed(f"Done.\n{MARK}")
    assert message.claim(structured=False).signal is Signal.COMPLETE
    message.boundary("Do the work.")
    assert message.claim(structured=False).signal is Signal.NONE
