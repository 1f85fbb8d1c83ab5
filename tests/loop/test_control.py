"""What requests from other terminals do to a run, with real files and a real switch."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from ralph.journal.layout import RunPaths
from ralph.journal.requests import Note, Requests, Stop
from ralph.judging.judge import Outcome, Verdict
from ralph.judging.signals import Claim, Signal
from ralph.loop.control import Control, ends_now, unread, with_notes
from ralph.loop.decide import PAUSED, End, Step
from ralph.runners.stop import StopKind, StopSwitch
from ralph.transcripts.events import Meta

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ralph.transcripts.events import TranscriptEvent


class Requested:
    """A control with everything it talks to."""

    def __init__(self, root: Path, switch: StopSwitch) -> None:
        self.switch = switch
        self.requests = Requests(RunPaths(root))
        self.events: list[dict[str, Any]] = []
        self.pauses: list[float] = []
        self.control = Control(self.requests, switch, self.emit, lambda _: None, self.pauses.append, "ralph resume")

    def emit(self, events: list[TranscriptEvent]) -> None:
        self.events += [event.meta for event in events if isinstance(event, Meta)]

    def states(self, kind: str) -> list[str]:
        return [fields["state"] for fields in self.events if fields["kind"] == kind]


@pytest.fixture
def requested(tmp_path: Path) -> Iterator[Requested]:
    with StopSwitch(Requests(RunPaths(tmp_path)).make()) as switch:
        yield Requested(tmp_path, switch)


def verdict(outcome: Outcome) -> Verdict:
    return Verdict(outcome, "why", Claim(Signal.NONE, "why"))


@pytest.mark.parametrize(
    ("asked", "working", "now"),
    [
        (None, True, False),
        (None, False, False),
        (Stop.FINISH, True, False),
        (Stop.FINISH, False, True),
        (Stop.NOW, True, True),
        (Stop.AT_ONCE, True, True),
    ],
)
def test_a_stop_waits_only_for_a_running_iteration(asked: Stop | None, working: bool, now: bool) -> None:
    assert ends_now(asked, working=working) is now


def test_notes_come_before_the_prompt() -> None:
    assert with_notes([], "do it\n") == "do it\n"
    notes = [Note("1", "  first\n"), Note("2", "second\nline")]
    assert with_notes(notes, "do it\n") == "<user-notes>\nfirst\n\nsecond\nline\n</user-notes>\n\ndo it\n"


def test_unread_notes_prevent_completion() -> None:
    assert unread([]) is None
    assert "a new note has arrived" in str(unread([Note("1", "x")]))
    assert "2 new notes have arrived" in str(unread([Note("1", "x"), Note("2", "y")]))


def test_a_stop_after_the_iteration_does_not_undo_what_was_decided(requested: Requested) -> None:
    requested.control.begin("prompt")
    requested.requests.ask_stop(now=False)
    requested.control.look()
    assert requested.switch.kind is None
    complete = Step(End.COMPLETE, "done")
    assert requested.control.finish(complete) == complete
    assert requested.control.finish(Step(None, "continuing")).end is End.STOPPED


def test_between_iterations_a_stop_is_due_at_once(requested: Requested) -> None:
    requested.control.begin("prompt")
    requested.control.finish(Step(None, "continuing"))
    requested.requests.ask_stop(now=False)
    requested.control.look()
    assert (requested.switch.kind, requested.switch.urgent) == (StopKind.STOPPED, False)


def test_a_second_stop_now_is_urgent(requested: Requested) -> None:
    requested.control.begin("prompt")
    requested.requests.ask_stop(now=True)
    requested.control.look()
    assert (requested.switch.kind, requested.switch.urgent) == (StopKind.STOPPED, False)
    requested.requests.ask_stop(now=True)
    requested.control.look()
    assert (requested.switch.kind, requested.switch.urgent) == (StopKind.STOPPED, True)


def test_only_pause_now_interrupts_the_agent(requested: Requested) -> None:
    requested.control.begin("prompt")
    requested.requests.ask_pause(now=False)
    requested.control.look()
    assert requested.control.interruption() is None
    requested.requests.ask_pause(now=True)
    requested.control.look()
    assert requested.control.interruption() == PAUSED


def test_a_pause_lasts_until_resume_and_is_measured(requested: Requested) -> None:
    requested.requests.ask_pause(now=False)
    timer = threading.Timer(0.3, requested.requests.end_pause)
    timer.start()
    began = time.monotonic()
    assert requested.control.wait(0) is False
    timer.join()
    assert 0.25 < time.monotonic() - began < 5
    assert requested.states("pause") == ["paused", "resumed"]
    assert requested.pauses == [pytest.approx(requested.control.paused)]
    assert requested.control.paused >= 0.25


def test_a_pause_within_a_wait_does_not_make_it_shorter(requested: Requested) -> None:
    timers = [
        threading.Timer(0.1, lambda: requested.requests.ask_pause(now=False)),
        threading.Timer(0.3, requested.requests.end_pause),
    ]
    for timer in timers:
        timer.start()
    began = time.monotonic()
    assert requested.control.wait(0.8) is False
    assert time.monotonic() - began >= 0.8
    for timer in timers:
        timer.join()
    assert requested.states("pause") == ["paused", "resumed"]


def test_a_stop_ends_a_pause(requested: Requested) -> None:
    requested.requests.ask_pause(now=False)
    timer = threading.Timer(0.1, lambda: requested.requests.ask_stop(now=False))
    timer.start()
    assert requested.control.wait(60) is True
    timer.join()


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_a_successful_iteration_consumes_notes(requested: Requested, outcome: Outcome) -> None:
    requested.requests.add_note("words")
    assert "words" in requested.control.begin("prompt")
    requested.control.finish(Step(None, ""))
    requested.control.consumed(verdict(outcome))
    worked = outcome is Outcome.OK
    assert ("words" in requested.control.begin("prompt")) is not worked
    assert requested.states("steer") == (["arrived", "read"] if worked else ["arrived"])
    assert requested.control.unread_notes() == ([] if worked else ["words"])


def test_a_note_that_arrives_later_is_not_consumed(requested: Requested) -> None:
    requested.requests.add_note("first")
    requested.control.begin("prompt")
    requested.requests.add_note("second")
    assert requested.control.unread() is not None
    requested.control.finish(Step(None, ""))
    requested.control.consumed(verdict(Outcome.OK))
    assert [note.text for note in requested.requests.notes()] == ["second"]


def test_a_note_that_is_dropped_during_an_iteration_is_not_reported_as_read(requested: Requested) -> None:
    requested.requests.add_note("first")
    requested.control.begin("prompt")
    requested.requests.drop([note.name for note in requested.requests.notes()])
    requested.control.finish(Step(None, ""))
    requested.control.consumed(verdict(Outcome.OK))
    assert requested.states("steer") == ["arrived", "dropped"]
