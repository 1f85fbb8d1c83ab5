"""The outcome of an iteration, from structure and exit status alone."""

from __future__ import annotations

import pytest

from ralph.judging.judge import Outcome, Verdict, judge
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.runners.process import Ended, EndKind
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolCall, ToolStart, TranscriptEvent
from ralph.transcripts.meta import ErrorClass

DONE = Text(Tag.AI, "<promise>COMPLETE</promise>")
WORDS = Text(Tag.AI, "words")


def verdict(*events: TranscriptEvent, kind: EndKind = EndKind.EXITED, status: int | None = 0) -> Verdict:
    seen = Observation(Markers())
    seen.feed(list(events))
    return judge(Ended(kind, "how it ended", status), seen, structured=True)


def outcome(*events: TranscriptEvent, kind: EndKind = EndKind.EXITED, status: int | None = 0) -> Outcome:
    return verdict(*events, kind=kind, status=status).outcome


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (EndKind.NOT_STARTED, Outcome.NOT_FOUND),
        (EndKind.STOPPED, Outcome.INTERRUPTED),
        (EndKind.IDLE, Outcome.TIMEOUT_IDLE),
        (EndKind.WALL, Outcome.TIMEOUT_WALL),
        (EndKind.LOST, Outcome.CRASHED),
    ],
)
def test_the_end_of_the_process_comes_before_what_the_agent_reports(kind: EndKind, expected: Outcome) -> None:
    found = verdict(DONE, meta.result(ok=True), kind=kind, status=None)
    assert (found.outcome, found.completed, found.why) == (expected, False, "how it ended")


def test_silence_during_a_retry_has_the_outcome_of_the_retried_error() -> None:
    found = verdict(meta.retry("429", ErrorClass.RATE_LIMITED), kind=EndKind.IDLE, status=-15)
    assert found.outcome is Outcome.RATE_LIMITED
    assert "how it ended" in found.why
    assert outcome(meta.retry("429", ErrorClass.RATE_LIMITED), WORDS, kind=EndKind.IDLE) is Outcome.TIMEOUT_IDLE
    assert outcome(meta.retry("?"), kind=EndKind.IDLE) is Outcome.TIMEOUT_IDLE


def test_exit_status() -> None:
    assert outcome(WORDS) is Outcome.OK
    assert outcome(WORDS, status=1) is Outcome.FAILED
    assert outcome(WORDS, status=-11) is Outcome.CRASHED


@pytest.mark.parametrize(
    "said", [(), (Text(Tag.AI, "  \n "),), (Text(Tag.SYS, "a warning"),), (Text(Tag.THINK, "hm"),)]
)
def test_without_words_and_tools_an_iteration_is_empty(said: tuple[TranscriptEvent, ...]) -> None:
    assert outcome(*said) is Outcome.EMPTY


def test_an_iteration_that_only_used_tools_is_not_empty() -> None:
    assert outcome(ToolStart(ToolCall("1", "sh"))) is Outcome.OK


@pytest.mark.parametrize("error", list(ErrorClass))
@pytest.mark.parametrize("status", [0, 1])
def test_the_error_that_the_cli_reports_is_the_outcome(error: ErrorClass, status: int) -> None:
    found = verdict(WORDS, meta.error("because", error), status=status)
    assert (found.outcome.value, found.why) == (error.value, "because")


def test_a_signal_is_a_crash_unless_the_cli_reports_more() -> None:
    assert outcome(WORDS, meta.error("something", ErrorClass.FAILED), status=-9) is Outcome.CRASHED
    assert outcome(WORDS, meta.error("log in", ErrorClass.AUTH), status=-9) is Outcome.AUTH


def test_an_unknown_error_class_is_a_failure() -> None:
    event = meta.error("because")
    event.meta["class"] = "moon phase"
    assert outcome(WORDS, event) is Outcome.FAILED


def test_errors_that_are_not_fatal_do_not_count() -> None:
    assert outcome(WORDS, meta.error("x", ErrorClass.AUTH, fatal=False)) is Outcome.OK
    assert outcome(WORDS, meta.retry("x")) is Outcome.OK
    assert outcome(WORDS, meta.error("x", ErrorClass.AUTH), meta.result(ok=True)) is Outcome.OK
    assert outcome(WORDS, meta.rate_limit(5.0, "close to the limit")) is Outcome.OK


def test_an_error_after_a_good_result_counts() -> None:
    assert outcome(WORDS, meta.result(ok=True), meta.error("x", ErrorClass.AUTH)) is Outcome.AUTH


def test_a_bad_result_takes_its_class_from_itself_or_from_the_error_before() -> None:
    assert outcome(WORDS, meta.result(ok=False)) is Outcome.FAILED
    assert outcome(WORDS, meta.result(ok=False, error_class=ErrorClass.QUOTA)) is Outcome.QUOTA
    assert outcome(WORDS, meta.error("x", ErrorClass.AUTH), meta.result(ok=False)) is Outcome.AUTH


def test_an_agent_that_lingers_after_a_good_result_is_a_success() -> None:
    found = verdict(DONE, meta.result(ok=True), kind=EndKind.LINGERED, status=-15)
    assert (found.outcome, found.completed) == (Outcome.OK, True)


def test_a_marker_completes_only_a_success() -> None:
    assert verdict(DONE).completed
    assert not verdict(DONE, status=1).completed
    assert not verdict(DONE, meta.error("x")).completed
    assert "not a success" in verdict(DONE, status=1).completion_why
    assert not verdict(Text(Tag.AI, "<promise>REPLAN</promise>"), status=1).replan
    assert verdict(Text(Tag.AI, "<promise>REPLAN</promise>")).replan


@pytest.mark.parametrize("tag", [t for t in Tag if t is not Tag.AI])
def test_only_the_agents_own_words_complete(tag: Tag) -> None:
    assert not verdict(WORDS, Text(tag, DONE.text)).completed
