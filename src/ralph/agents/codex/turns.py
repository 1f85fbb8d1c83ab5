"""Whole turns of Codex's human transcript, each by one pattern.

A turn is what a command printed, thoughts, words, and the next command with how it ended. Of each thing only the usual
form is matched here, and only where it can be read in no other way; everything else is left to who reads line by line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ralph.agents.codex import held as codex_held
from ralph.agents.codex.blocks import OUTPUT_LINES, Part, Status
from ralph.agents.codex.text import HumanTranscript
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
)

if TYPE_CHECKING:
    from ralph.transcripts.base import Block

# A command as nearly all are: without quotes on one line, or a shell with its script in quotes, within which alone a
# line can end. The directory has no space, so that no other ` in ` can be meant, and no status can end before it. There
# are no escape sequences, which are no part of a command. Sets of ASCII characters are the quickest.
_SCRIPT = r"""[!#-&(-\[\]-~]++ -[a-z]++ (?:'[^'\x1b\r]*+'|"(?:[^"\\\x1b\r]++|\\[^\x1b\r])*+")++"""
_EXEC = rf"""\nexec\n({_SCRIPT}|[^'"\\\n\x1b\r]*) in (/[!-9;-~]*+)"""
_ENDED = r"(\n)? (?:succeeded|exited (-?[0-9]{1,9})) in ([0-9]{1,15})ms:"
#: The command that begins here: its text, its directory, and how it ended, if that follows.
COMMAND = re.compile(rf"{_EXEC}(?:{_ENDED})?(?=\n)").match

# Lines that may be more than output or words: how they begin, without their first character, by which most other lines
# are told from them.
_SPECIAL = (
    r"xec\n|odex\n|hinking\n|pply patch\n|ile update\n|cp: |cp startup: |odel rerouted: |RROR: |e-?connecting"
    r"|tream error: |arning: |eprecated: |ook: |[0-9]{3}-"
)
_FIRST = "ectafmERswdh0-9"
_NO_TITLE = rf"\n(?![{_FIRST}*](?:{_SPECIAL}|\*))[^\n]*+"
_HELD = rf"\n(?![{_FIRST}](?:{_SPECIAL}))[^\n]*+"
_SAID = rf"\n(?![{_FIRST}](?:{_SPECIAL}|okens used\n))[^\n]*+"
# Of what is held, thoughts are told by their title after a blank line, and words by `codex`. Up to 0.9x, `thinking`
# after a blank line is certain, and what follows it is no longer held.
_TITLED = rf"(?:(?<=\n)\n(\*\*[^*\n]++\*\*(?:{_NO_TITLE})*+))?+"
_SPEAKS = rf"(?:\ncodex\n((?!user\n|[{_FIRST}](?:{_SPECIAL}))\S[^\n]*+(?:{_HELD})*+))?+"
_THINKS = rf"(?:(?<=\n)\nthinking((?:{_SAID})*+)\ncodex(?:\n({_SAID[2:]}(?:{_SAID})*+))?+)?+"
#: Output of more lines is looked through more quickly in other ways.
_FEW = 60
_OUTPUT = rf"(?:\n({_NO_TITLE[2:]}(?:{_NO_TITLE}){{0,{_FEW}}}+))?+"
_RUNS = rf"{_EXEC}{_ENDED}(?=\n)"
_AGAIN = r"(?<=\n)\n(thinking)(?=\n)"
_TURN = re.compile(rf"{_OUTPUT}{_TITLED}{_SPEAKS}(?:{_THINKS}{_RUNS}|((?<=\n)\nthinking|\nfile update)(?=\n))").match
#: A change of files up to 0.9x, its text, and its result.
CHANGE = re.compile(
    r"\nfile update\n(([AMDR] \S[^\n\x1b\r]*+)"
    r"(?:\n(?!exec\n|apply[ _]patch|file update\n|mcp|ERROR: |Re|stream error: )[^\n]*+)*+)"
    r"\napply_patch\([^\n\x1b\r]*\) exited (-?[0-9]{1,9}) in ([0-9]{1,15})ms:(?=\n)"
).match
#: Thoughts or words that are not held, words, and a command, the end, thoughts, or no more lines.
_TALK = re.compile(
    rf"((?:{_SAID})*+)(?:\ncodex((?:{_SAID})*+))?+(?:{_RUNS}|\n(tokens used)(?=\n)|{_AGAIN}|(?=\n\Z))"
).match
#: What looked like the end, and was none.
_TAIL = re.compile(rf"\n(tokens used(?:{_HELD}|\ncodex(?=\n))*+)(?:{_RUNS}|{_AGAIN})").match
#: In characters. More of what was held before is left to others.
_NEAR = 4000
#: In characters. A longer command may have more lines than are read as one.
LONGEST = 4000
_THINK, _AI, _TOOL = Part.THINK, Part.AI, Part.TOOL
_TAG_AI, _TAG_THINK = Tag.AI, Tag.THINK
_OK, _FAIL = ToolStatus.OK, ToolStatus.FAIL


class TurnTranscript(HumanTranscript):
    """Takes turns, as long as they are usual."""

    def _turns(self, block: Block, text: str, end: int) -> None:
        """While a command's output is held, and no other command runs."""
        if self._current is None or self._cut or len(text) + _NEAR >= codex_held.MOST_HELD:
            return
        before = self._held.short(_NEAR) if self._held else ""
        if before is None:
            return
        #: where the text begins in that of the block
        start = 0
        if before:
            text, start = before + text[block.pos : end + 1], block.pos - len(before)
            end = len(text) - 1
        key, name, ended, newer = self._current
        status, duration, count, begin = ended.status, ended.duration_ms, self._count, block.pos - start - len(before)
        events: list[TranscriptEvent] = []
        add = events.append
        spoken: list[str] | None = None
        thinks, change, least = False, None, len(before)
        while found := _TURN(text, begin, end + 1):
            output, titled, words, thoughts, said, command, directory, line, code, took, other = found.groups()
            if newer:
                if thoughts is not None or other == "\nthinking":
                    break  # not certain
            elif words is not None and text.count("\n", begin, found.start(3) - 7) > OUTPUT_LINES:
                break
            if found.end() <= least:
                break
            if other is None:
                if len(command) > LONGEST:
                    break
            elif other == "\nfile update":
                change = CHANGE(text, found.start(11), end + 1)
                if not change:
                    break
            if output and not output.isspace():
                add(ToolOutput(ToolRef(key, name), output.rstrip("\n")))
            add(ToolEnd(ToolResult(key, status, duration, name)))
            if titled is not None:
                add(Text(_TAG_THINK, titled.rstrip("\n")))
            if words is not None:
                spoken = [words]
                add(Text(_TAG_AI, words.rstrip("\n")))
            if thoughts is not None:
                for one in thoughts.split("\n"):
                    if one and not one.isspace():
                        add(Text(_TAG_THINK, one))
                spoken = said.split("\n") if said is not None else []
                for one in spoken:
                    add(Text(_TAG_AI, one))
            if other is None:
                begin = found.end()
                name = "shell"
                given = {"command": command, "cwd": directory}
                newer = line is not None
            elif change is None:
                begin = found.end()
                thinks = True
                break
            else:
                begin = change.end()
                shown, first, code, took = change.groups()
                name, given, newer = "apply_patch", {"change": first}, False
            count += 1
            key = f"call_{count}"
            status = _FAIL if code and int(code) else _OK
            duration = int(took)
            add(ToolStart(ToolCall(key, name, given)))
            if change is not None:
                add(ToolOutput(ToolRef(key, name), shown))
                change = None
        if start + begin <= block.pos:
            return
        if before:
            self._held.take()
        self._previous = "exec"
        if count > self._count or spoken is not None:
            self.error = None
        if spoken is not None:
            self.words = []
            self._spoke(spoken)
        self._count, self._current = count, (key, name, Status(status, duration), newer)
        if thinks:
            self._current, self._part = None, _THINK
        block.pos = start + begin
        block.events += events

    def _talks(self, block: Block, text: str, end: int) -> bool:
        """While nothing is held, and no command runs; whether it could take any line."""
        if len(text) >= codex_held.MOST_HELD:
            return False
        begin = block.pos
        events: list[TranscriptEvent] = []
        while found := _TALK(text, block.pos, end + 1):
            first, said, command, directory, line, code, took, last, again = found.groups()
            if command is not None and len(command) > LONGEST:
                break
            if again and found.start(9) - 1 == block.pos and self._previous.strip():
                break
            self._said(first, said, events)
            if last:
                tail = _TAIL(text, found.start(8) - 1, end + 1)
                if not tail or len(tail[2] or "") > LONGEST:
                    self._tail = True
                    block.pos = found.start(8) - 1
                    break
                words, command, directory, line, code, took, again = tail.groups()
                events.append(Text(_TAG_AI if self._part is _AI else _TAG_THINK, words.rstrip("\n")))
                found = tail
            block.pos = found.end()
            if command is not None:
                events.append(self._usual(command, directory, line, code, took))
                break
            if not again:
                break
            self._part, self._previous = _THINK, again
            if block.pos >= end:
                break
        block.events += events
        return block.pos > begin or self._tail

    def _said(self, first: str, said: str | None, events: list[TranscriptEvent]) -> None:
        """Lines of whoever speaks, then those of the agent, each with a newline before it."""
        if first:
            lines = first[1:].split("\n")
            self._previous = lines[-1]
            if self._part is _AI:
                self._spoke(lines)
                for one in lines:
                    events.append(Text(_TAG_AI, one))
            else:
                for one in lines:
                    if one and not one.isspace():
                        events.append(Text(_TAG_THINK, one))
        if said is not None:
            lines = said[1:].split("\n") if said else []
            self._part, self.words, self.error, self._previous = _AI, [], None, lines[-1] if lines else "codex"
            self._spoke(lines)
            for one in lines:
                events.append(Text(_TAG_AI, one))

    def _usual(self, command: str, directory: str, newer: str | None, code: str | None, took: str | None) -> ToolStart:
        """The start of a command as `COMMAND` has found it, after everything before it has been closed."""
        self._count += 1
        self.error = None
        key = f"call_{self._count}"
        self._previous, self._tail = "exec", False
        if took is None or (newer and self._running):
            # Of commands that run at once it is not said which one ended.
            self._running.append((key, "shell"))
            self._part = _THINK
        else:
            status = _FAIL if code and int(code) else _OK
            self._current = (key, "shell", Status(status, int(took)), newer is not None)
            self._part, self._cut = _TOOL, False
        return ToolStart(ToolCall(key, "shell", {"command": command, "cwd": directory}))
