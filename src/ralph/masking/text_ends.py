"""The ends of texts that were passed on: a secret may have started there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.transcripts.events import Text, ToolEnd, ToolOutput

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: How many characters of a text are remembered.
CONTEXT = 64
#: Tools that never end must not fill the memory; the oldest is dropped.
_TOOLS = 256


def tool_key(tool: str) -> str:
    return f"tool {tool}"


class TextEnds:
    """The last characters of each text.

    It keeps no events: freeing them later, when they are no longer in the processor's cache, took a tenth of the time.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._words: dict[str, str] = {}
        self._tools: dict[str, str] = {}
        # Those of the last scan.
        self._new_words: dict[str, str] = {}
        self._new_tools: dict[str, str] = {}
        self._ended: set[str] = set()

    def scan(self, events: list[TranscriptEvent]) -> set[str]:
        """The last characters of each event's text. Call `keep` next if the events are passed on unchanged."""
        # A single pass, because this runs for every event.
        size, ends, ended = self._size, set(), set()
        words: dict[str, str] = {}
        tools: dict[str, str] = {}
        for event in events:
            kind = type(event)
            if kind is ToolOutput:
                text = event.text  # type: ignore[union-attr]
                ends.add(text[-size:])
                tool = event.tool.id  # type: ignore[union-attr]
                tools[tool] = text if len(text) >= CONTEXT else tools.get(tool, "") + text
            elif kind is Text:
                text = event.text  # type: ignore[union-attr]
                ends.add(text[-size:])
                tag = event.tag  # type: ignore[union-attr]
                words[tag] = text if len(text) >= CONTEXT else words.get(tag, "") + text
            elif kind is ToolEnd:
                tool = event.tool.id  # type: ignore[union-attr]
                ended.add(tool)
                tools.pop(tool, None)
        self._new_words, self._new_tools, self._ended = words, tools, ended
        return ends

    def keep(self) -> list[str]:
        """Remembers the result of the last scan. Returns the keys of the tools that have ended."""
        for tag, text in self._new_words.items():
            self._words[tag] = (self._words.get(tag, "") + text[-CONTEXT:])[-CONTEXT:]
        for tool in self._ended:
            self._tools.pop(tool, None)
        for tool, output in self._new_tools.items():
            before = self._tools.pop(tool, "")  # it becomes the newest
            self._tools[tool] = (before + output[-CONTEXT:])[-CONTEXT:]
        while len(self._tools) > _TOOLS:
            del self._tools[next(iter(self._tools))]
        ended = [tool_key(tool) for tool in self._ended]
        self._new_words, self._new_tools, self._ended = {}, {}, set()
        return ended

    def take(self) -> dict[str, str]:
        """Returns the ends of all texts, by key, and clears them."""
        found = {str(tag): text for tag, text in self._words.items()}
        found |= {tool_key(tool): text for tool, text in self._tools.items()}
        self.clear()
        return found

    def clear(self) -> None:
        for texts in (self._words, self._tools, self._new_words, self._new_tools):
            texts.clear()
        self._ended.clear()
