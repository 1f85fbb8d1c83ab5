"""The loop itself."""

from __future__ import annotations

import gc
import random
import time
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import OUT_OF_RESOURCES, RalphError
from ralph.journal.requests import Requests
from ralph.judging.signals import Markers
from ralph.loop import report, resume
from ralph.loop.announce import Announcer
from ralph.loop.control import STOPPED, Control
from ralph.loop.decide import EXIT_CODES, End, Facts, Policy, Step, decide, too_late
from ralph.loop.finished import Finished, Review
from ralph.loop.gates import Accepted, Gates
from ralph.loop.iteration import RESTORED, Iterations
from ralph.loop.limits import used_up
from ralph.loop.pause import hold
from ralph.loop.summary import resume_command, run_end
from ralph.loop.turns import initial_state, takeover, turns_of
from ralph.runners.stop import StopKind
from ralph.tree.inspector import Inspector

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ralph.journal.writer import JournalWriter
    from ralph.launching.launch import Launch
    from ralph.launching.prompt import PromptSource
    from ralph.loop.resume import Past
    from ralph.loop.screen import Screen
    from ralph.loop.waits import Wait
    from ralph.runners.process import Supervisor
    from ralph.runners.stop import StopSwitch
    from ralph.transcripts.events import TranscriptEvent


