"""The errors of Claude Code and of agents that share its format: their names, messages, and when limits reset."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ralph.transcripts.classify import classify, is_unreachable
from ralph.transcripts.json_lines import get_int, get_str
from ralph.transcripts.meta import ErrorClass

_NAMES = {
    "authentication_failed": ErrorClass.AUTH,
    "authentication_error": ErrorClass.AUTH,
    "oauth_org_not_allowed": ErrorClass.AUTH,
    "permission_error": ErrorClass.AUTH,
    "billing_error": ErrorClass.QUOTA,
    "rate_limit": ErrorClass.RATE_LIMITED,
    "rate_limit_error": ErrorClass.RATE_LIMITED,
    "server_error": ErrorClass.OVERLOADED,
    "api_error": ErrorClass.OVERLOADED,
    "overloaded": ErrorClass.OVERLOADED,
    "overloaded_error": ErrorClass.OVERLOADED,
    "prompt_too_long": ErrorClass.CONTEXT_EXCEEDED,
    "blocking_limit": ErrorClass.CONTEXT_EXCEEDED,
}
_CREDIT = re.compile(r"credit balance|out of credits|insufficient[_ ]quota", re.IGNORECASE)
_RESETS = re.compile(r"\blimit\b.*(?:\bresets?\b|\|\d{10})", re.IGNORECASE | re.DOTALL)
#: The limits of a subscription, with or without the time at which they reset.
_SUBSCRIPTION = re.compile(r"hit your (?:(?:session|weekly|5-hour|opus|sonnet|fable|fast) )?limit\b", re.IGNORECASE)
_EPOCH = re.compile(r"\|(\d{10})\b")
_CLOCK = re.compile(
    r"\bresets?(?: at)? (?:(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2})(?:, (?P<year>\d{4}))?(?:,| at)* )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>am|pm) \((?P<zone>[A-Za-z0-9_+/-]+)\)",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Failure(NamedTuple):
    message: str
    error_class: ErrorClass = ErrorClass.FAILED


def error_class(message: str, name: str | None = None, status: int | None = None) -> ErrorClass:
    """The class by the error's name where that is unambiguous, otherwise by its status and message."""
    named = _NAMES.get(name or "")
    if named in (ErrorClass.AUTH, ErrorClass.QUOTA, ErrorClass.CONTEXT_EXCEEDED):
        return named
    if _CREDIT.search(message):  # its status is 400
        return ErrorClass.QUOTA
    if status not in (401, 403) and (_RESETS.search(message) or _SUBSCRIPTION.search(message)):
        return ErrorClass.RATE_LIMITED  # a subscription's limit, which resets by itself
    if status is None and is_unreachable(message):
        return ErrorClass.FAILED  # Claude's name for it is `server_error`, but no server answered
    found = classify(message, status)
    return named if found is ErrorClass.FAILED and named is not None and status is None else found


def read_error(value: dict[str, Any]) -> Failure:
    """The `error` of an object: a string, or an object like those of the provider's API."""
    error = value.get("error")
    if isinstance(error, str) and error:
        return Failure(error, error_class(error, error))
    name = get_str(error, "type", "code")
    message = get_str(error, "message") or get_str(value, "message") or name or "the agent reported an error"
    return Failure(message, error_class(message, name, get_int(error, "status", "code")))


def reported_class(message: str, value: dict[str, Any], name: str | None) -> ErrorClass:
    """The class of a message, from its text and from the fields that newer releases add beside it."""
    if get_str(value, "api_error") == "connection_failed":
        return ErrorClass.FAILED  # its name is `server_error`, but no server answered
    if (reason := get_str(value, "terminal_reason")) in ("prompt_too_long", "blocking_limit"):
        name = reason
    return error_class(message, name, get_int(value, "api_error_status"))


def reset_time(message: str, timestamp: str | None) -> float | None:
    """When a limit resets, in seconds since the epoch. A time of day is only usable with the message's timestamp."""
    if found := _EPOCH.search(message):
        return float(found.group(1))
    found = _CLOCK.search(message)
    if found is None or timestamp is None:
        return None
    try:
        sent = datetime.fromisoformat(timestamp).astimezone(ZoneInfo(found["zone"]))
        hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
        end = sent.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            end = end.replace(month=_MONTHS.index(found["month"].lower()) + 1, day=int(found["day"]))
            if found["year"]:
                return end.replace(year=int(found["year"])).timestamp()
            return (end if end >= sent else end.replace(year=end.year + 1)).timestamp()
    except (ValueError, OverflowError, ZoneInfoNotFoundError, OSError):
        return None
    return (end if end >= sent else end + timedelta(days=1)).timestamp()
