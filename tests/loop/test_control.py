"""What requests of other terminals do to a run: decisions, with real files and a real switch."""

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


class Desk:
    """A control with all that it talks to."""

    def __init__(self, root: Path, switch: StopSwitch) -> None:
        self.switch = switch
        self.requests = Requests(RunPaths(root))
        self.events: list[dict[str, Any]] = []
        self.held: list[float] = []
        self.control = Control(self.requests, switch, self.emit, lambda _: None, self.held.append, "ralph resume")

    def emit(self, events: list[TranscriptEvent]) -> None:
        self.events += [event.meta for event in events if isinstance(event, Meta)]

    def states(self, kind: str) -> list[str]:
        return [fields["state"] for fields in self.events if fields["kind"] == kind]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with StopSwitch(Requests(RunPaths(tmp_path)).prepare()) as switch:
        yield Desk(tmp_path, switch)


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
def test_a_stop_waits_for_an_iteration_only(asked: Stop | None, working: bool, now: bool) -> None:
    assert ends_now(asked, working=working) is now


def test_a_prompt_without_notes_is_as_it_was() -> None:
    assert with_notes([], "do it\n") == "do it\n"
    notes = [Note("1", "  first\n"), Note("2", "second\nline")]
    assert with_notes(notes, "do it\n") == "<user-notes>\nfirst\n\nsecond\nline\n</user-notes>\n\ndo it\n"


def test_notes_that_nobody_saw_are_against_completion() -> None:
    assert unread([]) is None
    assert "a note came" in str(unread([Note("1", "x")]))
    assert "2 notes came" in str(unread([Note("1", "x"), Note("2", "y")]))


def test_a_stop_after_the_iteration_does_not_undo_what_was_decided(desk: Desk) -> None:
    desk.control.begin("prompt")
    desk.requests.ask_stop(now=False)
    desk.control.look()
    assert desk.switch.kind is None
    complete = Step(End.COMPLETE, "done")
    assert desk.control.finish(complete) == complete
    assert desk.control.finish(Step(None, "going on")).end is End.STOPPED


def test_from_then_on_it_is_due_at_once(desk: Desk) -> None:
    desk.control.begin("prompt")
    desk.control.finish(Step(None, "going on"))
    desk.requests.ask_stop(now=False)
    desk.control.look()
    assert (desk.switch.kind, desk.switch.urgent) == (StopKind.STOPPED, False)


def test_now_and_at_once(desk: Desk) -> None:
    desk.control.begin("prompt")
    desk.requests.ask_stop(now=True)
    desk.control.look()
    assert (desk.switch.kind, desk.switch.urgent) == (StopKind.STOPPED, False)
    desk.requests.ask_stop(now=True)
    desk.control.look()
    assert (desk.switch.kind, desk.switch.urgent) == (StopKind.STOPPED, True)


def test_only_a_pause_that_is_now_interrupts_the_agent(desk: Desk) -> None:
    desk.control.begin("prompt")
    desk.requests.ask_pause(now=False)
    desk.control.look()
    assert desk.control.interruption() is None
    desk.requests.ask_pause(now=True)
    desk.control.look()
    assert desk.control.interruption() == PAUSED


def test_a_pause_lasts_until_it_is_ended_from_outside_and_is_measured(desk: Desk) -> None:
    desk.requests.ask_pause(now=False)
    timer = threading.Timer(0.3, desk.requests.end_pause)
    timer.start()
    began = time.monotonic()
    assert desk.control.wait(0) is False
    timer.join()
    assert 0.25 < time.monotonic() - began < 5
    assert desk.states("pause") == ["paused", "resumed"]
    assert desk.held == [pytest.approx(desk.control.paused)]
    assert desk.control.paused >= 0.25


def test_a_pause_within_a_wait_does_not_make_it_shorter(desk: Desk) -> None:
    timers = [
        threading.Timer(0.1, lambda: desk.requests.ask_pause(now=False)),
        threading.Timer(0.3, desk.requests.end_pause),
    ]
    for timer in timers:
        timer.start()
    began = time.monotonic()
    assert desk.control.wait(0.8) is False
    assert time.monotonic() - began >= 0.8
    for timer in timers:
        timer.join()
    assert desk.states("pause") == ["paused", "resumed"]


def test_a_stop_ends_a_pause(desk: Desk) -> None:
    desk.requests.ask_pause(now=False)
    timer = threading.Timer(0.1, lambda: desk.requests.ask_stop(now=False))
    timer.start()
    assert desk.control.wait(60) is True
    timer.join()


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_an_iteration_that_worked_consumes_notes(desk: Desk, outcome: Outcome) -> None:
    desk.requests.add_note("words")
    assert "words" in desk.control.begin("prompt")
    desk.control.finish(Step(None, ""))
    desk.control.consumed(verdict(outcome))
    worked = outcome is Outcome.OK
    assert ("words" in desk.control.begin("prompt")) is not worked
    assert desk.states("steer") == (["arrived", "read"] if worked else ["arrived"])
    assert desk.control.left() == ([] if worked else ["words"])


def test_a_note_that_came_later_is_not_consumed_with_the_others(desk: Desk) -> None:
    desk.requests.add_note("first")
    desk.control.begin("prompt")
    desk.requests.add_note("second")
    assert desk.control.unread() is not None
    desk.control.finish(Step(None, ""))
    desk.control.consumed(verdict(Outcome.OK))
    assert [note.text for note in desk.requests.notes()] == ["second"]


def test_a_note_that_was_dropped_while_it_was_worked_on_is_not_told_as_read(desk: Desk) -> None:
    desk.requests.add_note("first")
    desk.control.begin("prompt")
    desk.requests.drop_notes([note.name for note in desk.requests.notes()])
    desk.control.finish(Step(None, ""))
    desk.control.consumed(verdict(Outcome.OK))
    assert desk.states("steer") == ["arrived", "dropped"]
