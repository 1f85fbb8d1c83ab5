"""Where output, thoughts and words begin in the held lines of Codex's human-readable transcript.

A command may print `codex` or a title on a line of its own, so these lines prove nothing. Where more than one line
could begin the agent's words, the last one does: output must never pass for the agent's words.
"""

from __future__ import annotations

import re

import msgspec

from ralph.agents.codex.shapes import NOTICE
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.numbers import whole

#: Codex up to 0.9x prints at most this many lines of a command's output.
OUTPUT_LINES = 20
_ROLES = frozenset({"user", "codex", "exec", "thinking"})
_TITLE = re.compile(r"\*\*[^*]+\*\*\s*\Z")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})*\Z|\d+\Z")


class Divided(msgspec.Struct, frozen=True):
    """Held lines: output or a prompt, a warning of the CLI, thoughts, words, and the CLI's notices at the end."""

    first: list[str]
    warning: list[str]
    thoughts: list[str]
    words: list[str]
    notices: list[str]


def divide_output(held: list[str], *, newer: bool, cut: bool) -> Divided:
    """Divides what follows a command's status. `cut`: the first lines of it are missing.

    Newer versions print all output, and a blank line after output that ended with a newline.
    """
    lines = _stripped(held)
    end = _notices_at(lines)
    if newer and end and lines[end - 1].strip():
        end = len(lines)
    most_output = end if newer else -1 if cut else OUTPUT_LINES
    words = _words_at(lines[:end], most_output, blank_before=newer)
    thoughts = _thoughts_at(lines[:words])
    return Divided(held[:thoughts], [], held[thoughts:words], held[words + 1 : end], held[end:])


def divide_prompt(held: list[str]) -> Divided:
    """Divides what follows `user` if the prompt is not known."""
    lines = _stripped(held)
    end = _notices_at(lines)
    words = _words_at(lines[:end], end, blank_before=False)
    thoughts = after = _thoughts_at(lines[:words])
    warned = [i for i, line in enumerate(lines[:thoughts]) if line.startswith("warning: ")]
    if warned:
        thoughts, after = warned[-1], warned[-1] + 1
    return Divided(held[:thoughts], held[thoughts:after], held[after:words], held[words + 1 : end], held[end:])


def _stripped(lines: list[str]) -> list[str]:
    """The lines without escape sequences and carriage returns."""
    text = "".join(lines)
    if "\x1b" not in text and "\r" not in text:
        return lines
    return [strip_escapes(line) if "\x1b" in line or "\r" in line else line for line in lines]


def _notices_at(lines: list[str]) -> int:
    """Where the CLI's own lines at the end begin."""
    at = len(lines)
    while at and NOTICE.match(lines[at - 1]):
        at -= 1
    return at


def _words_at(lines: list[str], most_output: int, *, blank_before: bool) -> int:
    """Where the `codex` before the words is; the end if there is none. Prefers one after a blank line if asked to."""
    if "codex" not in lines:
        return len(lines)
    found = len(lines)
    for i in range(min(most_output, len(lines) - 1), -1, -1):
        if lines[i] == "codex" and _may_speak(lines, i):
            if not blank_before or (i and not lines[i - 1].strip()):
                return i
            found = found if found < len(lines) else i
    return found


def _may_speak(lines: list[str], at: int) -> bool:
    """Whether the next line can begin a message."""
    return at + 1 < len(lines) and lines[at + 1].strip() != "" and lines[at + 1] not in _ROLES


def _thoughts_at(lines: list[str]) -> int:
    """Where the thoughts begin, which is at a title after a blank line; the end if there is none."""
    starred = [i for i, line in enumerate(lines) if "**" in line]
    for i in reversed(starred):
        if _TITLE.match(lines[i]) and (i == 0 or not lines[i - 1].strip()):
            return i
    return len(lines)


def find_trailer(message: list[str], held: list[str]) -> tuple[int, int] | None:
    """Where `tokens used` is in the held lines at the end, and its number.

    Only a copy of the last words may follow it, which are held as well or in the message.
    """
    before = "\n".join(message).split("\n") if message else []
    lines = _stripped(before + held)
    for i in range(len(lines) - 2, -1, -1):
        if lines[i] == "tokens used" and _NUMBER.match(lines[i + 1]):
            copy = "\n".join(lines[i + 2 :]).strip()
            if i < len(before) or (copy and not "\n".join(lines[:i]).rstrip().endswith(copy)):
                return None
            return i - len(before), whole(lines[i + 1].replace(",", ""))
    return None
