"""Events for errors that end a run, as most adapters report them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.transcripts import meta
from ralph.transcripts.classify import retry_after
from ralph.transcripts.events import Meta
from ralph.transcripts.meta import ErrorClass

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: The message for a transcript that stops before the agent reports how the run ended.
CUT = "the output ends without a result"
LIMITS = (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED)


def is_cut(event: TranscriptEvent) -> bool:
    """Whether this is the error of a transcript that stops too early."""
    return isinstance(event, Meta) and event.meta.get("message") == CUT


def limit_events(message: str, error_class: ErrorClass) -> list[TranscriptEvent]:
    """A `rate_limit` event if the message of a limit says how long to wait."""
    seconds = retry_after(message) if error_class in LIMITS else None
    return [] if seconds is None else [meta.rate_limit(message=message, retry_after=seconds)]


def fatal_error(message: str, error_class: ErrorClass) -> list[TranscriptEvent]:
    """A fatal error, preceded by the end of its limit if the message gives it."""
    return [*limit_events(message, error_class), meta.error(message, error_class)]
