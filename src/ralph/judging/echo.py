"""Recognises words that only repeat the prompt, however they were indented, quoted or wrapped.

A prompt often ends with the very marker that the agent must print when it is done. In plain output, nothing but the
words before the marker tells an echo of the prompt from an answer: an echo has the same words there as the prompt.
"""

from __future__ import annotations

import re

#: So many letters and digits before the marker that are the same as in the prompt are no coincidence.
_ENOUGH = 40
#: A prompt with fewer of them must be repeated by whole lines.
_FEW = 12
#: How much of the output is kept.
_KEPT = 4000
_NOT_LETTERS = re.compile(r"[\W_]+")


class Recent:
    """The end of what was printed."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, text: str) -> None:
        if not text or text.isspace():
            return
        if len(text) > _KEPT:
            text = text.rstrip()[-_KEPT:]
        self.text = f"{self.text}\n{text}"[-_KEPT:]

    @property
    def before_last_line(self) -> str:
        return self.text.rstrip().rpartition("\n")[0]


def repeats(prompt: str | None, before: str, words: str) -> bool:
    """Whether `words`, printed right after `before`, are an echo of the prompt."""
    if not prompt or words not in prompt:
        return False
    said, line = _letters(before)[-_ENOUGH:], _last_line(before)
    context, seen = "", 0
    for found in re.finditer(re.escape(words), prompt):
        context = (context + _letters(prompt[seen : found.start()]))[-_ENOUGH:]
        seen = found.start()
        if said.endswith(context) and (len(context) >= _FEW or _whole_lines(before, context)):
            return True
        if line and _alone(prompt, found) and line == _last_line(prompt[: found.start()]):
            return True
    return False


def _whole_lines(text: str, letters: str) -> bool:
    """Whether the last lines of a text, or all of it, have these letters and no others."""
    found = ""
    while text and len(found) < len(letters):
        text, _, line = text.rpartition("\n")
        found = _letters(line) + found
    return found == letters and (bool(found) or not text)


def _alone(prompt: str, found: re.Match[str]) -> bool:
    """Whether the words are alone on a line of the prompt."""
    start, end = prompt.rfind("\n", 0, found.start()) + 1, prompt.find("\n", found.end())
    around = prompt[start : found.start()] + prompt[found.end() : end if end >= 0 else len(prompt)]
    return not _letters(around)


def _letters(text: str) -> str:
    return _NOT_LETTERS.sub("", text)


def _last_line(text: str) -> str:
    """The letters of the last line that has any."""
    while text:
        text, _, line = text.rpartition("\n")
        if letters := _letters(line):
            return letters
    return ""
