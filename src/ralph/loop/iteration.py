"""One iteration: a prompt goes to the agent, and what came of it is judged."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as registry
from ralph.errors import RunError, UsageError
from ralph.judging import costs
from ralph.judging.judge import Verdict, judge
from ralph.judging.observe import Observation, add_usage, known_total
from ralph.launching.launcher import CommandLine, SessionMode
from ralph.loop import progress, report
from ralph.loop.record import Recorder
from ralph.loop.sessions import Ticket, session_of, told_again
from ralph.runners.process import Command, Ended, EndKind
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.journal.writer import JournalWriter
    from ralph.judging.signals import Markers
    from ralph.launching.launch import Launch
    from ralph.launching.prompt import PromptSource
    from ralph.loop.announce import Announcer
    from ralph.loop.control import Control
    from ralph.loop.gates import Gates
    from ralph.loop.limits import Limits
    from ralph.loop.state import RunState
    from ralph.loop.turns import Turns
    from ralph.runners.process import Supervisor
    from ralph.runners.stop import StopSwitch
    from ralph.transcripts.base import Capabilities

#: How much of the notes is tried to get through where an agent takes its prompt as an argument, in characters.
_NOTES_CUT = (20_000, 2_000, 0)
#: An agent or a check deletes all that git does not know, to see whether a fresh checkout works.
PUT_BACK = "the record of this run had been deleted (by git clean?); it is there again"


class Finished(msgspec.Struct, frozen=True):
    """One iteration, as far as the next decision needs it."""

    number: int
    verdict: Verdict
    ended: Ended
    seen: Observation
    changes: progress.Changes
    capabilities: Capabilities


class Iterations:
    """Runs them; what they add up to goes into `state`."""

    def __init__(
        self,
        prompt: PromptSource,
        journal: JournalWriter,
        supervisor: Supervisor,
        stop: StopSwitch,
        announcer: Announcer,
        turns: Turns,
        gates: Gates,
        control: Control,
        state: RunState,
        limits: Limits,
        markers: Markers,
    ) -> None:
        self._prompt = prompt
        self._journal = journal
        self._supervisor = supervisor
        self._stop = stop
        self._announcer = announcer
        self._turns = turns
        self._gates = gates
        self._control = control
        self._state = state
        self._limits = limits
        self._markers = markers
        self._latest: str | None = None  # what the prompt was last

    @property
    def _launch(self) -> Launch:
        return self._turns.launch

    def run(self) -> Finished | None:
        """None if it was stopped before there was a prompt."""
        state, launch, sessions = self._state, self._launch, self._turns.sessions
        if not launch.workdir.is_dir():
            raise RunError(f"the working directory is gone: {launch.workdir}")
        launcher = launch.launcher
        base = self._read_prompt()
        if base is None:
            return None
        ticket = sessions.next()
        text = self._whole_prompt(launcher.render(base) if launcher else base, ticket)
        before = progress.take(launch.workdir)
        self._put_back()
        prompt_file, *raw = self._journal.begin_iteration(state.iteration, text.encode("utf-8", "surrogateescape"))
        start = report.iteration_start(
            state.iteration, self._announcer.maximum, text, self._prompt.shown, launch, fallback=self._turns.turn > 0
        )
        self._announcer.emit([start])
        state.calls = state.calls.called(time.time())
        own = launcher.adapter(text) if launcher else None
        adapter = SafeAdapter(own or registry.create(launch.transcript, prompt=text))
        self._journal.masked.expect_pieces(adapter.pieces)
        told = told_again(launch, sessions.told) if ticket.resume else None
        seen = Observation(launch.reader(self._markers) or self._markers, self._turns.cost_of, told)
        pty = launch.settings.pty or launch.invocation.pty
        stored = not self._journal.redacts
        recorder = Recorder(adapter, seen, (raw[0], raw[1]), self._announcer.emit, pty=pty, stored=stored)
        recorder.budget = (self._limits, state.usage, self._announcer.started)
        recorder.interruption = self._control.interruption
        recorder.on_tick = lambda: self._announcer.tick(recorder)
        line = self._command_line(text, prompt_file, ticket)
        aside = recorder.listen(launcher.aside) if launcher and line.aside else None
        files = (raw[0], raw[1]) if stored else None  # nobody else would mask what is rescued
        environment = self._child_env(prompt_file) | line.env
        command = Command(line.argv, environment, str(launch.workdir), line.stdin, pty, aside, files)
        try:
            ended = self._supervisor.run(command, recorder, self._turns.deadlines)
        finally:
            recorder.finish()
        self._put_back()
        if launcher:
            recorder.add(launcher.finish(prompt_file.parent, ended, seen))
        self._journal.end_iteration(state.iteration)
        if ended.kind is EndKind.NOT_STARTED and not launch.workdir.is_dir():
            raise RunError(f"the working directory is gone: {launch.workdir}")
        state.usage = add_usage(state.usage, seen.spent)
        state.costs.add(seen.cost)
        state.usage_missing += not seen.usage_seen
        verdict = judge(ended, seen, structured=adapter.structured)
        if launch.session_mode is not SessionMode.FRESH:
            stdout = prompt_file.with_name("stdout.raw")
            sessions.after(ticket, session_of(launcher, seen.session_id, stdout), verdict)
            if seen.usage_seen:
                sessions.told = seen.told
        self._remark(ended, recorder)
        advice = launcher.help_for(verdict.outcome.value) if launcher else None
        if advice:
            self._announcer.note(advice)
        changes = progress.compare(before, progress.take(launch.workdir))
        return Finished(state.iteration, verdict, ended, seen, changes, adapter.capabilities)

    def _put_back(self) -> None:
        """The record of the run, if the agent or a check has deleted it with all that git does not know."""
        if self._journal.put_back():
            self._control.put_back()
            self._announcer.note(PUT_BACK)

    def _read_prompt(self) -> str | None:
        """Again each time. An editor may be saving it: a moment's absence is forgiven. None: the run was stopped.

        A file that stays away was not called off, it was deleted with all that git does not know.
        """
        for _ in range(10):
            try:
                self._latest = self._prompt.read()
            except UsageError as error:
                failure = error
                if self._stop.wait(0.2):
                    return None
            else:
                return self._latest
        if self._latest is not None and self._prompt.gone:
            self._announcer.note(f"{self._prompt.shown} is gone: the prompt of the iteration before is given again")
            return self._latest
        raise RunError(f"iteration {self._state.iteration} cannot start: {failure}")

    def _whole_prompt(self, base: str, ticket: Ticket) -> str:
        """With all that the agent must know in front of it; of ralph's own notes as much as can be delivered."""
        notes = self._journal.masker.text("\n".join(self._gates.notes))
        self._gates.notes = []
        text = self._control.begin(with_notes(notes, base))
        if not notes:
            return text
        for length in _NOTES_CUT:
            try:
                self._command_line(text, self._launch.workdir / "prompt.md", ticket)
            except UsageError:
                shorter = f"{notes[:length]}\n… (shortened)" if length else ""
                text = self._control.begin(with_notes(shorter, base))
            else:
                break
        return text

    def _command_line(self, text: str, prompt_file: Path, ticket: Ticket) -> CommandLine:
        return self._launch.command_line(text, prompt_file, ticket.session, resume=ticket.resume)

    def _child_env(self, prompt_file: Path) -> dict[str, str]:
        """What an agent or a hook may want to know; none of these names is a setting of ours."""
        launch = self._launch
        return launch.env | {
            "RALPH_RUN_ID": self._journal.paths.run_id,
            "RALPH_RUN_DIR": str(self._journal.paths.root),
            "RALPH_ITERATION": str(self._state.iteration),
            "RALPH_CURRENT_PROMPT": str(prompt_file),
            "PWD": str(launch.workdir),
        }

    def _remark(self, ended: Ended, recorder: Recorder) -> None:
        """What the user should know about line the processes ended, and about limits that nobody can hold to."""
        note, launch, seen = self._announcer.note, self._launch, recorder.observation
        if ended.strays:
            note(f"the agent left processes behind, which were ended: {', '.join(ended.strays)}")
        if ended.left:
            note(f"these processes could not be ended: {', '.join(ended.left)}")
        if recorder.looks_like_rtf1:
            note("this output looks like RTF1; --transcript rtf1 would understand it")
        if self._state.iteration > 1:
            return
        if self._limits.cost and seen.cost.usd is None and not launch.cost_gap:
            note(costs.not_enforced(seen.usage.model or launch.settings.model))
        if self._limits.tokens and known_total(seen.usage) is None:
            note("--max-tokens cannot be enforced: this agent did not report its tokens")


def with_notes(notes: str, prompt: str) -> str:
    """Ralph's own words in front of a prompt."""
    return f"<ralph-notes>\n{notes}\n</ralph-notes>\n\n{prompt}" if notes else prompt
