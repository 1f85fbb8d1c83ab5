"""The errors of any agent in the words of Claude Code, for tools that search its output for them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.judging.judge import Outcome
from ralph.transcripts.classify import is_unreachable

if TYPE_CHECKING:
    from ralph.judging.judge import Verdict
    from ralph.judging.observe import Observation

_STATUS = re.compile(r"(?<![\d.])(5\d\d)(?![\d.])")
#: The status with which Claude's own provider reports that it is overloaded.
_OVERLOADED = 529


class ApiError(msgspec.Struct, frozen=True):
    """An error of the provider: Claude's text for it, and the fields that Claude adds to its messages."""

    text: str
    #: Claude's name for the error
    name: str
    #: the error name of Claude's API
    api_type: str | None = None
    status: int | None = None
    terminal_reason: str = "api_error"

    @property
    def fields(self) -> dict[str, Any]:
        given = {"api_error_status": self.status, "api_error_type": self.api_type}
        return {name: value for name, value in given.items() if value is not None}


def api_error(verdict: Verdict, seen: Observation, title: str, now: datetime) -> ApiError | None:
    """The error in Claude's words; None if it has nothing to do with the provider."""
    why = verdict.why
    match verdict.outcome:
        case Outcome.RATE_LIMITED:
            return _limit(seen, now)
        case Outcome.QUOTA if _reset(seen, now) is not None:
            return _limit(seen, now)
        case Outcome.QUOTA:
            return ApiError(f"Credit balance is too low · {title}: {why}", "billing_error", "billing_error", 400)
        case Outcome.OVERLOADED:
            found = _STATUS.search(why)
            status = int(found.group(1)) if found else _OVERLOADED
            kind = "overloaded_error" if status in (503, _OVERLOADED) else "api_error"
            return ApiError(f"API Error: {status} {why}", "server_error", kind, status)
        case Outcome.AUTH:
            text = f"Not logged in · {title}: {why}"
            return ApiError(text, "authentication_failed", "authentication_error", 401)
        case Outcome.CONTEXT_EXCEEDED:
            text = f"Prompt is too long · {title}: {why}"
            return ApiError(text, "invalid_request", "invalid_request_error", 400, "prompt_too_long")
        case Outcome.FAILED if is_unreachable(why):
            return ApiError(f"API Error: Can't reach the API server — {why}", "server_error")
    return None


def _limit(seen: Observation, now: datetime) -> ApiError:
    end = _reset(seen, now)
    resets = f" · resets {_clock(end, now)}" if end else ""
    return ApiError(f"You've hit your limit{resets}", "rate_limit", "rate_limit_error", 429)


def _reset(seen: Observation, now: datetime) -> datetime | None:
    """When the limit ends, rounded up to a minute, which is what Claude's form can express."""
    try:
        if seen.resets_at is not None:
            end = datetime.fromtimestamp(seen.resets_at, UTC)
        elif seen.retry_after is not None:
            end = now + timedelta(seconds=seen.retry_after)
        else:
            return None
        whole = end.replace(second=0, microsecond=0)
        return whole if whole == end else whole + timedelta(minutes=1)
    except (OverflowError, OSError, ValueError):
        return None


def _clock(end: datetime, now: datetime) -> str:
    """`3pm (UTC)`, `3:30pm (UTC)`, or with the date if it is more than a day away: `Nov 20, 3pm (UTC)`."""
    minute = f":{end.minute:02}" if end.minute else ""
    time = f"{end.hour % 12 or 12}{minute}{'pm' if end.hour >= 12 else 'am'} (UTC)"
    if end - now <= timedelta(days=1):
        return time
    year = f", {end.year}" if end.year != now.year else ""
    return f"{end:%b} {end.day}{year}, {time}"
