"""Codex's own messages: a retry, or why a run failed and when a limit ends."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ralph.transcripts import meta
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount, whole

if TYPE_CHECKING:
    from ralph.transcripts.events import Meta, TranscriptEvent

_RECONNECTING = re.compile(r"Re-?connecting\.\.\. (?:(\d+)/\d+|waiting for network)(?: \((.*)\))?\s*\Z", re.DOTALL)
#: 0.2 to 0.4: "stream error: REASON; retrying 1/5 in 185ms…"
_RETRYING = re.compile(r"stream error: (.*); retrying (\d+)/\d+ in ([\d.]+)(ms|s)(?:…|\.\.\.)\s*\Z", re.DOTALL)
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_BUSY = re.compile(r"high demand|at capacity", re.IGNORECASE)
_NO_KEY = re.compile(r"missing environment variable|not (?:signed|logged) in|codex login", re.IGNORECASE)
_WAIT = re.compile(r"try again in ((?:\d+ (?:day|hour|minute|second)s?[ ,]*)+)", re.IGNORECASE)
_PART = re.compile(r"(\d+) (day|hour|minute|second)")
_SECONDS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
#: A time of today, or a date and a time. The space may be a narrow one.
_AT = re.compile(
    r"try again at "
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?P<year>\d{4}),?)?(?: at)? )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2})?(?:\s?(?P<half>[AP])\.?M\b)?"
    r"(?: ?\(?(?P<zone>UTC|GMT|Z|[A-Z][A-Za-z]+/[A-Za-z_/]+)\b)?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
#: A time of day this far in the past was just reached. An earlier one is tomorrow's.
_JUST_NOW = timedelta(hours=1)


def classify_message(message: str) -> ErrorClass:
    found = _STATUS.search(message)
    kind = classify(message, int(found.group(1)) if found else None)
    if kind is ErrorClass.FAILED:
        if _BUSY.search(message):
            return ErrorClass.OVERLOADED
        if _NO_KEY.search(message):
            return ErrorClass.AUTH
    return kind


def retry(message: str) -> Meta | None:
    """The retry that a message announces, if any. Codex prints retries as errors."""
    found = _RECONNECTING.match(message)
    if found:
        cause = found.group(2)
        kind = classify_message(cause) if cause else None
        return meta.retry(message, kind, attempt=whole(found.group(1)) if found.group(1) else None)
    found = _RETRYING.match(message)
    if found:
        delay = amount(found.group(3)) * (1 if found.group(4) == "ms" else 1000)
        kind = classify_message(found.group(1))
        return meta.retry(message, kind, attempt=whole(found.group(2)), delay_ms=int(delay))
    return None


def limit(message: str, kind: ErrorClass) -> list[TranscriptEvent]:
    """When a limit ends, if the message gives the time."""
    if kind not in (ErrorClass.QUOTA, ErrorClass.RATE_LIMITED):
        return []
    found = _WAIT.search(message)
    if found:
        parts = _PART.findall(found.group(1).lower())
        return [
            meta.rate_limit(retry_after=float(sum(whole(n) * _SECONDS[unit] for n, unit in parts)), message=message)
        ]
    if (at := _reset(message, datetime.now().astimezone())) is not None:
        return [meta.rate_limit(resets_at=at, message=message)]
    seconds = retry_after(message)
    return [meta.rate_limit(retry_after=seconds, message=message)] if seconds is not None else []


def _reset(message: str, now: datetime) -> float | None:
    """The time that a message names, seconds since the epoch. Codex prints local time, and it runs on this machine."""
    found = _AT.search(message)
    if found is None:
        return None
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].upper() == "P" else 0)
    zone = (found["zone"] or "").upper()
    try:
        if zone:
            now = now.astimezone(UTC if zone in ("UTC", "GMT", "Z") else ZoneInfo(found["zone"]))
        at = now.replace(hour=hour, minute=int(found["minute"]), second=0, microsecond=0)
        if found["month"] is None:
            return (at if at >= now - _JUST_NOW else at + timedelta(days=1)).timestamp()
        month, day = _MONTHS.index(found["month"].lower()) + 1, int(found["day"])
        at = at.replace(year=int(found["year"] or now.year), month=month, day=day)
        at = at if found["zone"] else at.replace(tzinfo=None).astimezone()  # summer time may begin or end until then
        return (at if found["year"] or at >= now - _JUST_NOW else at.replace(year=at.year + 1)).timestamp()
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        return None
