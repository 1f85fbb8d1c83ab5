"""Codex's human transcript (0.45 and later): it goes to stderr, and the last message alone to stdout."""

from __future__ import annotations

from typing import Any

from ralph.agents.codex.blocks import (
    CHANGED,
    MAYBE,
    MCP,
    OUTPUT_LINES,
    PATCH_END,
    PATCHED,
    RULE,
    TRACE,
    Command,
    Part,
    Status,
    duration_ms,
    is_notice,
    quote_open,
    read_command,
    read_status,
)
from ralph.agents.codex.divide import divide, notices_at, stripped, trailer
from ralph.agents.codex.errors import retry
from ralph.agents.codex.held import Held
from ralph.transcripts import meta
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
)
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.numbers import whole

_LONGEST_COMMAND = 5000
#: Pieces of the last message that are remembered.
MOST_WORDS = 100_000
MOST_DOUBTS = 200_000
_PATCH_STATUS = {"completed": ToolStatus.OK, "in_progress": ToolStatus.UNKNOWN}


# Looked up once: before Python 3.12 that takes as long as building an event.
_HEADER, _ECHO, _PROMPT, _THINK, _AI, _TOOL, _PATCH = Part
_TAG_AI, _TAG_THINK, _TAG_PROMPT, _TAG_SYS = Tag.AI, Tag.THINK, Tag.PROMPT, Tag.SYS


