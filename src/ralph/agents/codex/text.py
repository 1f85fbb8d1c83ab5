"""Codex's human-readable transcript (0.45 and later), on stderr; its last message is on stdout as well.

A command may print `user`, `codex` or `exec` on a line of its own, so these words alone prove nothing. Certain are:
`exec` followed by a whole command line and its directory, a status line while a command runs, a retry, and the end.
Lines that could be output are held until one of these comes, and then divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.agents.codex import shapes
from ralph.agents.codex.calls import Call, OpenCalls
from ralph.agents.codex.divide import Divided, divide_output, divide_prompt, find_trailer
from ralph.agents.codex.errors import retry
from ralph.agents.codex.held import HeldLines
from ralph.agents.codex.shapes import ERROR, Status
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import strip_escapes

if TYPE_CHECKING:
    from collections.abc import Callable

#: In characters: more than the longest argument of a command, with every quote in it escaped.
_LONGEST_COMMAND = 512 << 10
#: In lines. Text that imitates the start of a command again and again is not read anew without end.
_MOST_REREAD = 200_000
_PATCH_STATUS = {"completed": ToolStatus.OK, "in_progress": ToolStatus.UNKNOWN}


class Part(msgspec.Struct, frozen=True, eq=False):
    """A part of the transcript: what reads its content, and whose lines they are unless they are divided."""

    read: Callable[[str], list[TranscriptEvent]]
    tag: Tag


class TextTranscript:
    """Reads the lines of the stream that begins with `OpenAI Codex v…`.

    A line is read in two steps. If its first character can begin structure, the method for that character looks at it.
    If it is not structure, it is content, and the current part decides what becomes of it.
    """

    def __init__(self, prompt: str | None) -> None:
        #: by the first character of a line; empty until the header and the known prompt are over
        self._structure: dict[str, Callable[[str, str], list[TranscriptEvent] | None]] = {}
        self._held = HeldLines(self._hand_on)
        self._echo = Part(self._read_echo, Tag.PROMPT)  # of the known prompt
        self._prompt = Part(self._read_prompt, Tag.PROMPT)  # any other prompt, held
        self._thoughts = Part(self._read_thought, Tag.THINK)  # and notices of the CLI
        self._words = Part(self._read_word, Tag.AI)
        self._output = Part(self._held.add, Tag.SYS)  # of a command, and what follows it
        self._patch = Part(self._held.add, Tag.SYS)  # the text of a change
        self._part = Part(self._read_header, Tag.SYS)
        self._rules = 0
        self._model: str | None = None
        self._session = False
        #: the lines of the prompt that have not been echoed, last one first
        self._unread_prompt = [line.strip() for line in prompt.split("\n") if line.strip()][::-1] if prompt else []
        self._cut = False  # the first lines that were held are gone
        #: `tokens used` may begin the end, so the lines from there on are held
        self._tail: Part | None = None
        #: a line that may begin a command or a patch, and the lines after it
        self._pending: list[str] = []
        self._pending_name = ""
        self._pending_size = 0
        self._quote = ""
        self._reread = 0
        self._previous = "."
        self._calls = OpenCalls()
        #: the call whose output or patch is held, how it ended, and whether its version prints all of its output
        self._call: Call | None = None
        self._result = Status(ToolStatus.UNKNOWN)
        self._newer = False
        self._lists_files = False
        self._message = HeldLines(lambda _: [])
        #: the CLI's last error, if nothing came after it
        self.error: str | None = None

    @property
    def last_message(self) -> str:
        """The end of the agent's last message; all of it unless it is very long."""
        return "\n".join(self._message.lines()).strip()

    def feed(self, line: str) -> list[TranscriptEvent]:
        if self._pending:
            return self._continue(line, strip_escapes(line))
        structure = self._structure.get(line[:1])
        events = structure(line, strip_escapes(line)) if structure else None
        if events is None:
            events = self._part.read(line)
        self._previous = line
        return events

    def flush(self) -> list[TranscriptEvent]:
        """What was held, and the number of tokens."""
        events: list[TranscriptEvent] = []
        while self._pending:
            events += self._give_back()
        held = self._held.take()
        end = find_trailer(self._message.lines() if self._part is self._tail else [], held)
        if end is None:
            return events + self._end_part(held)
        # This total leaves out cached input. It is the only number in the text.
        return [*events, *self._end_part(held[: end[0]]), UsageEvent(Usage(total_tokens=end[1], model=self._model))]

    # -- the beginning

    def _read_header(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if bare == shapes.RULE:
            self._rules += 1
        elif self._rules >= 2:
            if bare != "user":
                self._begin(self._thoughts)
                return self.feed(line)
            if self._unread_prompt:
                self._part = self._echo
            else:
                self._begin(self._prompt)
            return []
        key, _, value = bare.partition(": ")
        if key == "model" and value:
            self._model = value
        elif key == "session id" and value and not self._session:
            self._session = True
            return [Text(Tag.SYS, line), meta.session(value, self._model)]
        return [Text(Tag.SYS, line)]

    def _read_echo(self, line: str) -> list[TranscriptEvent]:
        text = strip_escapes(line).strip()
        if text and text != self._unread_prompt[-1]:
            self._begin(self._prompt)  # not echoed as it was given, so its end has to be found
            return self.feed(line)
        if text:
            self._unread_prompt.pop()
            if not self._unread_prompt:
                self._begin(self._thoughts)
        return [Text(Tag.PROMPT, line)]

    def _begin(self, part: Part) -> None:
        self._part = part
        self._structure = {
            "e": self._block,
            "a": self._apply,
            "f": self._block,
            "t": self._thinking,
            "c": self._role,
            " ": self._status,
            "m": self._mcp,
            "E": self._retry,
            "R": self._retry,
            "\x1b": self._coloured,
        }

    # -- structure: the events of a line, or None if it is content

    def _coloured(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        structure = self._structure.get(bare[:1])
        return structure(line, bare) if structure is not None and bare[:1] != "\x1b" else None

    def _block(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        """`exec`, `apply patch` or `file update`: the next line shows whether a command or a patch begins."""
        if bare not in ("exec", "apply patch", "file update"):
            return None
        self._pending, self._pending_name, self._pending_size, self._quote = [line], bare, 0, ""
        return []

    def _apply(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        result = shapes.read_patch_end(bare) if self._part is self._patch else None
        if result is None or self._call is None:
            return self._block(line, bare)
        text = "\n".join(self._held.take())
        self._expect_output(self._call, result, newer=False)
        return [self._call.output(text)] if text else []

    def _role(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        """`codex` and `tokens used`, which prove nothing where lines are held."""
        if self._part is not self._words and self._part is not self._thoughts:
            return None
        if bare == "codex":
            self._speak([])
            return []
        if bare == "tokens used":
            self._part = self._tail = Part(self._held.add, self._part.tag)
        return None

    def _thinking(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        if bare != "thinking":
            return self._role(line, bare)
        newer = self._part is self._output and self._newer
        if newer or self._part is self._patch or strip_escapes(self._previous).strip():
            return None
        # It thinks before it speaks, so everything before its first thoughts is the prompt.
        events = _text(Tag.PROMPT, self._held.take()) if self._part is self._prompt else self._close()
        self._part = self._thoughts
        return events

    def _status(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        """How a command ended, if one runs."""
        before, result = shapes.read_status(bare) or (None, None)
        call = self._calls.close("shell") if before == "" else None
        if call is None or result is None:
            return None
        events = self._close()
        self._expect_output(call, result, newer=True)
        return events

    def _retry(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        again = retry(bare.removeprefix(ERROR)) if "onnecting..." in bare else None
        if again is None:
            return None
        events = self._close()
        self._part = self._thoughts
        return [*events, Text(Tag.SYS, line), again]

    def _mcp(self, line: str, bare: str) -> list[TranscriptEvent] | None:
        found = shapes.MCP.match(bare)
        if not found:
            return None
        name, started, ended = found.groups()
        if started:
            call = self._calls.new(name)
            self._calls.open(call)
            return self._start(call)
        events = self._close()
        running = self._calls.close(name)
        if running is None:
            return [*events, Text(Tag.SYS, line)]
        self._part = self._thoughts
        return [*events, running.end(ToolStatus.OK if ended == "completed" else ToolStatus.FAIL)]

    # -- commands and patches, which take more than one line

    def _continue(self, line: str, bare: str) -> list[TranscriptEvent]:
        self._pending.append(line)
        match self._pending_name:
            case "exec":
                return self._command_line(bare)
            case "apply patch" if patched := shapes.PATCHED.match(bare):
                self._pending = []
                call = self._calls.new("apply_patch")
                events = self._start(call)
                self._lists_files = True
                return [*events, call.end(_PATCH_STATUS.get(patched.group(1), ToolStatus.FAIL))]
            case "file update" if shapes.CHANGED.match(bare):
                self._pending = []
                call = self._calls.new("apply_patch")
                events = self._start(call, {"change": bare})
                self._part, self._call, self._cut = self._patch, call, False
                return events + self._held.add(line)
        return self._give_back()

    def _command_line(self, bare: str) -> list[TranscriptEvent]:
        found = shapes.read_command(bare, self._quote)
        if found is None:
            self._quote = shapes.open_quote(self._quote + bare)
            self._pending_size += len(bare)
            # A newline in a command is always in quotes: Codex quotes it as a shell would read it.
            return [] if self._quote and self._pending_size < _LONGEST_COMMAND else self._give_back()
        lines = [strip_escapes(line) for line in self._pending[1:-1]]
        self._pending = []
        call = self._calls.new("shell")
        events = self._start(call, {"command": "\n".join([*lines, found.text]), "cwd": found.directory})
        if found.ended is None:
            self._calls.open(call)
        else:
            self._expect_output(call, found.ended, newer=False)
        return events

    def _give_back(self) -> list[TranscriptEvent]:
        """It was not a command: the first line is content, and the others are read again."""
        first, *rest = self._pending
        self._pending = []
        self._previous = first
        events = self._part.read(first)
        self._reread += len(rest)
        for line in rest:
            events += self.feed(line) if self._reread < _MOST_REREAD else self._part.read(line)
        return events

    def _start(self, call: Call, given: dict[str, Any] | None = None) -> list[TranscriptEvent]:
        events = self._close()
        self._part, self.error = self._thoughts, None
        events.append(call.start(given))
        return events

    def _expect_output(self, call: Call, result: Status, *, newer: bool) -> None:
        self._part, self._cut = self._output, False
        self._call, self._result, self._newer = call, result, newer

    # -- content

    def _read_prompt(self, line: str) -> list[TranscriptEvent]:
        if shapes.TRACE.match(strip_escapes(line)):
            return [*self._close(), Text(Tag.SYS, line)]
        return self._held.add(line)

    def _read_thought(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if not bare.strip():
            return []
        self._lists_files = self._lists_files and bare.startswith("/")  # after a patch
        if self._lists_files:
            return [Text(Tag.SYS, line)]
        return self._notice(line) if shapes.NOTICE.match(bare) else [Text(Tag.THINK, line)]

    def _read_word(self, line: str) -> list[TranscriptEvent]:
        if shapes.FAILURE.match(strip_escapes(line)):
            return self._notice(line)
        self._message.add(line)
        return [Text(Tag.AI, line)]

    def _notice(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line)
        if bare.startswith(ERROR):
            self.error = bare.removeprefix(ERROR)
        return [Text(Tag.SYS, line)]

    def _hand_on(self, lines: list[str]) -> list[TranscriptEvent]:
        """The first lines of a part, if there are too many to hold until they can be divided."""
        self._cut = True
        return [self._call.output("\n".join(lines))] if self._call is not None else _text(self._part.tag, lines)

    # -- the end of a part

    def _close(self) -> list[TranscriptEvent]:
        """Something certain follows: divide what was held."""
        return self._end_part(self._held.take())

    def _end_part(self, held: list[str]) -> list[TranscriptEvent]:
        call, self._call = self._call, None
        if self._part is self._output and call is not None:
            return self._end_output(held, call)
        if self._part is self._prompt:
            divided = divide_prompt(held)
            events = _text(Tag.PROMPT, divided.first) + _text(Tag.SYS, divided.warning)
            return events + self._end_divided(divided)
        tag = self._part.tag
        if self._part is self._tail:
            self._part = self._words if tag is Tag.AI else self._thoughts
        return _text(tag, held)

    def _end_output(self, held: list[str], call: Call) -> list[TranscriptEvent]:
        divided = divide_output(held, newer=self._newer, cut=self._cut)
        events: list[TranscriptEvent] = []
        output = "\n".join(divided.first)
        if output and not output.isspace():
            events.append(call.output(output.rstrip("\n")))
        events.append(call.end(self._result.status, self._result.duration_ms))
        return events + self._end_divided(divided)

    def _end_divided(self, divided: Divided) -> list[TranscriptEvent]:
        """Thoughts, words and notices at the end of what was held."""
        self._part = self._thoughts
        events = _text(Tag.THINK, divided.thoughts)
        if divided.words:
            self._speak(divided.words)
            events += _text(Tag.AI, divided.words)
        for line in divided.notices:
            events += self._notice(line)
        return events

    def _speak(self, lines: list[str]) -> None:
        """A message begins with these lines."""
        self._part, self.error = self._words, None
        self._message.replace(lines)


def _text(tag: Tag, lines: list[str]) -> list[TranscriptEvent]:
    text = "\n".join(lines)
    return [Text(tag, text.rstrip("\n"))] if text and not text.isspace() else []
