"""Shows the stream of an agent that nobody here knows by the jq program that its driver brings."""

from __future__ import annotations

import os
import select
import subprocess
from contextlib import suppress
from typing import Any

from ralph.transcripts import meta
from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.events import Tag, Text, TranscriptEvent, decode_json

#: One answer for one line, whatever the line is: its filtered values, or null where it is no JSON or none for it.
_PROGRAM = "try [fromjson | (\n{filter}\n)] catch null"
#: A filter that thinks longer about one line will think forever.
_PATIENCE = 10.0


def command(jq: str, program: str) -> list[str]:
    return [jq, "-R", "-c", "--unbuffered", _PROGRAM.replace("{filter}", program)]


def complaint(jq: str, program: str) -> str | None:
    """Why jq does not take this filter, if it does not."""
    try:
        done = subprocess.run(
            command(jq, program), stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip()[:300]


class JqAdapter(TranscriptAdapter):
    """Each line goes through one jq that runs along. A line that is no JSON does not end it."""

    name = "driver"

    def __init__(self, jq: str, program: str) -> None:
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            command(jq, program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        self._answers = b""
        self._pending = ""

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._process is None or not line.lstrip().startswith(("{", "[")):
            return self._other(line)
        events: list[TranscriptEvent] = []
        try:
            shown = self._filtered(line)
        except OSError as error:
            self._end()
            events.append(meta.parse_error(f"the driver's filter ended ({error}); lines are shown as they come", ""))
            return [*events, *self._other(line)]
        if shown is None:
            return self._other(line)
        self.structured = True
        return self._words("".join(shown), fragment="delta" in line)

    def flush(self) -> list[TranscriptEvent]:
        self._end()
        return self._rest()

    def _words(self, text: str, *, fragment: bool) -> list[TranscriptEvent]:
        """Fragments are joined until their line is whole; anything else is a message of its own."""
        if not fragment:
            events = self._rest()
            text = text.strip("\n")
            return [*events, Text(Tag.AI, text)] if text else events
        lines, newline, self._pending = (self._pending + text).rpartition("\n")
        return [Text(Tag.AI, lines)] if newline else []

    def _rest(self) -> list[TranscriptEvent]:
        text, self._pending = self._pending, ""
        return [Text(Tag.AI, text)] if text else []

    def _other(self, line: str) -> list[TranscriptEvent]:
        """Text between JSON is nobody's words; of an agent that writes only text it is its own."""
        return [*self._rest(), Text(Tag.SYS if self.structured else Tag.AI, line)]

    def _filtered(self, line: str) -> list[str] | None:
        """None where it is no JSON, or the filter fails on it. OSError if jq is gone."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        data = memoryview(line.encode("utf-8", "surrogateescape") + b"\n")
        while data:  # a signal may cut a write short
            data = data[process.stdin.write(data) or 0 :]
        answer = decode_json(self._answer(process))
        return None if answer is None else [_shown(value) for value in answer]

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        while b"\n" not in self._answers:
            ready, _, _ = select.select([process.stdout], [], [], _PATIENCE)
            chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            if not chunk:
                raise OSError("jq ended" if ready else f"no answer within {_PATIENCE:g} s")
            self._answers += chunk
        answer, _, self._answers = self._answers.partition(b"\n")
        return answer

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        with suppress(OSError):
            process.communicate()


def _shown(value: Any) -> str:
    """As `jq -j` prints it."""
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
