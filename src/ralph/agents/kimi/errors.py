"""Kimi's error messages: kimi-cli prints them as text on stdout, wrapped at 80 columns; Kimi Code on stderr."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ralph.transcripts.classify import classify
from ralph.transcripts.errors import fatal_error
from ralph.transcripts.meta import ErrorClass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.transcripts.events import TranscriptEvent

#: An error is in the last lines of the output, and shorter than this.
ERROR_LINES = 200
#: What kimi-cli prints when a run has failed, in any format.
_OWN = re.compile(
    r"kimi-cli is no longer maintained\b|"  # its last release (1.52) only prints this
    r"Error code: \d{3}\b|LLM not set|LLM (?:model|provider) |Max number of steps reached: \d+|Interrupted by user$|"
    r"Unknown error: |Connection error\.|Request timed out\.|The API returned an empty response|[45]\d\d [A-Z_]{4,}"
)
_CODE = "error: failed to run prompt: "
_RESUME = re.compile(r"To resume this session: (?:.+ && )?kimi (?:-r|-S|--session|--resume) (\S+)$")
#: A line at least this long was wrapped. Wide characters take two columns.
_WRAPPED = 60


def is_own(line: str) -> bool:
    """Whether an error of kimi-cli begins here."""
    return _OWN.match(line) is not None


def is_stderr(line: str) -> bool:
    """Whether a line of text belongs to stderr, which a terminal merges with the words."""
    return line.startswith(("kimi version ", "See log: ")) or resume_id(line) is not None


def code_error(line: str) -> str | None:
    """The message, if the line is a fatal error of Kimi Code."""
    return line.removeprefix(_CODE) if line.startswith(_CODE) else None


def resume_id(line: str) -> str | None:
    """The session, if the line says how to resume it."""
    found = _RESUME.match(line.strip())
    return found.group(1) if found else None


def own_error(lines: Iterable[str]) -> list[TranscriptEvent]:
    """The events of kimi-cli's fatal error, if the last lines of stdout contain one."""
    own = [line for line in lines if resume_id(line) is None]  # a terminal merges stderr with stdout
    start = next((n for n, line in enumerate(own) if is_own(line)), None)
    if start is None:
        return []
    return fatal("".join(line if len(line) >= _WRAPPED else line + "\n" for line in own[start:]).strip())


def fatal(message: str) -> list[TranscriptEvent]:
    # Kimi Code calls any problem with a provider an API error, even a broken connection.
    error_class = classify(message.removeprefix("provider.api_error: "))
    if message.startswith("LLM not set"):
        error_class = ErrorClass.AUTH
    elif error_class is ErrorClass.FAILED and message.startswith("compaction."):
        error_class = ErrorClass.CONTEXT_EXCEEDED  # it only compacts a context that has grown too long
    return fatal_error(message, error_class)