class Loop:
    """Runs an agent until there is a reason to end. It holds the state of the run; nothing else changes it."""

    def __init__(
        self,
        launch: Launch,
        prompt: PromptSource,
        journal: JournalWriter,
        screen: Screen,
        supervisor: Supervisor,
        stop: StopSwitch,
        ask: Callable[[], str] | None = None,
        past: Past | None = None,
    ) -> None:
        self._launch = launch
        self._journal = journal
        self._stop = stop
        self._ask = ask
        self._past = past
        self._policy = Policy.of(launch.settings)
        self._markers = Markers.configured(launch.settings.completion_promise)
        self._state = initial_state(launch, past)
        self._turns = turns_of(launch)
        self._turn = self._turns[0]
        self._random = random.Random(journal.paths.run_id)
        self._announcer = announcer = Announcer(journal, screen, self._state.elapsed)
        self._inspector = Inspector(launch.workdir, self._own_files(launch), past.first if past else None)
        self.gates = Gates(
            launch,
            supervisor,
            self._inspector,
            announcer.emit,
            announcer.checking,
            self._latest,
            past.first if past else None,
            past.baseline if past else None,
        )
        command = resume_command(launch.workdir, journal.paths.run_id, alone=launch.settings.exclusive)
        self._control = Control(
            Requests(journal.paths),
            stop,
            announcer.emit,
            lambda seconds: announcer.pausing(seconds, command),
            announcer.paused,
            command,
        )
        self._iterations = Iterations(
            prompt,
            journal,
            supervisor,
            stop,
            self._inspector,
            announcer,
            self._control,
            self._policy.limits,
            self._markers,
        )

    # -- the run

    def run(self) -> int:
        """Runs to the end. Returns the exit code."""
        self.emit([report.run_start(self._launch, self._journal.paths.run_id, self._policy.limits, self._past)])
        try:
            step = self._resume(self._past) if self._past else None
            if step is None and not self.gates.take_baseline():
                step = self._stopped() or Step(End.LIMIT, "reached the run time limit during the checks")
            gc.freeze()  # what exists now stays: searching it for cycles would be most of the collector's work
            while step is None:
                self._control.wait(0)
                step = self._stopped() or self._iterate()
                gc.collect()  # an adapter has many cycles and may hold much memory: free it before the next one
        except RalphError as error:
            step = Step(End.FAILED, str(error))  # the run has started, so its journal must say how it ended
        except MemoryError:
            step = Step(End.FAILED, "out of memory")
        except OSError as error:
            if error.errno not in OUT_OF_RESOURCES:
                raise
            step = Step(End.FAILED, f"out of system resources: {error.strerror}")
        return self._end(step)

    def _resume(self, past: Past) -> Step | None:
        """Finishes what the past left: an unfinished iteration, a limit that is reached, a wait."""
        if past.unfinished is not None:
            self._close_unfinished(past.unfinished)
        state = self._state
        reached = used_up(self._policy.limits, state.used, self._announcer.elapsed, state.counted)
        if reached is not None:
            return Step(End.LIMIT, f"{reached}: raise the limit to continue")
        left = state.wait.until - time.time() if state.wait is not None else 0.0
        if state.wait is not None and left > 0:
            return self._between(Step(None, "", msgspec.structs.replace(state.wait, seconds=left)))
        return self._between(Step(None, ""))

    def _close_unfinished(self, unfinished: resume.Unfinished) -> None:
        """Counts what an iteration used during which ralph died, and writes its end."""
        number, agent = unfinished.number, unfinished.agent
        launch = next((turn.launch for turn in self._turns if turn.launch.agent == agent), None)
        seen = resume.observe(unfinished, self._state, self._journal.paths, launch, self._markers)
        self._state = self._state.after_unfinished(number, agent, unfinished.started, seen, elapsed=self._elapsed)
        self._journal.at(number)
        self.emit([report.unfinished_end(number, seen, self._state)])

    def _iterate(self) -> Step | None:
        """One iteration and what follows from it. None: continue."""
        turn = self._turns[self._state.rotation.choose(time.time())]
        changed = takeover(self._turn, turn)
        self._turn = turn
        if changed is not None:
            self.note(changed)
        finished = self._iterations.run(self._state, turn)
        if finished is None:
            return self._stopped()
        review = self._review(finished)
        now = time.time()
        self._state = self._state.after(
            finished, review, self._policy, now=now, elapsed=self._elapsed, jitter=self._random.random()
        )
        decided = decide(self._facts(finished, review, now), self._policy)
        step = self._stopped() or self._control.finish(decided)
        self._state = self._state.waiting(step.wait)
        self.emit([report.iteration_end(finished, step, self._state)])
        self._control.consumed(finished.verdict)
        return self._between(step)

    def _review(self, finished: Finished) -> Review:
        trespass = self.gates.trespass(finished.changes)
        if trespass is not None:
            rejected = trespass.reason if finished.verdict.completed else None
            return Review(rejected, trespass.reason, trespass.files, (trespass.note,) if trespass.note else ())
        if not finished.verdict.completed:
            return Review()
        unread = self._control.unread()
        if unread is not None:
            return Review(unread)
        found = self.gates.examine(self._state.trespassed)
        if isinstance(found, Accepted):
            return Review(seen=found.seen)
        return Review(found.reason, notes=(found.note,) if found.note else ())

    def _facts(self, finished: Finished, review: Review, now: float) -> Facts:
        state = self._state
        return Facts(
            iteration=state.iteration,
            verdict=finished.verdict,
            rejected=review.rejected,
            trespass=review.trespass,
            claims_in_a_row=state.claims,
            failures_in_a_row=state.failures,
            usage=state.used,
            elapsed=self._announcer.elapsed,
            seen=review.seen,
            uncounted=state.uncounted,
            now=now,
            limit=state.rotation.limit(finished.turn, now),
            breaker=state.breaker,
            denials_in_a_row=state.denials,
        )

    def _between(self, step: Step) -> Step | None:
        """Waits before the next iteration, and asks the user if they want to be asked. None: continue."""
        if step.end is not None:
            return step
        began = time.monotonic()
        if step.wait is not None:
            self._hold(step.wait)
            self._state = self._state.cooled_down()
        slot = self._state.calls.wait(time.time())
        if slot is not None and self._stopped() is None:
            late = too_late(slot, self._policy.limits, self._announcer.elapsed)
            if late is not None:
                return late
            self._hold(slot)
        pause = self._launch.settings.sleep - (time.monotonic() - began)
        if pause > 0:
            self._control.wait(pause)
        return self._stopped() or self._asked() or self._stopped()

    def _asked(self) -> Step | None:
        match self._ask() if self._ask is not None else None:
            case "stop":
                return Step(End.STOPPED, "you chose to stop")
            case "always":
                self._ask = None
        return None

    def _hold(self, wait: Wait) -> None:
        self.emit([report.wait(wait, time.time())])
        hold(wait, self._control, lambda left: self._announcer.waiting(wait.why, left))

    def _stopped(self) -> Step | None:
        match self._stop.kind:
            case StopKind.INTERRUPTED:
                return Step(End.INTERRUPTED, "interrupted by Ctrl-C")
            case StopKind.TERMINATED:
                return Step(End.TERMINATED, "terminated by a signal")
            case StopKind.STOPPED:
                return Step(End.STOPPED, STOPPED)
            case None:
                return None

    def _own_files(self, launch: Launch) -> tuple[Path, ...]:
        """What changes in the working tree because of ralph, not of the agent."""
        launchers = [turn.launch.launcher for turn in self._turns]
        written = [path for launcher in launchers if launcher is not None for path in launcher.writes]
        return (*self._journal.own_files(shared=not launch.settings.exclusive), *written)

    def _end(self, step: Step) -> int:
        assert step.end is not None
        if self._journal.restore():
            self.note(RESTORED)
        workdir = self._launch.workdir
        changes = None
        if workdir.is_dir():
            changes = self._inspector.compare(self.gates.first, self._inspector.take(reuse=True))
            self._inspector.save()
        for text in self._control.unread_notes():
            self.note(f"no successful iteration has read this note: {text.strip()}")
        state = msgspec.structs.replace(self._state, elapsed=self._elapsed)
        self.emit([run_end(step, state, self._control.paused, changes, self._journal.paths, workdir)])
        return EXIT_CODES[step.end]

    # -- reporting

    def emit(self, events: list[TranscriptEvent]) -> None:
        self._announcer.emit(events)

    def note(self, text: str) -> None:
        self._announcer.note(text)

    @property
    def _elapsed(self) -> float:
        return round(self._announcer.elapsed, 3)

    def _latest(self) -> float | None:
        """When the run must end, by the monotonic clock."""
        runtime = self._policy.limits.runtime
        return self._announcer.started + runtime if runtime else None
