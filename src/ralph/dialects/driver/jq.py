"""Shows the JSON stream of an unknown agent with the jq filter that its driver provides."""

from __future__ import annotations

import os
import select
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ralph.system import children, short, watcher
from ralph.transcripts import meta
from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.events import Tag, Text, TranscriptEvent, decode_json

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Prints exactly one line for each input line: the filtered values, or null if it is not JSON or the filter fails.
_PROGRAM = "try [fromjson | (\n{filter}\n)] catch null"
#: A filter that takes longer for one line is taken to be stuck.
_TIMEOUT = 10.0


def command(jq: str, program: str) -> list[str]:
    return [jq, "-R", "-c", "--unbuffered", _PROGRAM.replace("{filter}", program)]


def complaint(jq: str, program: str, environ: Mapping[str, str]) -> str | None:
    """Why jq rejects this filter. None if it accepts it."""
    try:
        done = short.run(command(jq, program), timeout=_TIMEOUT, env=environ)
    except OSError as error:
        return str(error)
    return None if done.status == 0 else done.reason or done.stderr.decode("utf-8", "replace").strip()[:300]


class JqAdapter(TranscriptAdapter):
    """Sends each line through one jq process, which also survives lines that are not JSON."""

    name = "driver"

    def __init__(self, jq: str, program: str, environ: Mapping[str, str]) -> None:
        self._process: subprocess.Popen[bytes] | None = children.start(
            command(jq, program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=watcher.begin(environ),
            bufsize=0,
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._answers = b""
        self._pending = ""

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._process is None or not line.lstrip().startswith(("{", "[")):
            return self._unfiltered(line)
        try:
            shown = self._filtered(line)
        except OSError as error:
            self._stop()
            failure = meta.parse_error(f"the driver's filter failed ({error}); further lines are shown unfiltered", "")
            return [failure, *self._unfiltered(line)]
        if shown is None:
            return self._unfiltered(line)
        self.structured = True
        return self._message("".join(shown), fragment="delta" in line)

    def flush(self) -> list[TranscriptEvent]:
        self._stop()
        return self._pending_text()

    def _message(self, text: str, *, fragment: bool) -> list[TranscriptEvent]:
        """Joins fragments into whole lines. Any other text is a message of its own."""
        if not fragment:
            events = self._pending_text()
            text = text.strip("\n")
            return [*events, Text(Tag.AI, text)] if text else events
        lines, newline, self._pending = (self._pending + text).rpartition("\n")
        return [Text(Tag.AI, lines)] if newline else []

    def _pending_text(self) -> list[TranscriptEvent]:
        text, self._pending = self._pending, ""
        return [Text(Tag.AI, text)] if text else []

    def _unfiltered(self, line: str) -> list[TranscriptEvent]:
        """Plain text is the agent's own, unless the agent also writes JSON."""
        return [*self._pending_text(), Text(Tag.SYS if self.structured else Tag.AI, line)]

    def _filtered(self, line: str) -> list[str] | None:
        """None if the line is not JSON or the filter fails on it. OSError if jq has stopped working."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        self._send(process.stdin.fileno(), line.encode("utf-8", "surrogateescape") + b"\n")
        answer = decode_json(self._answer(process))
        return None if answer is None else [_shown(value) for value in answer]

    def _send(self, fd: int, line: bytes) -> None:
        data = memoryview(line)
        while data:
            if not select.select([], [fd], [], _TIMEOUT)[1]:
                raise OSError(f"it reads nothing for {_TIMEOUT:g} s")
            data = data[os.write(fd, data) :]

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        while b"\n" not in self._answers:
            ready, _, _ = select.select([process.stdout], [], [], _TIMEOUT)
            chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            if not chunk:
                raise OSError("jq exited" if ready else f"no answer within {_TIMEOUT:g} s")
            self._answers += chunk
        answer, _, self._answers = self._answers.partition(b"\n")
        return answer

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        children.finish(process)
        watcher.end()


def _shown(value: Any) -> str:
    """The value as `jq -j` prints it."""
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
