"""The loop itself."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.errors import SCARCE, RalphError
from ralph.journal.requests import Requests
from ralph.judging.judge import Outcome
from ralph.judging.observe import add_usage
from ralph.judging.signals import Markers
from ralph.loop import breaker, progress, report, resume, waits
from ralph.loop.announce import Announcer
from ralph.loop.calls import Calls
from ralph.loop.control import STOPPED, Control
from ralph.loop.decide import EXIT_CODES, PAUSED, End, Facts, Policy, Step, decide, is_failure, too_late
from ralph.loop.gates import Gates
from ralph.loop.iteration import PUT_BACK, Iterations
from ralph.loop.limits import Limits, used_up
from ralph.loop.pause import hold
from ralph.loop.turns import Turns, initial_state
from ralph.runners.process import EndKind
from ralph.runners.stop import StopKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.journal.writer import JournalWriter
    from ralph.launching.launch import Launch
    from ralph.launching.prompt import PromptSource
    from ralph.loop.resume import Past
    from ralph.loop.state import RunState
    from ralph.runners.process import Supervisor
    from ralph.runners.stop import StopSwitch
    from ralph.transcripts.events import TranscriptEvent
    from ralph.ui.screen import Screen


class Loop:
    """Runs a plan until there is a reason to end."""

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
        self.launch = launch
        self.journal = journal
        self.stop = stop
        self.ask = ask
        self.past = past
        settings = launch.settings
        self.limits = Limits(
            settings.max_iterations,
            settings.max_runtime,
            settings.max_cost,
            settings.max_tokens,
            settings.max_failures,
            settings.max_calls_per_hour,
        )
        self.policy = Policy(
            self.limits,
            settings.confirmations,
            waits.Patience.of(settings),
            breaker.Thresholds.of(settings),
            settings.denied_after,
        )
        self.markers = Markers.configured(settings.completion_promise)
        self.state = state = initial_state(launch, past)
        state.calls = Calls(settings.max_calls_per_hour, state.calls.times)
        self.announcer = announcer = Announcer(journal, screen, state, self.limits)
        self.turns = Turns(launch, state, journal.paths.run_id)
        self.gates = Gates(
            launch, supervisor, announcer.emit, announcer.checking, self._latest, past.first if past else None
        )
        if past is not None:
            self.gates.baseline = past.baseline
            self.gates.notes = list(state.notes)
            self.gates.trespassed = set(state.trespassed)
        go_on = report.resume_command(launch.workdir, journal.paths.run_id, alone=settings.exclusive)
        self.control = Control(
            Requests(journal.paths),
            stop,
            announcer.emit,
            lambda since: announcer.pausing(since, go_on),
            announcer.held_for,
            go_on,
        )
        self.iterations = Iterations(
            prompt,
            journal,
            supervisor,
            stop,
            announcer,
            self.turns,
            self.gates,
            self.control,
            state,
            self.limits,
            self.markers,
        )

    # -- the whole

    def go(self) -> int:
        self.emit([report.run_start(self.launch, self.journal.paths.run_id, self.limits, self.past)])
        try:
            step = self._go_on(self.past) if self.past else None
            if step is None and not self.gates.take_baseline():
                step = self._stopped() or Step(End.LIMIT, "the run time is used up: the checks took it all")
            gc.freeze()  # what is there now stays: looking through it for cycles would be most of the work
            while step is None:
                self.control.wait(0)
                step = self._stopped() or self._iterate()
                gc.collect()  # an adapter is full of them, and may remember much: one of a night must not wait for more
        except RalphError as error:
            step = Step(End.FAILED, str(error))  # the run has begun: how it ended belongs into its journal
        except MemoryError:
            step = Step(End.FAILED, "the memory is used up")
        except OSError as error:
            if error.errno not in SCARCE:
                raise
            step = Step(End.FAILED, f"the system gives no more: {error.strerror}")
        return self._end(step)

    def _go_on(self, past: Past) -> Step | None:
        """What is left to do of the past: the iteration that was cut short, a limit that is reached, a wait."""
        state = self.state
        if past.cut is not None:
            state.iteration = past.cut
            state.uncounted += 1
            state.calls = state.calls.called(past.cut_at)
            lost = resume.lost(past, self.journal.paths, self.turns.launches, self.markers)
            state.usage = add_usage(state.usage, lost.spent)
            state.costs.add(lost.cost)
            state.usage_missing += not lost.usage_seen
            if lost.usage_seen:
                self.turns.has_told(past.cut_agent, lost.told)
            self.journal.at(past.cut)
            self.emit([report.cut_short(past.cut, lost, self._snapshot(None))])
        reached = used_up(self.limits, state.usage, self.announcer.elapsed, state.iteration - state.uncounted)
        if reached is not None:
            return Step(End.LIMIT, f"{reached}: give it more to go on")
        if state.wait is not None and state.wait.until > time.time():
            left = state.wait.until - time.time()
            return self._between(Step(None, "", msgspec.structs.replace(state.wait, seconds=left)))
        return self._between(Step(None, ""))

    def _latest(self) -> float | None:
        """When the run must end."""
        return self.announcer.started + self.limits.runtime if self.limits.runtime else None

    def _snapshot(self, wait: waits.Wait | None) -> RunState:
        """All that another process would need to go on from here."""
        return msgspec.structs.replace(
            self.state,
            elapsed=round(self.announcer.elapsed, 3),
            sessions=self.turns.saved_sessions(),
            notes=self.gates.notes,
            trespassed=sorted(self.gates.trespassed),
            wait=wait,
        )

    def _iterate(self) -> Step | None:
        """One iteration and what follows from it; None: go on."""
        state = self.state
        changed = self.turns.take_turn()
        if changed is not None:
            self.note(changed)
        state.iteration += 1
        notes = list(self.gates.notes)
        finished = self.iterations.run()
        if finished is None:
            state.iteration -= 1
            return self._stopped()
        verdict = finished.verdict
        trespass = self.gates.trespass(finished.changes)
        rejected = (trespass or self.control.unread() or self.gates.reject()) if verdict.completed else None
        limit = self.turns.limit(finished, self.policy.patience)
        stopped = finished.ended.kind is EndKind.STOPPED
        by_user = stopped and (self.stop.kind is not None or finished.ended.reason == PAUSED)
        counted = limit is None and not by_user
        if counted:
            state.failures = state.failures + 1 if is_failure(verdict, trespass) else 0
            state.denials = state.denials + 1 if verdict.outcome is Outcome.PERMISSION_DENIED else 0
            state.claims = state.claims + 1 if verdict.completed and rejected is None else 0
            if not state.claims:  # who only confirms that all is done has nothing left to change
                seen = breaker.observed(state.iteration, verdict, finished.changes, finished.seen.answer)
                state.breaker = state.breaker.after(seen, self.policy.thresholds)
        else:
            state.uncounted += 1
            self.gates.notes = [*notes, *self.gates.notes]  # nobody has acted on them
        facts = Facts(
            iteration=state.iteration,
            verdict=verdict,
            rejected=rejected,
            trespass=trespass,
            claims_in_a_row=state.claims,
            failures_in_a_row=state.failures,
            usage=state.usage,
            elapsed=self.announcer.elapsed,
            checks=len(self.gates.commands),
            uncounted=state.uncounted,
            now=time.time(),
            limit=limit,
            breaker=state.breaker,
            denials_in_a_row=state.denials,
        )
        step = self._stopped() or self.control.finish(decide(facts, self.policy))
        self.emit([report.iteration_end(finished, step, self._snapshot(step.wait), counted=counted)])
        self.control.consumed(verdict)
        return self._between(step)

    def _between(self, step: Step) -> Step | None:
        """The waits, and the question if the user wants to be asked."""
        if step.end is not None:
            return step
        began = time.monotonic()
        if step.wait is not None:
            self._hold(step.wait)
            self.state.breaker = self.state.breaker.cooled_down()
        slot = self.state.calls.wait(time.time())
        if slot is not None and self._stopped() is None:
            late = too_late(slot, self.limits, self.announcer.elapsed)
            if late is not None:
                return late
            self._hold(slot)
        pause = self.launch.settings.sleep - (time.monotonic() - began)
        if pause > 0:
            self.control.wait(pause)
        if self._stopped() is None and self.ask is not None:
            match self.ask():
                case "stop":
                    return Step(End.STOPPED, "you said stop")
                case "always":
                    self.ask = None
        return self._stopped()

    def _hold(self, wait: waits.Wait) -> None:
        self.emit([report.wait(wait, time.time())])
        hold(wait, self.control, lambda left: self.announcer.waiting(wait.why, left))

    def _stopped(self) -> Step | None:
        match self.stop.kind:
            case StopKind.INTERRUPTED:
                return Step(End.INTERRUPTED, "interrupted by Ctrl-C")
            case StopKind.TERMINATED:
                return Step(End.TERMINATED, "terminated by a signal")
            case StopKind.STOPPED:
                return Step(End.STOPPED, STOPPED)
            case None:
                return None

    # -- announcing

    def emit(self, events: list[TranscriptEvent]) -> None:
        self.announcer.emit(events)

    def note(self, text: str) -> None:
        self.announcer.note(text)

    def _end(self, step: Step) -> int:
        assert step.end is not None
        if self.journal.put_back():
            self.note(PUT_BACK)
        changes = (
            progress.compare(self.gates.first, progress.take(self.launch.workdir))
            if self.launch.workdir.is_dir()
            else None
        )
        facts: dict[str, Any] = {
            "iterations": self.state.iteration,
            "uncounted": self.state.uncounted,
            "seconds": self.announcer.elapsed,
            "paused": self.control.paused,
            "usage": self.state.usage,
            "usage_missing": self.state.usage_missing,
            "costs": self.state.costs,
        }
        for text in self.control.left():
            self.note(f"no iteration that worked has read this note: {text.strip()}")
        code = EXIT_CODES[step.end]
        self.emit([report.run_end(step, code, facts, changes, self.journal.paths, self.launch.workdir)])
        return code
