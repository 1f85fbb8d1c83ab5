"""Thoughts that a server leaves within the words: `<think>…</think>` at the beginning of the answer."""

from __future__ import annotations

from ralph.transcripts.events import Tag

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Splits fragments of content. Local servers without a parser for the model at hand pass the tags through."""

    def __init__(self) -> None:
        self._held = ""
        #: None until the beginning has told
        self._thinking: bool | None = None

    def feed(self, fragment: str) -> list[tuple[Tag, str]]:
        if self._thinking is False:
            return [(Tag.AI, fragment)]
        self._held += fragment
        if self._thinking is None:
            start = self._held.lstrip()
            if not start.startswith(_OPEN):
                if _OPEN.startswith(start):
                    return []  # it may still become one
                self._thinking = False
                return self._take(Tag.AI, len(self._held))
            self._thinking = True
            self._held = start[len(_OPEN) :].removeprefix("\n")
        thought, closed, rest = self._held.partition(_CLOSE)
        if closed:
            self._thinking = False
            self._held = ""
            return [(tag, text) for tag, text in ((Tag.THINK, thought), (Tag.AI, rest.lstrip("\n"))) if text]
        # The tag may be torn over two fragments: its possible beginning is held back.
        keep = next((n for n in range(len(_CLOSE) - 1, 0, -1) if self._held.endswith(_CLOSE[:n])), 0)
        return self._take(Tag.THINK, len(self._held) - keep)

    def flush(self) -> list[tuple[Tag, str]]:
        return self._take(Tag.THINK if self._thinking else Tag.AI, len(self._held))

    def _take(self, tag: Tag, length: int) -> list[tuple[Tag, str]]:
        text, self._held = self._held[:length], self._held[length:]
        return [(tag, text)] if text else []
