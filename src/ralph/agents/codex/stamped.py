"""Codex's human-readable transcript up to 0.44: all of it on stdout, and each event begins with its time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ralph.agents.codex.calls import Call, OpenCalls
from ralph.agents.codex.errors import classify_message, limit, retry
from ralph.agents.codex.held import HeldLines
from ralph.agents.codex.shapes import ERROR, RULE, Status, duration_ms, read_patch_end, read_status
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import whole

if TYPE_CHECKING:
    from collections.abc import Callable

_VERSION = re.compile(r"OpenAI Codex v0\.(\d{1,4})\.")
#: Since this version `tokens used` is the total of the run; before it, of one call.
_CUMULATIVE = 30
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+Z?\] ")
_ROLES = {"codex": Tag.AI, "thinking": Tag.THINK, "User instructions:": Tag.PROMPT}
_TOKENS = re.compile(r"tokens used: ([\d,]+)\Z")
_PATCH = re.compile(r"(apply_patch) auto_approved=\w+:\Z")
_MCP = re.compile(r"tool (\S+)\(")
_MCP_END = re.compile(r"(\S+)\(.*\) (success|failed)(?: in (\S.*))?:\Z")


class StampedTranscript:
    """Roles are certain here, because only the CLI writes a time at the start of a line, or a tool that imitates it."""

    error: str | None = None
    last_message = ""

    def __init__(self) -> None:
        self._tag = Tag.SYS
        self._blank = False  # nothing but blank lines since the last time
        self._model: str | None = None
        self._rules = 0
        self._calls = OpenCalls()
        #: reads the next line of a command or of its result, both of which may take several; None for other lines
        self._continue: Callable[[str], list[TranscriptEvent]] | None = None
        self._held = HeldLines(self._hand_on)
        #: the call whose output comes now, and how it ended
        self._ended: tuple[Call, Status] | None = None
        self._tokens = 0
        self._per_call = False

    def feed(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        stamp = _STAMP.match(bare)
        if stamp:
            return self._close() + self._event(line, bare[stamp.end() :])
        if self._continue is not None:
            return self._continue(bare)
        if self._ended is not None:
            return self._held.add(line)
        if bare == RULE:
            self._rules += 1
        elif self._rules < 2 and bare.startswith("model: "):
            self._model = bare.removeprefix("model: ")
        self._blank = self._blank and not bare.strip()
        return [] if self._blank else [Text(self._tag, line)]

    def flush(self) -> list[TranscriptEvent]:
        events = self._close()
        if self._calls:  # Codex's launcher exits with 0 when a signal ends it
            events.append(meta.error("the output ends in the middle of a tool call", ErrorClass.FAILED))
        return events

    def _event(self, line: str, bare: str) -> list[TranscriptEvent]:
        self._tag, self._blank = _ROLES.get(bare, Tag.SYS), True
        if bare in _ROLES:
            return []
        if bare.startswith("exec "):
            self._continue = self._command_line
            return self._command_line(bare.removeprefix("exec "))
        tokens = _TOKENS.match(bare)
        if tokens:
            return self._used(whole(tokens.group(1).replace(",", "") or "0"))
        if self._tool_ends(bare):
            return []
        started = _PATCH.match(bare) or _MCP.match(bare)
        if started:
            return self._start(started.group(1))
        notice = self._notice(line, bare)
        latest = self._calls.latest()
        if notice or latest is None or latest.name != "shell":
            return notice or [Text(Tag.SYS, line)]
        self._continue = self._status_line
        return self._status_line(bare)

    def _notice(self, line: str, bare: str) -> list[TranscriptEvent]:
        """The CLI's own lines that say more than their text."""
        version = _VERSION.match(bare)
        if version:
            self._per_call = whole(version.group(1)) < _CUMULATIVE
            return [Text(Tag.SYS, line)]
        if bare.startswith(ERROR):
            message = bare.removeprefix(ERROR)
            kind = classify_message(message)
            return [Text(Tag.SYS, line), *limit(message, kind), meta.error(message, kind)]
        again = retry(bare)
        return [Text(Tag.SYS, line), again] if again is not None else []

    def _start(self, name: str, given: dict[str, str] | None = None) -> list[TranscriptEvent]:
        call = self._calls.new(name)
        self._calls.open(call)
        return [call.start(dict(given) if given else None)]

    def _command_line(self, bare: str) -> list[TranscriptEvent]:
        """A command ends with its directory."""
        text, found, directory = bare.rpartition(" in ")
        if not found:
            return self._held.add(bare)
        self._continue = None
        return self._start("shell", {"command": "\n".join([*self._held.take(), text]), "cwd": directory})

    def _status_line(self, bare: str) -> list[TranscriptEvent]:
        """A result repeats the command and ends with its status."""
        _, status = read_status(bare) or ("", None)
        if status is None:
            return self._held.add(bare)
        self._continue = None
        self._held.take()
        self._expect_output("shell", status)
        return []

    def _tool_ends(self, bare: str) -> bool:
        """Patches and MCP tools, whose results name them. The text of a patch has come as SYS."""
        status = read_patch_end(bare)
        if status is not None:
            return self._expect_output("apply_patch", status)
        found = _MCP_END.match(bare)
        if not found:
            return False
        status = Status(ToolStatus.OK if found.group(2) == "success" else ToolStatus.FAIL, duration_ms(found.group(3)))
        return self._expect_output(found.group(1), status)

    def _expect_output(self, name: str, status: Status) -> bool:
        call = self._calls.close(name)
        self._ended = (call, status) if call is not None else None
        return call is not None

    def _used(self, total: int) -> list[TranscriptEvent]:
        """Without cached input. The same total may come twice."""
        more, self._tokens = total if self._per_call else total - self._tokens, total
        return [UsageEvent(Usage(total_tokens=more, model=self._model))] if more > 0 else []

    def _hand_on(self, lines: list[str]) -> list[TranscriptEvent]:
        text = "\n".join(lines).strip("\n")
        if self._ended is not None:
            return [self._ended[0].output(text)] if text else []
        return [Text(Tag.SYS, text)]

    def _close(self) -> list[TranscriptEvent]:
        """The next event begins, so the output before it is complete."""
        lines = self._held.take()
        events = self._hand_on(lines) if lines else []
        if self._ended is not None:
            call, status = self._ended
            events.append(call.end(status.status, status.duration_ms))
        self._continue, self._ended = None, None
        return events
