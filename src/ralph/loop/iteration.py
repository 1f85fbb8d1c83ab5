"""Runs one iteration: a prompt goes to the agent, and ralph judges what came of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as registry
from ralph.errors import RunError, UsageError
from ralph.judging import costs
from ralph.judging.judge import judge
from ralph.judging.observe import Observation
from ralph.judging.output import OutputReader
from ralph.judging.usage import known_total
from ralph.launching.launcher import CommandLine, SessionMode
from ralph.loop import report
from ralph.loop.finished import Finished
from ralph.loop.record import Budget, Recorder
from ralph.loop.sessions import Session, SessionRequest, find_session, next_request, repeated_usage, session_after
from ralph.runners.process import Command, Ended, EndKind
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ralph.journal.appender import Appender
    from ralph.journal.writer import JournalWriter
    from ralph.judging.judge import Verdict
    from ralph.judging.signals import Markers
    from ralph.launching.launch import Launch
    from ralph.launching.prompt import PromptSource
    from ralph.loop.announce import Announcer
    from ralph.loop.control import Control
    from ralph.loop.limits import Limits
    from ralph.loop.state import RunState
    from ralph.loop.turns import Turn
    from ralph.runners.process import Supervisor
    from ralph.runners.stop import StopSwitch
    from ralph.tree.inspector import Inspector
    from ralph.tree.snapshot import Snapshot

#: If the prompt is too long for the agent, ralph's own notes are cut to these lengths, in characters, one by one.
_NOTES_CUT = (20_000, 2_000, 0)
#: An agent or a check may run `git clean` to see whether a fresh checkout works.
RESTORED = "the record of this run had been deleted (by git clean?); it was restored"


class _Started(msgspec.Struct, frozen=True):
    """An iteration whose prompt is ready."""

    number: int
    turn: Turn
    session: Session
    request: SessionRequest
    prompt: str
    prompt_file: Path
    #: seconds since the epoch
    at: float

    @property
    def launch(self) -> Launch:
        return self.turn.launch

    def command_line(self) -> CommandLine:
        return _command_line(self.launch, self.prompt, self.prompt_file, self.request)


class Iterations:
    """Runs iterations. It keeps nothing of them but the last prompt."""

    def __init__(
        self,
        prompt: PromptSource,
        journal: JournalWriter,
        supervisor: Supervisor,
        stop: StopSwitch,
        inspector: Inspector,
        announcer: Announcer,
        control: Control,
        limits: Limits,
        markers: Markers,
    ) -> None:
        self._prompt = prompt
        self._journal = journal
        self._supervisor = supervisor
        self._stop = stop
        self._inspector = inspector
        self._announcer = announcer
        self._control = control
        self._limits = limits
        self._markers = markers
        self._last_prompt: str | None = None

    def run(self, state: RunState, turn: Turn) -> Finished | None:
        """The iteration after `state`. None if the run was stopped before there was a prompt."""
        launch, number = turn.launch, state.iteration + 1
        _require_workdir(launch)
        base = self._read_prompt(number)
        if base is None:
            return None
        session = state.sessions.get(launch.agent, Session())
        request = next_request(launch.session_mode, session, launch.settings.session_expiry, time.time())
        rendered = launch.launcher.render(base) if launch.launcher else base
        text = self._whole_prompt(rendered, state.notes, launch, request)
        before = self._inspector.take(reuse=True)
        self._restore_record()
        prompt_file, *raw = self._journal.begin_iteration(number, text.encode("utf-8", "surrogateescape"))
        self._announce(number, text, turn, state)
        started = _Started(number, turn, session, request, text, prompt_file, time.time())
        return self._run(started, (raw[0], raw[1]), state, before)

    def _announce(self, number: int, text: str, turn: Turn, state: RunState) -> None:
        # The number of the last iteration: those that do not count are allowed on top.
        maximum = self._limits.iterations + state.uncounted if self._limits.iterations else 0
        self._announcer.at(number, maximum)
        shown = self._prompt.shown
        start = report.iteration_start(number, maximum, text, shown, turn.launch, fallback=turn.fallback)
        self._announcer.emit([start])

    def _run(self, started: _Started, raw: tuple[Appender, Appender], state: RunState, before: Snapshot) -> Finished:
        launch, launcher, turn = started.launch, started.launch.launcher, started.turn
        own = launcher.adapter(started.prompt) if launcher else None
        adapter = SafeAdapter(own or registry.create(launch.transcript, prompt=started.prompt))
        self._journal.masked.expect_pieces(adapter.pieces)
        repeated = repeated_usage(launch, started.session.reported) if started.request.resume else None
        seen = Observation(launch.reader(self._markers) or self._markers, turn.cost_of, repeated, started.prompt)
        line = started.command_line()
        pty = launch.settings.pty or launch.invocation.pty
        aside = launcher.aside if launcher and line.aside else None
        recorder = Recorder(
            OutputReader(adapter, seen, pty=pty, aside=aside),
            seen,
            raw,
            self._announcer.emit,
            plain=adapter.name == "plain",
            stored=not self._journal.redacts,
            budget=Budget(self._limits, state.used, self._announcer.started),
            interruption=self._control.interruption,
            on_tick=lambda recorder: self._announcer.tick(recorder, state.used),
        )
        command = Command(
            line.argv,
            self._environment(started) | line.env,
            str(launch.workdir),
            line.stdin,
            pty,
            recorder.aside if aside else None,
            None if self._journal.redacts else raw,  # only this process masks what it writes
        )
        try:
            ended = self._supervisor.run(command, recorder, turn.deadlines)
        finally:
            recorder.finish()
        self._restore_record()
        if launcher:
            recorder.add(launcher.finish(started.prompt_file.parent, ended, seen))
        self._journal.end_iteration(started.number)
        if ended.kind is EndKind.NOT_STARTED:
            _require_workdir(launch)
        verdict = judge(ended, seen, structured=adapter.structured)
        session = _session(started, seen, verdict)
        self._remark(started, ended, recorder, verdict)
        changes = self._inspector.compare(before, self._inspector.take())
        return Finished(
            started.number,
            launch.agent,
            turn.index,
            started.at,
            verdict,
            ended,
            seen,
            changes,
            adapter.capabilities,
            session,
        )

    def _restore_record(self) -> None:
        """Restores the run's folder if the agent or a check has deleted it."""
        if self._journal.restore():
            self._control.restore()
            self._announcer.note(RESTORED)

    def _read_prompt(self, number: int) -> str | None:
        """Reads the prompt again each time. None if the run was stopped meanwhile.

        An editor may be saving the file, so it may be missing for a moment. A file that stays away was probably
        deleted by mistake, with everything else that git does not track.
        """
        for _ in range(10):
            try:
                self._last_prompt = self._prompt.read()
            except UsageError as error:
                failure = error
                if self._stop.wait(0.2):
                    return None
            else:
                return self._last_prompt
        if self._last_prompt is not None and self._prompt.gone:
            self._announcer.note(f"{self._prompt.shown} is gone: using the prompt of the previous iteration again")
            return self._last_prompt
        raise RunError(f"iteration {number} cannot start: {failure}")

    def _whole_prompt(self, base: str, notes: tuple[str, ...], launch: Launch, request: SessionRequest) -> str:
        """The prompt with all notes in front of it; of ralph's own notes, as much as the agent can take."""
        words = self._journal.masker.text("\n".join(notes))
        text = self._control.begin(with_notes(words, base))
        if not words:
            return text
        for length in _NOTES_CUT:
            try:
                _command_line(launch, text, launch.workdir / "prompt.md", request)
            except UsageError:
                shorter = f"{words[:length]}\n… (shortened)" if length else ""
                text = self._control.begin(with_notes(shorter, base))
            else:
                break
        return text

    def _environment(self, started: _Started) -> dict[str, str]:
        """With what an agent or a hook may want to know; none of these names is a setting of ralph."""
        return started.launch.env | {
            "RALPH_RUN_ID": self._journal.paths.run_id,
            "RALPH_RUN_DIR": str(self._journal.paths.root),
            "RALPH_ITERATION": str(started.number),
            "RALPH_CURRENT_PROMPT": str(started.prompt_file),
            "PWD": str(started.launch.workdir),
        }

    def _remark(self, started: _Started, ended: Ended, recorder: Recorder, verdict: Verdict) -> None:
        """Notices about leftover processes, the transcript, limits that cannot be enforced; the launcher's advice."""
        note, launch = self._announcer.note, started.launch
        if ended.keeper and ended.kind is not EndKind.LOST:  # otherwise it is the reason of the end
            note(f"ralph's keeper process, which runs the agent, {ended.keeper}")
        if ended.strays:
            note(f"the agent left processes behind; ralph ended them: {', '.join(ended.strays)}")
        if ended.left:
            note(f"these processes could not be ended: {', '.join(ended.left)}")
        if recorder.looks_like_rtf1:
            note("this output looks like RTF1; use --transcript rtf1 to read it as such")
        if started.number == 1 and ended.kind is EndKind.EXITED:  # others may not have come to their report
            self._remark_limits(launch, recorder.observation, note)
        advice = launch.launcher.help_for(verdict.outcome.value) if launch.launcher else None
        if advice:
            note(advice)

    def _remark_limits(self, launch: Launch, seen: Observation, note: Callable[[str], None]) -> None:
        if self._limits.cost and seen.cost.usd is None and not launch.cost_gap:
            note(costs.not_enforced(seen.usage.model or launch.settings.model))
        if self._limits.tokens and known_total(seen.usage) is None:
            note("--max-tokens cannot be enforced: this agent did not report its tokens")


def with_notes(notes: str, prompt: str) -> str:
    """The prompt with ralph's own notes in front of it."""
    return f"<ralph-notes>\n{notes}\n</ralph-notes>\n\n{prompt}" if notes else prompt


def _command_line(launch: Launch, prompt: str, prompt_file: Path, request: SessionRequest) -> CommandLine:
    return launch.command_line(prompt, prompt_file, request.id, resume=request.resume)


def _require_workdir(launch: Launch) -> None:
    if not launch.workdir.is_dir():
        raise RunError(f"the working directory is gone: {launch.workdir}")


def _session(started: _Started, seen: Observation, verdict: Verdict) -> Session:
    launch = started.launch
    if launch.session_mode is SessionMode.FRESH:
        return Session()
    found = find_session(launch.launcher, seen.session_id, started.prompt_file.with_name("stdout.raw"))
    reported = seen.reported if seen.usage_seen else None
    return session_after(started.session, started.request, found, verdict, reported, started.at)
