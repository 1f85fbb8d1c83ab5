"""Runs an agent once, and writes its output in Claude's format."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.agents import adapters as registry
from ralph.as_claude import writer
from ralph.as_claude.flags import Format
from ralph.as_claude.wording import api_error
from ralph.judging.judge import Outcome, Verdict, judge
from ralph.judging.observe import Observation
from ralph.judging.output import OutputReader
from ralph.judging.signals import Markers
from ralph.launching.deadlines import deadlines_of
from ralph.runners.process import Command, Ended, EndKind, Supervisor
from ralph.runners.stop import StopSwitch
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from ralph.as_claude.adjust import Adjusted
    from ralph.as_claude.flags import Asked
    from ralph.transcripts.events import TranscriptEvent

#: After this many seconds without text, an empty delta shows the host that the agent is still working.
_KEEP_ALIVE = 10.0
_TIMED_OUT = 124
_NOT_FOUND = 127


class Out:
    """Our stdout. `closed` is set when the host has stopped reading, which ends the run."""

    def __init__(self) -> None:
        self.closed = False
        self.last = time.monotonic()

    def write(self, data: bytes) -> None:
        if self.closed:
            return
        self.last = time.monotonic()
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
        except BrokenPipeError:
            self.closed = True


class _Relay:
    """The sink: passes stderr on as it comes, and ends with the program that started us. There is no journal."""

    def __init__(
        self, adapter: SafeAdapter, seen: Observation, out: Out, lines: writer.ClaudeWriter, *, stream: bool
    ) -> None:
        self._reader = OutputReader(adapter, seen)
        self._seen = seen
        self._host = out
        self._lines = lines
        self._stream = stream
        self._parent = os.getppid()

    def stdout(self, chunk: bytes) -> None:
        self._show(self._reader.stdout(chunk))
        if self._stream and time.monotonic() - self._host.last > _KEEP_ALIVE:
            self._host.write(writer.delta(""))

    def stderr(self, chunk: bytes) -> None:
        _to_stderr(chunk)
        self._show(self._reader.stderr(chunk))

    def finish(self) -> None:
        self._show(self._reader.end())

    def exited(self) -> None:
        self._show(self._reader.exited())

    def tick(self) -> None:
        pass

    def stop_reason(self) -> str | None:
        if os.getppid() != self._parent:
            return "the program that started it is gone"
        return "nobody reads its output any more" if self._host.closed else None

    def deadline(self) -> float | None:
        return None

    def finished(self) -> bool:
        return self._seen.finished

    def _show(self, events: list[TranscriptEvent]) -> None:
        written = self._lines.feed(events) if events else []
        if self._stream and written:
            self._host.write(b"".join(written))


def run(adjusted: Adjusted, prompt: str, asked: Asked, *, verbose: bool) -> int:
    """Runs the agent and writes its text. Returns the exit code for the host."""
    launch, form = adjusted.launch, asked.format
    out = Out()
    adapter = SafeAdapter(registry.create(launch.transcript, prompt=prompt))
    seen = Observation(Markers(), prompt=prompt)
    lines = writer.ClaudeWriter(verbose=verbose)
    relay = _Relay(adapter, seen, out, lines, stream=form is Format.STREAM)
    with tempfile.TemporaryDirectory(prefix="ralph-as-claude-", ignore_cleanup_errors=True) as folder:
        prompt_file = Path(folder) / "prompt.md"
        prompt_file.write_bytes(prompt.encode("utf-8", "surrogateescape"))
        line = launch.command_line(prompt, prompt_file, asked.resume, resume=asked.resume is not None)
        command = Command(
            line.argv,
            launch.env | line.env | {"PWD": str(launch.workdir)},
            str(launch.workdir),
            line.stdin,
            launch.settings.pty or launch.invocation.pty,
        )
        with StopSwitch() as stop, Supervisor(stop, tick=0.5) as supervisor:
            try:
                ended = supervisor.run(command, relay, deadlines_of(launch))
            finally:
                relay.finish()
    verdict = judge(ended, seen, structured=adapter.structured)
    error = api_error(verdict, seen, launch.title, datetime.now(UTC))
    last = writer.result(verdict, seen, lines.message, ended.seconds, error)
    if adjusted.whole_usage:  # a number that may be of other runs is unknown
        last.pop("usage", None)
    if adjusted.whole_cost or adjusted.whole_usage:
        last.pop("total_cost_usd", None)
    if error is not None and form is Format.STREAM:
        out.write(writer.line(writer.error_message(error, seen.session_id, datetime.now(UTC))))
    _finish(out, form, verdict, last)
    return exit_code(ended, verdict)


def _finish(out: Out, form: Format, verdict: Verdict, last: dict[str, object]) -> None:
    if form is Format.TEXT:
        out.write(str(last["result"]).encode("utf-8", "replace") + b"\n")
    else:
        out.write(writer.line(last))
    if verdict.outcome is not Outcome.OK:
        _to_stderr(f"ralph as-claude: {verdict.outcome}: {verdict.why}\n".encode("utf-8", "replace"))


def _to_stderr(data: bytes) -> None:
    try:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
    except OSError:
        pass  # stderr is closed; the result on stdout contains the same message


def exit_code(ended: Ended, verdict: Verdict) -> int:
    """The agent's exit code, or the one that a shell would report. Never 0 after an error."""
    if verdict.outcome is Outcome.OK:
        return 0
    match ended.kind:
        case EndKind.NOT_STARTED:
            return _NOT_FOUND
        case EndKind.IDLE | EndKind.WALL:
            return _TIMED_OUT
        case EndKind.STOPPED:
            return 130 if ended.reason == "interrupted" else 143
    status = ended.status
    if status is None or status == 0:
        return 1
    return status if status > 0 else 128 - status
