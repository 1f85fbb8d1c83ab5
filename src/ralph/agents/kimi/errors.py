"""How Kimi tells what went wrong: kimi-cli as plain text on stdout, cut at 80 columns; Kimi Code on stderr."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ralph.transcripts import meta
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.meta import ErrorClass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.transcripts.events import TranscriptEvent

#: What kimi-cli prints when a run has failed, in any format.
_OWN = re.compile(
    r"kimi-cli is no longer maintained\b|"  # its last release (1.52) does nothing but say so
    r"Error code: \d{3}\b|LLM not set|LLM (?:model|provider) |Max number of steps reached: \d+|Interrupted by user$|"
    r"Unknown error: |Connection error\.|Request timed out\.|The API returned an empty response|[45]\d\d [A-Z_]{4,}"
)
_CODE = "error: failed to run prompt: "
_API_ERROR = re.compile(r"^provider\.api_error: ")
_RESUME = re.compile(r"To resume this session: (?:.+ && )?kimi (?:-r|-S|--session|--resume) (\S+)$")
_LIMITS = (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED)
#: A line as long as this was cut, not ended. Wide characters take two columns.
_CUT_AT = 60


def is_own(line: str) -> bool:
    """Whether a line is the beginning of kimi-cli's own error."""
    return _OWN.match(line) is not None


def is_stderr(line: str) -> bool:
    """Whether a line of text belongs to stderr, which a terminal shows among the words."""
    return line.startswith(("kimi version ", "See log: ")) or resume_id(line) is not None


def code_error(line: str) -> str | None:
    return line.removeprefix(_CODE) if line.startswith(_CODE) else None


def resume_id(line: str) -> str | None:
    found = _RESUME.match(line.strip())
    return found.group(1) if found else None


def join(lines: list[str]) -> str:
    """One message from the lines it was cut into."""
    text = ""
    for line in lines:
        text += line if len(line) >= _CUT_AT else line + "\n"
    return text.strip()


def told(lines: Iterable[str]) -> list[TranscriptEvent]:
    """The fatal error that the last lines of stdout are, if they are one."""
    own = [line for line in lines if resume_id(line) is None]  # a terminal shows stderr's lines among them
    begin = next((i for i, line in enumerate(own) if is_own(line)), None)
    return [] if begin is None else fatal(join(own[begin:]))


def fatal(message: str) -> list[TranscriptEvent]:
    # Kimi Code calls whatever goes wrong with a provider an API error, a broken connection as well.
    error_class = ErrorClass.AUTH if message.startswith("LLM not set") else classify(_API_ERROR.sub("", message))
    if error_class is ErrorClass.FAILED and message.startswith("compaction."):
        error_class = ErrorClass.CONTEXT_EXCEEDED  # it compacts only what has become too long
    return [*limit(message, error_class), meta.error(message, error_class)]


def limit(message: str, error_class: ErrorClass) -> list[TranscriptEvent]:
    seconds = retry_after(message) if error_class in _LIMITS else None
    return [] if seconds is None else [meta.rate_limit(message=message, retry_after=seconds)]
