"""What Claude Code and those who share its schema say about errors: names, texts, limits with their end."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ralph.transcripts.classify import classify
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
_EPOCH = re.compile(r"\|(\d{10})\b")
_CLOCK = re.compile(
    r"\bresets?(?: at)? (?:(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2})(?:,| at)* )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>am|pm) \((?P<zone>[A-Za-z0-9_+/-]+)\)",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def error_class(message: str, name: str | None = None, status: int | None = None) -> ErrorClass:
    """By the error's name where that is certain, by its status and words otherwise."""
    named = _NAMES.get(name or "")
    if named in (ErrorClass.AUTH, ErrorClass.QUOTA, ErrorClass.CONTEXT_EXCEEDED):
        return named
    if _CREDIT.search(message):  # comes with status 400
        return ErrorClass.QUOTA
    if status not in (401, 403) and _RESETS.search(message):
        return ErrorClass.RATE_LIMITED  # a subscription's limit: it ends by itself
    told = classify(message, status)
    return named if told is ErrorClass.FAILED and named is not None and status is None else told


def reset_time(message: str, timestamp: str | None) -> float | None:
    """When a limit ends, in seconds since the epoch; a time of day needs to know when it was said."""
    if found := _EPOCH.search(message):
        return float(found.group(1))
    found = _CLOCK.search(message)
    if found is None or timestamp is None:
        return None
    try:
        said = datetime.fromisoformat(timestamp).astimezone(ZoneInfo(found["zone"]))
        hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
        end = said.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            end = end.replace(month=_MONTHS.index(found["month"].lower()) + 1, day=int(found["day"]))
            return (end if end >= said else end.replace(year=end.year + 1)).timestamp()
    except (ValueError, OverflowError, ZoneInfoNotFoundError, OSError):
        return None
    return (end if end >= said else end + timedelta(days=1)).timestamp()
