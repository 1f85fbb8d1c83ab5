"""The lines that opencode and its forks write for people: on stderr, or all in one on a terminal.

They are coloured even where nobody looks, and that is what makes them certain: a tool's output stands between
them unmarked, and may say "Error: 401" as well.
"""

from __future__ import annotations

import re

from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent
from ralph.transcripts.meta import ErrorClass

_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_HEADER = re.compile(r"> \S+ · \S")
_ICONS = "$←→✱%◇◈⚙✓✗•#"
_TOOL = re.compile(rf"\x1b\[0m[{_ICONS}] \x1b\[0m")
_TOOL_BARE = re.compile(r"(?:[$←→✱%◇◈⚙✓✗•] \S|# Todos$)")
_ERROR = "\x1b[91m\x1b[1mError: "
_DENIED = re.compile(r"permission requested: .*; auto-rejecting$")
_FIELD = re.compile(r'\s+"message": "(.*)",?$')
#: How a line begins that may be more than words: a thought, or JSON.
_NOT_WORDS = frozenset("T{[")
#: What opencode tells the model when it refuses a call. Tools report a file's missing rights in other words.
_REFUSALS = (
    "The user rejected permission to use",
    "The user has rejected permission",
    "The user has specified a rule which prevents you from using",
)


def without_colours(line: str) -> str:
    return _COLOURS.sub("", line) if "\x1b" in line else line


def is_refusal(error: str) -> bool:
    return error.startswith(_REFUSALS)


def error_class(message: str, name: str | None = None, status: int | None = None) -> ErrorClass:
    """By opencode's own name for the error, else by what the provider said."""
    match name:
        case "ContextOverflowError":
            return ErrorClass.CONTEXT_EXCEEDED
        case "ProviderAuthError":
            return ErrorClass.AUTH
    if message.startswith("Unexpected server error"):
        return ErrorClass.FAILED  # its own server, inside the CLI: no provider is overloaded
    return classify(message, status)


class UiLines:
    """Follows one stream of such lines: stderr, or a stdout that turns out to be all in one."""

    def __init__(self, *, stderr: bool = False) -> None:
        self._stderr = stderr
        self._header = False  # on stdout it is what tells a terminal's transcript from an agent's words
        self._words = False
        self._in_tool = False
        self._tools = False
        self._tool_failed = False
        self._after_blank = True
        self._object = False

    def read(self, line: str) -> tuple[Tag, str, list[Meta]]:
        """Whose line it is if stdout and stderr are one, its text, and what it means."""
        text = without_colours(line)
        blank = not text.strip()
        after_blank, self._after_blank = self._after_blank, blank
        if blank:
            self._in_tool = False if line.startswith("\x1b[0m") or self._header else self._in_tool
            return Tag.SYS if line else Tag.AI, text, []
        if line.startswith(_ERROR) or (self._stderr and text.startswith("Error: ") and not self._tools):
            return Tag.SYS, text, self._error(text.removeprefix("Error: "))
        if self._object:
            return Tag.SYS, text, self._error_object(text)
        if text.startswith("! ") and (self._stderr or self._header) and _DENIED.search(text):
            return Tag.SYS, text, [meta.error(text[2:], ErrorClass.PERMISSION_DENIED)]
        if _TOOL.match(line) or (self._header and after_blank and _TOOL_BARE.match(text)):
            self._tools = self._in_tool = True
            self._tool_failed = text.startswith("✗ ") and text.endswith(" failed")
            return Tag.TOOL, text, []
        if not self._words and not self._header and _HEADER.match(text):
            self._header = True
            return Tag.SYS, text, []
        if text.startswith("Thinking: ") and not self._in_tool:
            return Tag.THINK, text.removeprefix("Thinking: "), []
        if self._in_tool:
            return Tag.TOOL, text, []
        self._words = True
        return Tag.AI, text, []

    def words(self, lines: list[str]) -> list[TranscriptEvent]:
        """The first of these lines that are nothing but an agent's words on stdout, as `read` would tell; else none."""
        events: list[TranscriptEvent] = []
        if not self._words or self._stderr or self._header or self._in_tool or self._object:
            return events
        ai, nobody = Tag.AI, Tag.SYS
        for line in lines:
            if line[:1] in _NOT_WORDS or "\x1b" in line:
                break
            events.append(Text(nobody if line.isspace() else ai, line))
        if events:
            self._after_blank = not lines[len(events) - 1].strip()
        return events

    def _error(self, message: str) -> list[Meta]:
        of_tool, self._tool_failed = self._tool_failed, False
        self._in_tool = False
        if is_refusal(message):
            return [meta.error(message, ErrorClass.PERMISSION_DENIED)]
        if of_tool:
            return []  # the model is told, and goes on
        if message == "{":
            self._object = True
            return []
        return [meta.error(message, error_class(message))]

    def _error_object(self, text: str) -> list[Meta]:
        """An error that was printed as a whole object: its message is one of the lines."""
        if text == "}":
            self._object = False
        found = _FIELD.match(text)
        return [meta.error(found.group(1), error_class(found.group(1)))] if found else []
