"""Telling an agent's words from its prompt, which some commands print again before they begin."""

from __future__ import annotations


class PromptEcho:
    """True for each line as long as the output repeats the prompt from its first line on."""

    def __init__(self) -> None:
        self._next = 0
        self._lines: list[str] | None = None

    def is_echo(self, line: str, prompt: str | None) -> bool:
        if prompt is None or self._next < 0:
            return False
        if self._lines is None:
            self._lines = [one.rstrip() for one in prompt.rstrip().split("\n")]
        if self._next < len(self._lines) and line.rstrip() == self._lines[self._next]:
            self._next += 1
            return True
        self._next, self._lines = -1, []
        return False

    def over(self, prompt: str | None) -> bool:
        """Whether no line that comes can be an echo any more."""
        return prompt is None or self._next < 0
