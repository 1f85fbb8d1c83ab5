"""The loop itself."""

from __future__ import annotations

import gc
import random
import time
from typing import TYPE_CHECKING, Any

import msgspec

from ralph import trust
from ralph.errors import SCARCE, RalphError, RunError, UsageError
from ralph.journal.requests import Requests
from ralph.launch import SessionMode
from ralph.loop import breaker, costs, progress, report, resume, waits
from ralph.loop.calls import Calls
from ralph.loop.control import STOPPED, Control
from ralph.loop.decide import EXIT_CODES, PAUSED, End, Facts, Policy, Step, decide, is_failure, too_late
from ralph.loop.gates import Gates
from ralph.loop.judge import Outcome, Verdict, judge
from ralph.loop.limits import Limits, used_up
from ralph.loop.observe import Observation, add_usage, known_total
from ralph.loop.pause import hold
from ralph.loop.record import Recorder
from ralph.loop.rota import Rota
from ralph.loop.sessions import Sessions, session_of, usage_is_cumulative
from ralph.loop.signals import Markers
from ralph.loop.standing import Session, Standing, begun_anew
from ralph.runners.process import Command, Deadlines, Ended, EndKind
from ralph.runners.stop import StopKind
from ralph.transcripts import meta, registry
from ralph.transcripts.base import Capabilities
from ralph.transcripts.safe import SafeAdapter
from ralph.ui.screen import Screen, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ralph.journal.writer import JournalWriter
    from ralph.loop.resume import Past
    from ralph.plan import Plan
    from ralph.prompt import PromptSource
    from ralph.runners.process import Supervisor
    from ralph.runners.stop import StopSwitch
    from ralph.transcripts.events import Meta, TranscriptEvent


class Finished(msgspec.Struct, frozen=True):
    """One iteration, as far as the next decision needs it."""

    number: int
    verdict: Verdict
    ended: Ended
    seen: Observation
    changes: progress.Changes