class HumanTranscript:
    """Feed it the lines of the stream that begins with `OpenAI Codex v…`."""

    def __init__(self, prompt: str | None) -> None:
        self._part = _HEADER
        self._rules = 0
        self._model: str | None = None
        self._echo = [line.strip() for line in prompt.split("\n") if line.strip()][::-1] if prompt else []
        self._held = Held()
        self._cut = False  # of what is held, the beginning is gone
        self._tail = False  # `tokens used` was there, which may be the end: what comes after it is held
        self._first: str | None = None
        self._command: list[str] = []
        self._previous = "."
        self._count = 0
        self._running: list[tuple[str, str]] = []
        self._current: tuple[str, str, Status, bool] | None = None
        self._session = False
        self._patched = False
        self._doubts = 0
        #: the last message, to recognise its copy on stdout: pieces of one or many lines
        self.words: list[str] = []
        #: the CLI's last error, if nothing came after it
        self.error: str | None = None

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._part is _TOOL and self._first is None and not MAYBE.match(line):
            self._previous = line
            return self._hold(line)
        bare = strip_escapes(line) if "\x1b" in line or line[-1:] == "\r" else line
        if self._part is _HEADER:
            return self._header(line, bare)
        if self._first is not None:
            return self._second(line, bare)
        events = self._certain(line, bare)
        if events is None:
            events = self._content(line, bare)
        self._previous = bare
        return events

    def flush(self) -> list[TranscriptEvent]:
        """What was held, and the number of tokens."""
        events: list[TranscriptEvent] = []
        if self._first is not None:
            events = self._give_back()
        lines = self._held.take()
        before = "\n".join(self.words).split("\n") if self._tail and self.words else []
        end = trailer([strip_escapes(line) for line in before + lines])
        if end is None or end[0] < len(before):
            return events + self._ends(lines)
        # This total leaves cached input out: it is all that the text says.
        events += self._ends(lines[: end[0] - len(before)])
        return [*events, UsageEvent(Usage(total_tokens=end[1], model=self._model))]

    # -- the beginning

    def _header(self, line: str, bare: str) -> list[TranscriptEvent]:
        if bare == RULE:
            self._rules += 1
        elif self._rules >= 2:
            if bare == "user":
                self._part = _ECHO if self._echo else _PROMPT
                return []
            self._part = _THINK
            return self.feed(line)
        key, _, value = bare.partition(": ")
        if key == "model" and value:
            self._model = value
        elif key == "session id" and value and not self._session:
            self._session = True
            return [Text(_TAG_SYS, line), meta.session(value, self._model)]
        return [Text(_TAG_SYS, line)]

    # -- lines that are certain, wherever they stand

    def _certain(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        if self._part is _ECHO:
            return None
        match bare:
            case "exec" | "apply patch" | "file update":
                self._first = line
                return []
            case "thinking" if not self._previous.strip() and self._part is not _PATCH and not self._newer():
                # It thinks before it speaks: all before its first thoughts is the prompt.
                if self._part is _PROMPT and self._held:
                    events = _text(_TAG_PROMPT, self._held.take())
                else:
                    events = self._close()
                self._part = _THINK
                return events
        if self._running and bare[:1] == " ":
            ended = self._ended(bare)
            if ended is not None:
                return ended
        again = retry(bare.removeprefix("ERROR: ")) if "onnecting..." in bare else None
        if again is not None:
            events = self._close()
            self._part = _THINK
            return [*events, Text(_TAG_SYS, line), again]
        if self._part is _PROMPT and TRACE.match(bare):
            return [*self._close(), Text(_TAG_SYS, line)]
        if bare.startswith("mcp: "):
            found = MCP.match(bare)
            if found:
                return self._mcp(line, found.group(1), found.group(3))
        if self._part is _PATCH and bare.startswith("apply_patch("):
            found = PATCH_END.match(bare)
            if found and self._running:
                status = ToolStatus.FAIL if whole(found.group(1)) else ToolStatus.OK
                call = self._running.pop()
                text = self._held.take()
                shown: list[TranscriptEvent] = [ToolOutput(ToolRef(*call), "\n".join(text))] if text else []
                return shown + self._output_of(call, Status(status, duration_ms(found.group(2))), newer=False)
        return None

    def _ended(self, bare: str) -> list[TranscriptEvent] | None:
        """While a command runs: the line that tells how it ended, if this is one."""
        told = read_status(bare)
        if told is None or told[0]:
            return None
        for at, call in enumerate(self._running):
            if call[1] == "shell":
                # Of commands that ran at once it is not said which one ended: the one that began first.
                events = self._close()
                del self._running[at]
                self._output_of(call, told[1], newer=True)
                return events
        return None

    def _second(self, line: str, bare: str) -> list[TranscriptEvent]:
        """The line after one that may begin a command or a patch."""
        first = strip_escapes(self._first or "")
        if first == "exec":
            return self._exec(line, bare)
        if first == "apply patch" and (patched := PATCHED.match(bare)):
            self._first = None
            events, call = self._new("apply_patch", None)
            status = _PATCH_STATUS.get(patched.group(1), ToolStatus.FAIL)
            self._part, self._patched = _THINK, True
            return [*events, ToolEnd(ToolResult(call[0], status, None, call[1]))]
        if first == "file update" and CHANGED.match(bare):
            self._first = None
            events, call = self._new("apply_patch", {"change": bare})
            self._running.append(call)
            self._part = _PATCH
            return events + self._hold(line)
        self._command.append(line)
        return self._give_back()

    def _exec(self, line: str, bare: str) -> list[TranscriptEvent]:
        self._command.append(line)
        one = len(self._command) == 1
        if one or " in " in bare or bare.endswith(":"):
            text = bare if one else strip_escapes("\n".join(self._command))
            found = read_command(text)
            if found is not None:
                self._first, self._command = None, []
                return self._start(found)
            if one and not quote_open(text):
                return self._give_back()
        return self._give_back() if len(self._command) > _LONGEST_COMMAND else []

    def _give_back(self) -> list[TranscriptEvent]:
        """It was none: the words stand for themselves, and what came after them is read anew."""
        lines, first = self._command, self._first or ""
        self._first, self._command = None, []
        events = self._content(first, strip_escapes(first))
        self._previous = first
        self._doubts += len(lines)
        for line in lines:
            # Not again and again: lines made to look like commands must not cost more than others.
            events += self.feed(line) if self._doubts < MOST_DOUBTS else self._content(line, strip_escapes(line))
        return events

    def _new(self, name: str, given: dict[str, Any] | None) -> tuple[list[TranscriptEvent], tuple[str, str]]:
        events = self._close()
        self._count += 1
        self.error = None
        call = (f"call_{self._count}", name)
        events.append(ToolStart(ToolCall(call[0], name, given)))
        return events, call

    def _start(self, command: Command) -> list[TranscriptEvent]:
        events, call = self._new("shell", {"command": command.text, "cwd": command.directory})
        if command.ended is not None:
            return events + self._output_of(call, command.ended, newer=False)
        self._running.append(call)
        self._part = _THINK
        return events

    def _output_of(self, call: tuple[str, str], status: Status, *, newer: bool) -> list[TranscriptEvent]:
        self._current = (*call, status, newer)
        self._part, self._cut = _TOOL, False
        return []

    def _mcp(self, line: str, name: str, ended: str | None) -> list[TranscriptEvent]:
        if ended is None:
            events, call = self._new(name, None)
            self._running.append(call)
            self._part = _THINK
            return events
        found = next((c for c in self._running if c[1] == name), None)
        if found is None:
            return [*self._close(), Text(_TAG_SYS, line)]
        self._running.remove(found)
        events = self._close()
        self._part = _THINK
        status = ToolStatus.OK if ended == "completed" else ToolStatus.FAIL
        return [*events, ToolEnd(ToolResult(found[0], status, None, name))]

    # -- everything else

    def _holding(self) -> bool:
        part = self._part
        return self._tail or part is _TOOL or part is _PROMPT or part is _PATCH

    def _newer(self) -> bool:
        return self._part is _TOOL and self._current is not None and self._current[3]

    def _content(self, line: str, bare: str) -> list[TranscriptEvent]:
        if self._holding():
            return self._hold(line)
        if self._part is _ECHO:
            return self._echoed(line, bare)
        if bare == "tokens used":
            self._tail = True
            return self._hold(line)
        if bare == "codex":
            self._part, self.words, self.error = _AI, [], None
            return []
        if self._part is _AI:
            if bare.startswith("ERROR: ") or TRACE.match(bare):
                return self._notice(line, bare)
            self._spoke([line])
            return [Text(_TAG_AI, line)]
        if not bare.strip():
            return []
        self._patched = self._patched and bare.startswith("/")
        if self._patched:  # the files of a patch are listed after it
            return [Text(_TAG_SYS, line)]
        return self._notice(line, bare) if is_notice(bare) else [Text(_TAG_THINK, line)]

    def _hold(self, line: str) -> list[TranscriptEvent]:
        gone = self._held.add(line)
        return [] if gone is None else self._hand_on(gone)

    def _hand_on(self, text: str) -> list[TranscriptEvent]:
        """The beginning of so much that it waits no longer to be divided."""
        self._cut = True
        part = self._part
        if part is _TOOL and self._current is not None:
            return [ToolOutput(ToolRef(*self._current[:2]), text)]
        if part is _PATCH and self._running:
            return [ToolOutput(ToolRef(*self._running[-1]), text)]
        if part is _PROMPT:
            return _text(_TAG_PROMPT, [text])
        return _text(_TAG_AI if part is _AI else _TAG_THINK, [text])

    def _spoke(self, lines: list[str]) -> None:
        self.words += lines
        if len(self.words) > MOST_WORDS:  # the end is enough to recognise a copy
            del self.words[: -(MOST_WORDS // 2)]

    def _echoed(self, line: str, bare: str) -> list[TranscriptEvent]:
        if bare.strip():
            if self._echo[-1] != bare.strip():
                # Not as it was given: where it ends must be found out.
                self._part = _PROMPT
                return self.feed(line)
            self._echo.pop()
            if not self._echo:
                self._part = _THINK
        return [Text(_TAG_PROMPT, line)]

    def _notice(self, line: str, bare: str) -> list[TranscriptEvent]:
        if bare.startswith("ERROR: "):
            self.error = bare.removeprefix("ERROR: ")
        return [Text(_TAG_SYS, line)]

    def _close(self) -> list[TranscriptEvent]:
        """Something certain follows, or the end: what was held can be divided now."""
        return self._ends(self._held.take())

    def _ends(self, held: list[str]) -> list[TranscriptEvent]:
        self._tail = False
        part = self._part
        if part is _TOOL:
            return self._tool_ends(held)
        if part is _PATCH:
            return _text(_TAG_SYS, held)
        if part is _PROMPT:
            return self._prompt_ends(held)
        return _text(_TAG_AI if part is _AI else _TAG_THINK, held)

    def _prompt_ends(self, held: list[str]) -> list[TranscriptEvent]:
        bare = stripped(held)
        end = notices_at(bare, blank_before=False)
        think, speak = divide(bare[:end], blank_after_output=False)
        warned = next((i for i in range(think - 1, -1, -1) if bare[i].startswith("warning: ")), None)
        events: list[TranscriptEvent] = []
        if warned is not None:
            events = _text(_TAG_PROMPT, held[:warned]) + _text(_TAG_SYS, [held[warned]])
            events += _text(_TAG_THINK, held[warned + 1 : think])
        else:
            events = _text(_TAG_PROMPT, held[:think])
        return events + self._spoken(held, bare, think, speak, end)

    def _tool_ends(self, held: list[str]) -> list[TranscriptEvent]:
        if self._current is None:
            return _text(_TAG_SYS, held)
        bare = stripped(held)
        key, name, ended, newer = self._current
        end = notices_at(bare, blank_before=newer)
        limit = None if newer else -1 if self._cut else OUTPUT_LINES
        think, speak = divide(bare if end == len(bare) else bare[:end], blank_after_output=newer, limit=limit)
        events: list[TranscriptEvent] = []
        output = "\n".join(held[:think])
        if output and not output.isspace():
            events.append(ToolOutput(ToolRef(key, name), output.rstrip("\n")))
        events.append(ToolEnd(ToolResult(key, ended.status, ended.duration_ms, name)))
        self._current = None
        events += self._spoken(held, bare, think, speak, end)
        return events

    def _spoken(self, held: list[str], bare: list[str], think: int, speak: int, end: int) -> list[TranscriptEvent]:
        events = _text(_TAG_THINK, held[think:speak]) if think < speak else []
        self._part = _THINK
        if speak < end:
            self._part, self.error = _AI, None
            self.words = ["\n".join(held[speak + 1 : end])]
            events += _text(_TAG_AI, self.words)
        if end < len(held):
            for line, naked in zip(held[end:], bare[end:], strict=True):
                events += self._notice(line, naked)
        return events


def _text(tag: Tag, lines: list[str]) -> list[TranscriptEvent]:
    text = "\n".join(lines)
    return [Text(tag, text.rstrip("\n"))] if text and not text.isspace() else []
