"""Plain text: every line is the agent's own text, except for an echo of the prompt at the start."""

from __future__ import annotations

from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.events import Tag, Text, TranscriptEvent


class PromptEcho:
    """Recognises the prompt, which some commands print before they start."""

    def __init__(self, prompt: str | None) -> None:
        self._expected = [] if prompt is None else [line.rstrip() for line in prompt.rstrip().split("\n")]
        self._expected.reverse()

    def is_echo(self, line: str) -> bool:
        """Whether this line repeats the next line of the prompt. Call it for each line in order."""
        if self._expected and line.rstrip() == self._expected[-1]:
            self._expected.pop()
            return True
        self._expected.clear()
        return False


class PlainAdapter(TranscriptAdapter):
    name = "plain"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._echo = PromptEcho(prompt)

    def feed(self, line: str) -> list[TranscriptEvent]:
        return [Text(Tag.PROMPT if self._echo.is_echo(line) else Tag.AI, line)]


ADAPTER = PlainAdapter
