"""Codex's human transcript, many lines at once.

A turn has a dozen lines of two dozen bytes, so that a call for each of them is most of what reading it costs. Here the
lines are one text, in which patterns find the next one that may be more than output, thoughts or words; what lies
before it is taken in one piece, however many lines it has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ralph.agents.codex.blocks import Command, Part, Status, quote_open, read_command, read_status
from ralph.agents.codex.divide import divide_escaped, divide_text
from ralph.agents.codex.text import MOST_DOUBTS
from ralph.agents.codex.turns import CHANGE, COMMAND, LONGEST, TurnTranscript
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStatus,
    TranscriptEvent,
)
from ralph.transcripts.json_lines import strip_escapes

if TYPE_CHECKING:
    from ralph.transcripts.base import Block

# All that may be more than output, and all that may be more than thoughts or words. A look at the first character of a
# line is most of the work, so it comes first. The second of each is for while a command runs: how it ended may follow.
_OUTPUT = r"(exec)\n|(thinking)\n|apply patch\n|file update\n|mcp: |(?:ERROR: )?(?:Re-?connecting|stream error: )"
_WORDS = (
    r"(exec)\n|(thinking)\n|(codex)\n|(tokens used)\n|apply patch\n|file update\n|mcp(?: startup)?: |ERROR: |warning: "
    r"|deprecated: |hook: |model rerouted: |Re-?connecting|stream error: |[0-9]{4}-"
)
_AFTER_OUTPUT = (
    re.compile(rf"\n(?=[etafmERs])(?:{_OUTPUT})").search,
    re.compile(rf"\n(?=[etafmERs ])(?:{_OUTPUT}|( )[^\n]*:\n)").search,
)
_AFTER_WORDS = (
    re.compile(rf"\n(?=[etcafmEwdhRs0-9])(?:{_WORDS})").search,
    re.compile(rf"\n(?=[etcafmEwdhRs0-9 ])(?:{_WORDS}|( )[^\n]*:\n)").search,
)
#: After `exec`, what certainly is no command, nor the first line of one.
_NO_COMMAND = re.compile(r"""\nexec\n(?![^\n]* in )[^'"\\\n\x1b\r]*\n""").match
_ENDED = re.compile(r"\n (?:succeeded|exited (-?[0-9]{1,9})) in ([0-9]{1,15})ms:(?=\n)").match
#: A line without its escape sequences is no more than output or words, nor does it change where those begin.
_HARMLESS = re.compile(
    r"(?!(?:exec|codex|thinking|user|apply patch|file update|tokens used)\Z|mcp|model rerouted: |ERROR: |Re"
    r"|stream error: |warning: |deprecated: |hook: |[0-9]{4}-|\*\*|apply_patch|\s)[\s\S]"
).match
#: The same by its first two characters, after colours: as nearly all are.
_SURELY = re.compile(r"\n(?:\x1b\[[0-9;]*m)*+(?!ex|co|th|us|ap|fi|to|mc|mo|ER|Re|st|wa|de|ho|[0-9]|\*)[!-~][ -~]").match
#: A command of more lines is left to `feed`.
_MOST_LINES = 20
_THINK, _AI, _TOOL = Part.THINK, Part.AI, Part.TOOL
_TAG_AI, _TAG_THINK = Tag.AI, Tag.THINK
_OK, _FAIL = ToolStatus.OK, ToolStatus.FAIL


class QuickTranscript(TurnTranscript):
    """The same events as from `feed`, sooner."""

    def feed_block(self, block: Block) -> None:
        text = block.text()
        if not text:
            return
        end = len(text) - 1
        harmful = _harmful(text, end) if "\x1b" in text or "\r" in text else [end]
        clean = harmful.pop()
        try:
            while block.pos < end:
                while clean < block.pos:
                    clean = harmful.pop()
                if not self._many(block, text, clean) and block.pos < end:
                    until = text.find("\n", block.pos + 1)
                    events = self.feed(text[block.pos + 1 : until])
                    block.pos = until
                    block.events += events
        finally:
            block.took()

    def _many(self, block: Block, text: str, end: int) -> bool:
        """Takes what it can; whether it could take any line."""
        if block.pos >= end or self._first is not None:
            return False
        part = self._part
        if part is _TOOL:
            if not self._running:
                begin = block.pos
                self._turns(block, text, end)
                if self._part is _THINK and block.pos < end:
                    self._talks(block, text, end)
                    return True
                if self._part is not _TOOL or block.pos >= end:
                    return block.pos > begin
            return self._held_until(block, text, end)
        if self._tail:
            return self._held_until(block, text, end)
        if part is not _AI and (part is not _THINK or self._patched):
            return False
        return (not self._running and self._talks(block, text, end)) or self._said_until(block, text, end)

    def _held_until(self, block: Block, text: str, end: int) -> bool:
        """What is held (a command's output, or what follows `tokens used`), and the line after it if it is usual."""
        begin = at = block.pos
        search = _AFTER_OUTPUT[bool(self._running)]
        while True:
            found = search(text, at, end + 1)
            if not found:
                self._keep(block, text, end)
                return True
            at, what = found.start(), found.lastindex
            if what == 2:  # `thinking`
                if self._newer() or not (_blank(text, begin, at) if at > begin else not self._previous.strip()):
                    at = found.end() - 1
                    continue
                events = self._closed(block, text, at)
                self._part, self._previous = _THINK, "thinking"
                block.pos = found.end() - 1
                block.events += events
                return True
            if what == 1:  # `exec`
                command = COMMAND(text, at, end + 1)
                if command and command.end(1) - command.start(1) <= LONGEST:
                    return self._runs(block, text, end, at, command)
                if self._doubts < MOST_DOUBTS - 1 and _NO_COMMAND(text, at, end + 1):
                    self._doubts += 1
                    at = found.end() - 1
                    continue
            if what == 3 and self._status(block, text, end, at):
                return True
            if what is None and not self._running:
                changed = CHANGE(text, at, end + 1)
                if changed and self._held.fits(changed.end() - begin):
                    return self._changes(block, text, at, changed)
            self._keep(block, text, at)
            return what == 1 and self._other_command(block)

    def _said_until(self, block: Block, text: str, end: int) -> bool:
        """Thoughts and words, until something else comes; and that if it is usual."""
        begin = at = block.pos
        search = _AFTER_WORDS[bool(self._running)]
        speaks = self._part is _AI
        while True:
            found = search(text, at, end + 1)
            if not found:
                self._say(block, text, end, speaks=speaks)
                return True
            at, what = found.start(), found.lastindex
            if what == 2 and not (_blank(text, begin, at) if at > begin else not self._previous.strip()):
                at = found.end() - 1
                continue
            if begin < at:
                self._say(block, text, at, speaks=speaks)
            if what == 3:  # `codex`
                self._part, self.words, self.error, self._previous = _AI, [], None, "codex"
                speaks = True
            elif what == 2:
                self._part, self._previous = _THINK, "thinking"
                speaks = False
            elif what == 1:
                command = COMMAND(text, at, end + 1)
                if command and command.end(1) - command.start(1) <= LONGEST:
                    return self._runs(block, text, end, at, command)
                return self._other_command(block)
            elif what == 4:  # `tokens used`
                self._tail = True
                return True
            else:
                return what == 5 and self._status(block, text, end, at)
            block.pos = begin = at = found.end() - 1

    def _say(self, block: Block, text: str, until: int, *, speaks: bool) -> None:
        """All lines before this newline are words, or thoughts."""
        begin = block.pos
        if begin < until:
            lines = text[begin + 1 : until].split("\n")
            if speaks:
                block.events += [Text(_TAG_AI, line) for line in lines]
                self._spoke(lines)
            else:
                block.events += [Text(_TAG_THINK, line) for line in lines if line and not line.isspace()]
            self._previous = lines[-1]
            block.pos = until

    def _keep(self, block: Block, text: str, until: int) -> None:
        """All lines before this newline are held."""
        begin = block.pos
        if begin < until:
            self._held.harmless += text.count("\x1b", begin, until) + text.count("\r", begin, until)
            events = [event for gone in self._held.add_all(text, begin, until) for event in self._hand_on(gone)]
            self._previous = text[text.rfind("\n", begin, until) + 1 : until]
            block.pos = until
            block.events += events

    def _closed(self, block: Block, text: str, until: int) -> list[TranscriptEvent]:
        """The events of what is held and of the lines before this newline, which something certain follows."""
        begin, divide, waits = block.pos, divide_text, bool(self._held)
        if begin == until and not waits and self._part is not _TOOL:
            return []
        if not self._held.fits(until - begin):
            self._keep(block, text, until)
            begin, waits = until, True
        if waits:
            harmless = self._held.harmless + text.count("\x1b", begin, until) + text.count("\r", begin, until)
            text = self._held.take_with(text, begin, until)
            begin, until = 0, len(text) - 1
            if text.count("\x1b") + text.count("\r") != harmless:  # in lines that were read alone
                divide = divide_escaped
        if self._part is not _TOOL or self._current is None:
            self._tail = False
            after = text[begin + 1 : until]
            if not after or after.isspace():
                return []
            return [Text(_TAG_AI if self._part is _AI else _TAG_THINK, after.rstrip("\n"))]
        key, name, ended, newer = self._current
        end = ToolEnd(ToolResult(key, ended.status, ended.duration_ms, name))
        if begin == until:
            self._current, self._part = None, _THINK
            return [end]
        divided = divide(text, begin, until, newer=newer, cut=self._cut)
        if divided is None:
            return self._ends(text[begin + 1 : until].split("\n"))
        think, speak = divided
        events: list[TranscriptEvent] = [end]
        if begin < think:
            output = text[begin + 1 : think]
            if output and not output.isspace():
                events = [ToolOutput(ToolRef(key, name), output.rstrip("\n")), end]
        self._current = None
        if think < speak:
            events.append(Text(_TAG_THINK, text[think + 1 : speak].rstrip("\n")))
        if speak < until:
            words = text[text.find("\n", speak + 1) + 1 : until]  # `codex` may be coloured
            self._part, self.error, self.words = _AI, None, [words]
            events.append(Text(_TAG_AI, words.rstrip("\n")))
        else:
            self._part = _THINK
        return events

    def _runs(self, block: Block, text: str, end: int, at: int, found: re.Match[str]) -> bool:
        """A command that is usual, those that begin at the same time, and how one of them ended if that follows."""
        events = self._closed(block, text, at)
        events.append(self._usual(*found.groups()))
        block.pos = found.end() if self._part is _TOOL else found.end(2)
        block.events += events
        if self._part is _TOOL:
            return True
        command = COMMAND(text, block.pos, end + 1)
        if command and command.end(1) - command.start(1) <= LONGEST:
            return self._runs(block, text, end, block.pos, command)
        if _ENDED(text, block.pos, end + 1):
            self._status(block, text, end, block.pos)
        return True

    def _changes(self, block: Block, text: str, at: int, found: re.Match[str]) -> bool:
        events = self._closed(block, text, at)
        self._tail = False
        change, first, code, took = found.groups()
        started, call = self._new("apply_patch", {"change": first})
        events += [*started, ToolOutput(ToolRef(*call), change)]
        self._output_of(call, Status(_FAIL if int(code) else _OK, int(took)), newer=False)
        self._previous = ":"
        block.pos = found.end()
        block.events += events
        return True

    def _other_command(self, block: Block) -> bool:
        """A command that is not so usual, after `exec`. If it is not clear soon where it ends, it is left to `feed`."""
        block.took()
        command, until = _read_command(block.lines, block.at + 1)
        if command is None:
            return False
        events = self._start(command)
        self._previous = "exec"
        block.take(until, events)
        block.text()
        return True

    def _status(self, block: Block, text: str, end: int, at: int) -> bool:
        """Whether this line tells how a command ended: one that ran with others, or for seconds."""
        for call in self._running:
            if call[1] == "shell":
                break
        else:
            return False
        usual = _ENDED(text, at, end + 1)
        if usual:
            code, took = usual.groups()
            status, until = Status(_FAIL if code and int(code) else _OK, int(took)), usual.end()
        else:
            until = text.find("\n", at + 1)
            told = read_status(text[at + 1 : until])
            if told is None or told[0]:
                return False
            status = told[1]
        events = self._closed(block, text, at)
        self._running.remove(call)
        self._output_of(call, status, newer=True)
        self._previous, self._tail = ":", False
        block.pos = until
        block.events += events
        return True


def _harmful(text: str, end: int) -> list[int]:
    """The newlines before lines in which escape sequences matter, the last one first, and the end before them."""
    found = [end]
    escape, at = text.find("\x1b"), 0
    carriage = text.find("\r")
    while escape >= 0 or carriage >= 0:
        first = escape if carriage < 0 or 0 <= escape < carriage else carriage
        before, at = text.rfind("\n", 0, first), text.find("\n", first)
        if not _SURELY(text, before) and not _HARMLESS(strip_escapes(text[before + 1 : at])):
            found.append(before)
        if 0 <= escape < at:
            escape = text.find("\x1b", at)
        if 0 <= carriage < at:
            carriage = text.find("\r", at)
    found[1:] = found[:0:-1]  # the next one is taken from the end
    return found


def _blank(text: str, begin: int, at: int) -> bool:
    """Whether the line that ends here is blank."""
    return not text[text.rfind("\n", begin, at) : at].strip()


def _read_command(lines: list[str], start: int) -> tuple[Command | None, int]:
    """The command that begins on this line, and where it ends; None if that is not clear soon."""
    text = ""
    for at in range(start, min(start + _MOST_LINES, len(lines))):
        line = lines[at]
        if "\x1b" in line or "\r" in line:
            break
        text = f"{text}\n{line}" if at > start else line
        if at == start or " in " in line or line[-1:] == ":":
            command = read_command(text)
            if command is not None:
                return command, at + 1
            if at == start and not quote_open(text):
                break
    return None, start
