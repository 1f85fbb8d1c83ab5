"""Codex's human transcript, many lines at once.

A turn has a dozen lines of two dozen bytes, so that a call for each of them is most of what reading it costs. Runs of
output, thoughts and words are taken together here, as are the lines between them that every turn has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.transcripts._codex_blocks import NOTICE, Command, Status, quote_open, read_command, read_status
from ralph.transcripts._codex_text import HumanTranscript, Part, stripped
from ralph.transcripts._numbers import whole
from ralph.transcripts.events import Tag, Text, ToolCall, ToolStart, ToolStatus, TranscriptEvent

if TYPE_CHECKING:
    from ralph.transcripts.base import Block

_BEGIN = frozenset({"exec", "apply patch", "file update", "thinking"})
_RETRY = ("Reconnecting", "Re-connecting", "stream error: ")
#: Lines that may be more than output: whole ones, how others begin, and by which character all of them are told.
_NOT_OUTPUT = (_BEGIN, ("mcp: ", "ERROR: ", *_RETRY))
#: The same for thoughts and words.
_NOT_WORDS = (_BEGIN | {"codex", "tokens used"}, (*NOTICE, *_RETRY, *"0123456789"))


def _first(whole: frozenset[str], begin: tuple[str, ...]) -> frozenset[str]:
    return frozenset(text[0] for text in (*whole, *begin))


_FIRST_OUTPUT, _FIRST_WORDS = _first(*_NOT_OUTPUT), _first(*_NOT_WORDS)

#: A block without any of these has nothing but commands and what is usual between them.
_UNUSUAL = ("\x1b", "\r", "apply patch", "file update", "mcp: ", "ERROR: ", "onnecting", "stream error: ")
#: So far ahead the next command is looked for.
_AHEAD = 64
_SUCCEEDED = " succeeded in "
#: A command of more lines is left to `feed`.
_COMMAND = 20
_THINK, _AI, _TOOL = Part.THINK, Part.AI, Part.TOOL
_TAG_AI, _TAG_THINK, _OK = Tag.AI, Tag.THINK, ToolStatus.OK


class QuickTranscript(HumanTranscript):
    """The same events as from `feed`, sooner."""

    _escaped = False  # whether any line of the block holds escape sequences

    def feed_block(self, block: Block) -> None:
        self._escaped = block.escaped()
        more = True
        while more and self._first is None and block.at < len(block.lines):
            part = self._part
            if part is _TOOL or self._tail:
                if self._newer() and not self._running and not block.holds(_UNUSUAL):
                    self._turns(block)
                more = self._output(block)
            elif part is _AI or (part is _THINK and not self._patched):
                more = self._said(block)
            else:
                return

    def _turns(self, block: Block) -> None:
        """Whole turns: what a command printed, thoughts, words, and a command that succeeded."""
        lines, at = block.lines, block.at
        most = len(lines) - 2
        while True:
            try:
                end = lines.index("exec", at, min(at + _AHEAD, most))
            except ValueError:
                return
            found = self._ran(lines, end + 1)
            if found is None:
                return
            text, directory, ended, until = found
            bare = held = lines[at:end]
            if self._held:
                held = self._held + held
                bare = stripped(held)  # what was held before may be of another block
            if "thinking" in bare:
                return
            events = self._tool_ends(held, bare)
            self._count += 1
            self.error = None
            key = f"call_{self._count}"
            events.append(ToolStart(ToolCall(key, "shell", {"command": text, "cwd": directory})))
            self._current = (key, "shell", ended, True)
            self._part, self._held, self._tail, self._previous = _TOOL, [], [], lines[until - 1]
            at = until
            block.take(at, events)

    def _ran(self, lines: list[str], at: int) -> tuple[str, str, Status, int] | None:
        """A command and its directory, how it ended on the next line, and where the next one is."""
        line, told = lines[at], lines[at + 1]
        text, found, directory = line.rpartition(" in ")
        if found and directory[:1] == "/" and line[-1] != ":" and not quote_open(text):
            at += 1
        else:
            command, at = self._read_command(lines, at)
            if command is None or command.ended is not None or at >= len(lines):
                return None
            text, directory, told = command.text, command.directory, lines[at]
        took = told[14:-3]
        if told[:14] == _SUCCEEDED and told[-3:] == "ms:" and took.isdecimal():
            return text, directory, Status(_OK, whole(took)), at + 1
        status = read_status(told) if told[:1] == " " else None
        return None if status is None or status[0] else (text, directory, status[1], at + 1)

    def _output(self, block: Block) -> bool:
        """What is held (a command's output, or what follows `tokens used`), and the line after it if it is usual."""
        whole, begin = _NOT_OUTPUT
        lines = block.ahead()
        escaped, running = self._escaped, bool(self._running)
        count = 0
        for line in lines:
            if line[:1] in _FIRST_OUTPUT and (line in whole or line.startswith(begin)):
                break
            if running and line[:1] == " " and line[-1] == ":":
                break  # it may tell how a command ended
            if escaped and ("\x1b" in line or "\r" in line):
                break
            count += 1
        if count:
            held = self._held if self._part is _TOOL else self._tail
            held += lines[:count]
            self._previous = lines[count - 1]
            block.at += count
        return self._usual(block)

    def _said(self, block: Block) -> bool:
        """Thoughts and words, until something else comes; and that if it is usual."""
        whole, begin = _NOT_WORDS
        lines = block.ahead()
        escaped, running = self._escaped, bool(self._running)
        speaks, anew = self._part is _AI, False
        tag = _TAG_AI if speaks else _TAG_THINK
        events: list[TranscriptEvent] = []
        words: list[str] = []
        previous = self._previous
        count = 0
        for line in lines:
            if line[:1] in _FIRST_WORDS and (line in whole or line.startswith(begin)):
                if line == "codex":
                    speaks, anew, words, tag = True, True, [], _TAG_AI
                elif line == "thinking" and (not previous or previous.isspace()):
                    speaks, tag = False, _TAG_THINK
                else:
                    break
            elif (running and line[:1] == " " and line[-1] == ":") or (escaped and ("\x1b" in line or "\r" in line)):
                break
            elif speaks:
                words.append(line)
                events.append(Text(tag, line))
            elif line and not line.isspace():
                events.append(Text(tag, line))
            previous = line
            count += 1
        if count:
            self._part, self._previous = _AI if speaks else _THINK, previous
            if anew:
                self.words, self.error = words, None
            else:
                self._spoke(words)
            block.take(block.at + count, events)
        return self._usual(block)

    def _usual(self, block: Block) -> bool:
        """Whether the next line was one that every turn has. If not, it is left to `feed`."""
        at, lines = block.at, block.lines
        if at >= len(lines):
            return False
        line = lines[at]
        if line == "exec":
            return self._command_follows(block, at)
        if line[:1] == " " and self._running:
            return self._maybe_ended(block, line)
        if line == "thinking" and self._part is _TOOL and not self._newer() and not self._previous.strip():
            events = self._close()
            self._part, self._previous = _THINK, line
            block.take(at + 1, events)
            return True
        return False

    def _command_follows(self, block: Block, at: int) -> bool:
        lines = block.lines
        command, until = self._read_command(lines, at + 1)
        if command is None:
            return False
        events = self._start(command)
        self._previous = "exec"
        block.take(until, events)
        if self._running and until < len(lines) and lines[until][:1] == " ":
            return self._maybe_ended(block, lines[until])
        return True

    def _read_command(self, lines: list[str], start: int) -> tuple[Command | None, int]:
        """The command that begins on this line, and where it ends; None if that is not clear soon."""
        text = ""
        for at in range(start, min(start + _COMMAND, len(lines))):
            line = lines[at]
            if self._escaped and ("\x1b" in line or "\r" in line):
                break
            text = f"{text}\n{line}" if at > start else line
            if at == start or " in " in line or line[-1:] == ":":
                command = read_command(text)
                if command is not None:
                    return command, at + 1
                if at == start and not quote_open(text):
                    break
        return None, start

    def _maybe_ended(self, block: Block, line: str) -> bool:
        if self._escaped and ("\x1b" in line or "\r" in line):
            return False
        events = self._ended(line)
        if events is None:
            return False
        self._previous = line
        block.take(block.at + 1, events)
        return True
