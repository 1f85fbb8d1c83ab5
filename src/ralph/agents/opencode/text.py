"""The text that opencode and its forks print for people: on stderr, or with everything else on a terminal.

These lines are coloured even when no terminal is attached, which is how they are recognised: a tool's output appears
between them without any mark, and may well say "Error: 401".
"""

from __future__ import annotations

import re

from ralph.agents.opencode.errors import error_class, is_refusal
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.meta import ErrorClass

_HEADER = re.compile(r"> \S+ · \S")
_TOOL = re.compile(r"\x1b\[0m[$←→✱%◇◈⚙✓✗•#] \x1b\[0m")
_TOOL_BARE = re.compile(r"(?:[$←→✱%◇◈⚙✓✗•] \S|# Todos$)")
_ERROR = "\x1b[91m\x1b[1mError: "
_DENIED = re.compile(r"! (permission requested: .*; auto-rejecting)$")
_FIELD = re.compile(r'\s+"message": "(.*)",?$')


class TextReader:
    """Follows one stream: stderr, or a stdout that may turn out to contain both."""

    def __init__(self, *, stderr: bool = False) -> None:
        self._stderr = stderr
        self._header = False  # on stdout, a header shows that this is a terminal's transcript
        self._words = False
        self._in_tool = False
        self._tools = False
        self._tool_failed = False
        self._after_blank = True
        self._in_object = False

    def read(self, line: str) -> list[TranscriptEvent]:
        """The line as text, tagged as if it came from stdout, and the events it stands for."""
        coloured = "\x1b" in line
        text = strip_escapes(line) if coloured else line
        after_blank, self._after_blank = self._after_blank, not text or text.isspace()
        if self._after_blank:
            if self._header or coloured:
                self._in_tool = False
            return [Text(Tag.SYS if line else Tag.AI, text)]
        if (coloured and line.startswith(_ERROR)) or (self._stderr and not self._tools and text.startswith("Error: ")):
            return [Text(Tag.SYS, text), *self._error(text.removeprefix("Error: "))]
        if self._in_object:
            return [Text(Tag.SYS, text), *self._error_object(text)]
        if (coloured and _TOOL.match(line)) or (self._header and after_blank and _TOOL_BARE.match(text)):
            self._tools = self._in_tool = True
            self._tool_failed = text.startswith("✗ ") and text.endswith(" failed")
            return [Text(Tag.TOOL, text)]
        if (self._stderr or self._header) and (denied := _DENIED.match(text)):
            return [Text(Tag.SYS, text), meta.error(denied.group(1), ErrorClass.PERMISSION_DENIED)]
        if not self._words and not self._header and _HEADER.match(text):
            self._header = True
            return [Text(Tag.SYS, text)]
        if self._in_tool:
            return [Text(Tag.TOOL, text)]
        if text.startswith("Thinking: "):
            return [Text(Tag.THINK, text.removeprefix("Thinking: "))]
        self._words = True
        return [Text(Tag.AI, text)]

    def _error(self, message: str) -> list[TranscriptEvent]:
        of_tool, self._tool_failed = self._tool_failed, False
        self._in_tool = False
        if is_refusal(message):
            return [meta.error(message, ErrorClass.PERMISSION_DENIED)]
        if of_tool:
            return []  # the model sees it and continues
        if message == "{":
            self._in_object = True
            return []
        return [meta.error(message, error_class(message))]

    def _error_object(self, text: str) -> list[TranscriptEvent]:
        """An error printed as a whole object: its message is one of the lines."""
        if text == "}":
            self._in_object = False
        found = _FIELD.match(text)
        return [meta.error(found.group(1), error_class(found.group(1)))] if found else []
