"""Recognises the prompt, which some commands print before they start."""

from __future__ import annotations


class PromptEcho:
    """Follows the output as long as it repeats the prompt from the first line on."""

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