class Loop:
    """Runs a plan until there is a reason to end."""

    def __init__(
        self,
        plan: Plan,
        prompt: PromptSource,
        journal: JournalWriter,
        screen: Screen,
        supervisor: Supervisor,
        stop: StopSwitch,
        ask: Callable[[], str] | None = None,
        past: Past | None = None,
    ) -> None:
        self.plan = plan
        self.prompt = prompt
        self.journal = journal
        self.screen = screen
        self.supervisor = supervisor
        self.stop = stop
        self.ask = ask
        settings = plan.settings
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
        self._capabilities = Capabilities()
        self.crew = (plan, *plan.relief)
        names = tuple(one.agent for one in self.crew)
        self.past = past
        self.state = begun_anew(past.standing, names, ended=past.end) if past else Standing(rota=Rota.of(names))
        self.state.calls = Calls(settings.max_calls_per_hour, self.state.calls.times)
        self.started = time.monotonic() - self.state.elapsed
        self._sessions = [Sessions(one.session_mode, settings.session_expiry) for one in self.crew]
        for one, sessions in zip(self.crew, self._sessions, strict=True):
            sessions.go_on(self.state.sessions.get(one.agent, Session()))
        self.turn = 0
        self._random = random.Random(journal.paths.run_id)
        self._take_turn(0)
        self.gates = Gates(plan, supervisor, self.emit, self._show_check, past.first if past else None)
        self._go_on_by = report.resume_command(plan.workdir, journal.paths.run_id, alone=settings.exclusive)
        requests = Requests(journal.paths)
        self.control = Control(requests, stop, self.emit, self._show_pause, self._held_for, self._go_on_by)
        if past is not None:
            self.gates.baseline = past.baseline
            self.gates.notes = list(self.state.notes)
            self.gates.trespassed = set(self.state.trespassed)

    # -- the whole

    def go(self) -> int:
        self.emit([self._start_event()])
        try:
            step = self._go_on(self.past) if self.past else None
            if step is None and not self.gates.take_baseline():
                step = self._stopped()
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
            lost = resume.lost(past, self.journal.paths, self.crew, self.markers)
            state.usage = add_usage(state.usage, lost.spent)
            state.costs.add(lost.cost)
            state.usage_missing += not lost.usage_seen
            for one, sessions in zip(self.crew, self._sessions, strict=True):
                if one.agent == past.cut_agent and lost.usage_seen:
                    sessions.told = lost.told
            self.journal.at(past.cut)
            self.emit([report.cut_short(past.cut, lost, self._standing(None))])
        reached = used_up(self.limits, state.usage, time.monotonic() - self.started, state.iteration - state.uncounted)
        if reached is not None:
            return Step(End.LIMIT, f"{reached}: give it more to go on")
        if state.wait is not None and state.wait.until > time.time():
            left = state.wait.until - time.time()
            return self._between(Step(None, "", msgspec.structs.replace(state.wait, seconds=left)))
        return self._between(Step(None, ""))

    def _standing(self, wait: waits.Wait | None) -> Standing:
        """All that another process would need to go on from here."""
        return msgspec.structs.replace(
            self.state,
            elapsed=round(time.monotonic() - self.started, 3),
            sessions={
                one.agent: kept
                for one, sessions in zip(self.crew, self._sessions, strict=True)
                if (kept := sessions.saved()).id is not None
            },
            notes=self.gates.notes,
            trespassed=sorted(self.gates.trespassed),
            wait=wait,
        )

    def _iterate(self) -> Step | None:
        """One iteration and what follows from it; None: go on."""
        state = self.state
        self._take_turn(state.rota.choose(time.time()))
        state.iteration += 1
        notes = list(self.gates.notes)
        finished = self._run_agent()
        if finished is None:
            state.iteration -= 1
            return self._stopped()
        verdict = finished.verdict
        trespass = self.gates.trespass(finished.changes)
        rejected = (trespass or self.control.unread() or self.gates.reject()) if verdict.completed else None
        limit = self._limit(finished)
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
            elapsed=time.monotonic() - self.started,
            checks=len(self.gates.commands),
            uncounted=state.uncounted,
            now=time.time(),
            limit=limit,
            breaker=state.breaker,
            denials_in_a_row=state.denials,
        )
        step = self._stopped() or self.control.finish(decide(facts, self.policy))
        standing = self._standing(step.wait)
        self.emit([report.iteration_end(finished, step, self._capabilities, standing, counted=counted)])
        self.control.consumed(verdict)
        return self._between(step)

    def _limit(self, finished: Finished) -> waits.Limit | None:
        """The provider's limit that kept the iteration from working, if one did."""
        verdict, seen, now = finished.verdict, finished.seen, time.time()
        told = seen.error is not None or (seen.result is not None and seen.result.get("ok") is False)
        if not waits.is_limit(verdict, told=told):
            self.state.rota = self.state.rota.worked(self.turn)
            return None
        self.state.rota, limit = self.state.rota.limited(
            self.turn,
            self.policy.patience,
            verdict.outcome,
            waits.told_end(verdict.outcome, seen.resets_at, seen.retry_after, now),
            now,
            iteration=self.state.iteration,
            jitter=self._random.random(),
        )
        return limit

    def _take_turn(self, turn: int) -> None:
        """Everything that depends on which agent runs."""
        if turn != self.turn:
            self.note(f"{self.crew[turn].agent} takes over{' again' if turn < self.turn else ''}")
        self.turn = turn
        self.plan = self.crew[turn]
        self.sessions = self._sessions[turn]
        self.deadlines = deadlines_of(self.plan)
        self.cost_of = costs.pricing(self.plan)

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
            late = too_late(slot, self.limits, time.monotonic() - self.started)
            if late is not None:
                return late
            self._hold(slot)
        pause = self.plan.settings.sleep - (time.monotonic() - began)
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
        hold(wait, self.control, lambda left: self._show_wait(wait.why, left))

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

    # -- one iteration

    def _run_agent(self) -> Finished | None:
        """None if it was stopped before there was a prompt."""
        if not self.plan.workdir.is_dir():
            raise RunError(f"the working directory is gone: {self.plan.workdir}")
        launcher = self.plan.launcher
        base = self._read_prompt()
        if base is None:
            return None
        text = self.control.begin(self._with_notes(launcher.render(base) if launcher else base))
        before = progress.take(self.plan.workdir)
        prompt_file, *raw = self.journal.begin_iteration(self.state.iteration, text.encode("utf-8", "surrogateescape"))
        start = report.iteration_start(
            self.state.iteration, self._maximum, text, self.prompt.shown, self.plan, relief=self.turn > 0
        )
        self.emit([start])
        self.state.calls = self.state.calls.called(time.time())
        own = launcher.adapter(text) if launcher else None
        adapter = SafeAdapter(own or registry.create(self.plan.transcript, prompt=text))
        self.journal.masked.expect_pieces(adapter.pieces)
        reader = self.plan.reader(self.markers)
        ticket = self.sessions.next()
        told = self.sessions.told if ticket.resume and usage_is_cumulative(self.plan) else None
        seen = Observation(reader or self.markers, self.cost_of, told)
        recorder = Recorder(adapter, seen, (raw[0], raw[1]), self.emit, pty=self._pty, stored=not self.journal.redacts)
        recorder.budget = (self.limits, self.state.usage, self.started)
        recorder.interruption = self.control.interruption
        recorder.on_tick = lambda: self._tick(recorder)
        launch = self.plan.launch(text, prompt_file, ticket.session, resume=ticket.resume)
        environment = self._child_env(prompt_file) | launch.env
        aside = recorder.listen(launcher.aside) if launcher and launch.aside else None
        files = None if self.journal.redacts else (raw[0], raw[1])  # nobody else would mask what is rescued
        command = Command(launch.argv, environment, str(self.plan.workdir), launch.stdin, self._pty, aside, files)
        try:
            ended = self.supervisor.run(command, recorder, self.deadlines)
        finally:
            recorder.finish()
        if launcher:
            recorder.add(launcher.finish(prompt_file.parent, ended, seen))
        self.journal.end_iteration(self.state.iteration)
        if ended.kind is EndKind.NOT_STARTED and not self.plan.workdir.is_dir():
            raise RunError(f"the working directory is gone: {self.plan.workdir}")
        self.state.usage = add_usage(self.state.usage, seen.spent)
        self.state.costs.add(seen.cost)
        self.state.usage_missing += not seen.usage_seen
        verdict = judge(ended, seen, structured=adapter.structured)
        if self.plan.session_mode is not SessionMode.FRESH:
            stdout = prompt_file.with_name("stdout.raw")
            self.sessions.after(ticket, session_of(launcher, seen.session_id, stdout), verdict)
            if seen.usage_seen:
                self.sessions.told = seen.told
        self._capabilities = adapter.capabilities
        self._remark(ended, recorder)
        advice = launcher.help_for(verdict.outcome.value) if launcher else None
        if advice:
            self.note(advice)
        return Finished(
            self.state.iteration, verdict, ended, seen, progress.compare(before, progress.take(self.plan.workdir))
        )

    def _read_prompt(self) -> str | None:
        """Again each time. An editor may be saving it: a moment's absence is forgiven. None: the run was stopped."""
        for _ in range(10):
            try:
                return self.prompt.read()
            except UsageError as error:
                failure = error
                if self.stop.wait(0.2):
                    return None
        raise RunError(f"iteration {self.state.iteration} cannot start: {failure}")

    def _with_notes(self, prompt: str) -> str:
        if not self.gates.notes:
            return prompt
        notes = self.journal.masker.text("\n".join(self.gates.notes))
        self.gates.notes = []
        return f"<ralph-notes>\n{notes}\n</ralph-notes>\n\n{prompt}"

    def _child_env(self, prompt_file: Path) -> dict[str, str]:
        """What an agent or a hook may want to know; none of these names is a setting of ours."""
        env = {name: value for name, value in self.plan.env.items() if name != trust.VARIABLE}  # for this run, no other
        return env | {
            "RALPH_RUN_ID": self.journal.paths.run_id,
            "RALPH_RUN_DIR": str(self.journal.paths.root),
            "RALPH_ITERATION": str(self.state.iteration),
            "RALPH_CURRENT_PROMPT": str(prompt_file),
            "PWD": str(self.plan.workdir),
        }

    def _remark(self, ended: Ended, recorder: Recorder) -> None:
        """What the user should know about how the processes ended."""
        if ended.strays:
            self.note(f"the agent left processes behind, which were ended: {', '.join(ended.strays)}")
        if ended.left:
            self.note(f"these processes could not be ended: {', '.join(ended.left)}")
        if recorder.looks_like_rtf1:
            self.note("this output looks like RTF1; --transcript rtf1 would understand it")
        if (
            self.state.iteration == 1
            and self.limits.cost
            and recorder.observation.cost.usd is None
            and not self.plan.cost_gap
        ):
            self.note(costs.not_enforced(recorder.observation.usage.model or self.plan.settings.model))
        if self.state.iteration == 1 and self.limits.tokens and known_total(recorder.observation.usage) is None:
            self.note("--max-tokens cannot be enforced: this agent did not report its tokens")

    # -- telling

    def emit(self, events: list[TranscriptEvent]) -> None:
        """To the journal, then to the screen."""
        self.screen.show(*self.journal.record(events))

    def _tick(self, recorder: Recorder) -> None:
        late = self.journal.overdue(1.0)
        if late[0]:
            self.screen.show(*late)
        self.screen.status(self._status(recorder))

    def note(self, text: str) -> None:
        self.emit([meta.notice(text)])

    @property
    def _pty(self) -> bool:
        return self.plan.settings.pty or self.plan.invocation.pty

    def _status(self, recorder: Recorder) -> Status:
        now = time.monotonic()
        usage = add_usage(self.state.usage, recorder.observation.spent)
        return Status(
            iteration=self.state.iteration,
            maximum=self._maximum,
            elapsed=now - self.started,
            silent=now - recorder.last_output,
            tokens=known_total(usage),
            cost=usage.cost_usd,
            tools=recorder.observation.tools.started,
            open_tool=next(reversed(recorder.observation.open_tools.values()), None),
        )

    def _safe(self, text: str) -> str:
        return self.journal.masker.text(text)

    def _show_check(self, command: str, seconds: float) -> None:
        now = time.monotonic() - self.started
        self.screen.status(
            Status(self.state.iteration, self._maximum, now, seconds, None, None, 0, None, self._safe(command))
        )

    def _show_wait(self, why: str, left: float) -> None:
        now = time.monotonic() - self.started
        self.screen.status(
            Status(self.state.iteration, self._maximum, now, left, None, None, 0, None, waiting=self._safe(why))
        )

    def _show_pause(self, since: float) -> None:
        now = time.monotonic() - self.started - since
        by = self._go_on_by
        self.screen.status(Status(self.state.iteration, self._maximum, now, since, None, None, 0, None, paused=by))

    def _held_for(self, seconds: float) -> None:
        self.started += seconds  # a pause is no run time

    @property
    def _maximum(self) -> int:
        """The number that the last iteration can have: those that ran into limits do not count."""
        return self.limits.iterations + self.state.uncounted if self.limits.iterations else 0

    def _start_event(self) -> Meta:
        return report.run_start(self.plan, self.journal.paths.run_id, self.limits, self.past)

    def _end(self, step: Step) -> int:
        assert step.end is not None
        changes = (
            progress.compare(self.gates.first, progress.take(self.plan.workdir)) if self.plan.workdir.is_dir() else None
        )
        facts: dict[str, Any] = {
            "iterations": self.state.iteration,
            "uncounted": self.state.uncounted,
            "seconds": time.monotonic() - self.started,
            "paused": self.control.paused,
            "usage": self.state.usage,
            "usage_missing": self.state.usage_missing,
            "costs": self.state.costs,
        }
        for text in self.control.left():
            self.note(f"no iteration that worked has read this note: {text.strip()}")
        code = EXIT_CODES[step.end]
        self.emit([report.run_end(step, code, facts, changes, self.journal.paths, self.plan.workdir)])
        return code


def deadlines_of(plan: Plan) -> Deadlines:
    return Deadlines(
        idle=plan.idle_timeout[0] or None,
        wall=plan.wall_timeout[0] or None,
        first_output=plan.spec.first_output_timeout if plan.spec else None,
        linger=plan.spec.linger if plan.spec else None,
        grace=plan.settings.grace,
    )
