"""Requests from other terminals to a running loop: stop, pause, and notes for the next prompt."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ralph.journal.requests import Note, Pause, Requests, Stop
from ralph.judging.judge import Outcome
from ralph.loop import report
from ralph.loop.decide import PAUSED, End, Step
from ralph.transcripts import meta

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.judging.judge import Verdict
    from ralph.runners.stop import StopKind, StopSwitch
    from ralph.transcripts.events import TranscriptEvent

_STEP = 1.0

STOPPED = "stopped with `ralph stop`"


def ends_now(asked: Stop | None, *, working: bool) -> bool:
    """Whether a stop is due. Between iterations there is nothing to finish first."""
    return asked is not None and (asked is not Stop.FINISH or not working)


def with_notes(notes: list[Note], prompt: str) -> str:
    """The prompt with the user's notes in front of it, oldest first."""
    if not notes:
        return prompt
    words = "\n\n".join(note.text.strip() for note in notes)
    return f"<user-notes>\n{words}\n</user-notes>\n\n{prompt}"


def unread(notes: list[Note]) -> str | None:
    """Why a claim to be done is not accepted: the user asked for something that the agent has not seen."""
    match len(notes):
        case 0:
            return None
        case 1:
            return "the agent says it is done, but a new note has arrived (ralph steer)"
        case count:
            return f"the agent says it is done, but {count} new notes have arrived (ralph steer)"


class Control:
    """The loop's side of the requests. The switch calls `look` on every tick and when a request arrives; the other
    methods act on what it found."""

    def __init__(
        self,
        requests: Requests,
        switch: StopSwitch,
        emit: Callable[[list[TranscriptEvent]], None],
        show: Callable[[float], None],
        on_resume: Callable[[float], None],
        resume: str,
    ) -> None:
        """`show` gets how long a pause has lasted so far, `on_resume` how long it was. `resume` is the command that
        ends it."""
        self._requests = requests
        self._switch = switch
        self._emit = emit
        self._show = show
        self._on_resume = on_resume
        self._resume = resume
        self._working = False
        self._stop: Stop | None = None
        self._pause: Pause | None = None
        self._waiting: dict[str, Note] = {}
        self._given: list[Note] = []
        #: seconds
        self.paused = 0.0
        switch.watch(self.look)

    # -- looking for requests

    def look(self) -> None:
        if self._requests.gone():
            return  # the run's folder was deleted: that cancels no request
        stop, self._stop = self._stop, self._requests.stop()
        if self._stop is not None and self._stop is not stop and self._working:
            self._note(
                "ralph stop: the run ends after this iteration (`ralph stop --now` ends it now)"
                if self._stop is Stop.FINISH
                else "ralph stop --now: ending the agent"
            )
        if ends_now(self._stop, working=self._working):
            self._switch.ask(urgent=self._stop is Stop.AT_ONCE)
        before, self._pause = self._pause, self._requests.pause()
        if self._working and self._pause is not before:
            self._note(_pause_asked(self._pause))
        self._look_for_notes()

    def _look_for_notes(self) -> None:
        found = {note.name: note for note in self._requests.notes(self._waiting)}
        new = [note for name, note in found.items() if name not in self._waiting]
        gone = [note for name, note in self._waiting.items() if name not in found]
        self._waiting = found
        if new or gone:
            events: list[TranscriptEvent] = [report.steer("arrived", note.text) for note in new]
            self._emit([*events, *(report.steer("dropped", note.text) for note in gone)])

    def restore(self) -> None:
        """Writes the known requests again after the run's folder was deleted."""
        self._requests.put_back(self._stop, self._pause, list(self._waiting.values()))

    @property
    def pausing(self) -> bool:
        return self._pause is not None

    def interruption(self) -> str | None:
        """Why the running agent must end now, if it must."""
        return PAUSED if self._pause is Pause.NOW else None

    # -- an iteration

    def begin(self, prompt: str) -> str:
        """The prompt with the notes in front of it. Notes that arrive later are for the next prompt."""
        self.look()
        self._given = list(self._waiting.values())
        self._working = True
        return with_notes(self._given, prompt)

    def unread(self) -> str | None:
        self.look()
        return unread([note for note in self._waiting.values() if note not in self._given])

    def finish(self, step: Step) -> Step:
        """The step that was decided, or the end if a stop was requested."""
        self.look()
        self._working = False
        if step.end is None and self._stop is not None:
            return Step(End.STOPPED, STOPPED)
        return step

    def consumed(self, verdict: Verdict) -> None:
        """Drops the notes that a successful iteration has read. The others go into the next prompt again."""
        given, self._given = self._given, []
        if verdict.outcome is not Outcome.OK:
            return
        read = [note for note in given if note.name in self._waiting]
        for note in read:
            del self._waiting[note.name]
        if read:  # in this order, so that after a crash in between a note is read twice rather than never
            self._emit([report.steer("read", note.text) for note in read])
            self._requests.drop([note.name for note in read])

    def unread_notes(self) -> list[str]:
        """Notes that no successful iteration has read."""
        return [note.text for note in self._waiting.values()]

    # -- waiting

    @property
    def kind(self) -> StopKind | None:
        return self._switch.kind

    def wait(self, seconds: float) -> bool:
        """Sleeps, and pauses the run meanwhile if that is requested. True if the run must end."""
        end = time.monotonic() + seconds
        self.look()
        while True:
            if self.pausing and self.kind is None:
                self._hold()
            if self._switch.wait(end - time.monotonic(), lambda: self.pausing):
                return True
            if not self.pausing:
                return False

    def _hold(self) -> None:
        began = time.monotonic()
        self._emit([report.paused(self._resume)])
        while self.pausing and self.kind is None:
            self._show(time.monotonic() - began)
            self._switch.wait(_STEP, lambda: not self.pausing)
        seconds = time.monotonic() - began
        self.paused += seconds
        self._on_resume(seconds)
        self._emit([report.resumed(seconds)])

    def _note(self, text: str) -> None:
        self._emit([meta.notice(text)])


def _pause_asked(pause: Pause | None) -> str:
    match pause:
        case Pause.AFTER:
            return "ralph pause: the run pauses after this iteration"
        case Pause.NOW:
            return "ralph pause --now: ending the agent; this iteration will run again after the pause"
        case None:
            return "ralph resume: the pause is canceled"
