"""Finds thoughts that a server leaves in the text: `<think>…</think>` at the start of the answer."""

from __future__ import annotations

from ralph.transcripts.events import Tag

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Splits fragments of text. Local servers pass the tags through if they have no parser for the model."""

    def __init__(self) -> None:
        self._held = ""
        #: None until enough of the answer has come to know
        self._thinking: bool | None = None

    def feed(self, fragment: str) -> list[tuple[Tag, str]]:
        if self._thinking is False:
            return [(Tag.AI, fragment)]
        self._held += fragment
        if self._thinking is None:
            start = self._held.lstrip()
            if len(start) < len(_OPEN) and _OPEN.startswith(start):
                return []  # it may still become the tag
            self._thinking = start.startswith(_OPEN)
            if not self._thinking:
                return self._take(Tag.AI, len(self._held))
            self._held = start.removeprefix(_OPEN).removeprefix("\n")
        thought, closed, rest = self._held.partition(_CLOSE)
        if closed:
            self._thinking, self._held = False, ""
            return [(tag, text) for tag, text in ((Tag.THINK, thought), (Tag.AI, rest.lstrip("\n"))) if text]
        # The closing tag may be split over two fragments, so hold back what may be its start.
        keep = next((n for n in range(len(_CLOSE) - 1, 0, -1) if self._held.endswith(_CLOSE[:n])), 0)
        return self._take(Tag.THINK, len(self._held) - keep)

    def flush(self) -> list[tuple[Tag, str]]:
        return self._take(Tag.THINK if self._thinking else Tag.AI, len(self._held))

    def _take(self, tag: Tag, length: int) -> list[tuple[Tag, str]]:
        text, self._held = self._held[:length], self._held[length:]
        return [(tag, text)] if text else []
