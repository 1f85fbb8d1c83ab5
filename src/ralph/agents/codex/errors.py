"""Codex's own messages: a retry, or why a run failed and when a limit ends."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from ralph.transcripts import meta
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount, whole

if TYPE_CHECKING:
    from ralph.transcripts.events import Meta, TranscriptEvent

_RECONNECTING = re.compile(r"Re-?connecting\.\.\. (\d+)/\d+(?: \((.*)\))?\s*\Z", re.DOTALL)
#: 0.2 to 0.4: "stream error: REASON; retrying 1/5 in 185ms…"
_RETRYING = re.compile(r"stream error: (.*); retrying (\d+)/\d+ in ([\d.]+)(ms|s)(?:…|\.\.\.)\s*\Z", re.DOTALL)
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
_BUSY = re.compile(r"high demand|at capacity", re.IGNORECASE)
_NO_KEY = re.compile(r"missing environment variable|not (?:signed|logged) in|codex login", re.IGNORECASE)
_WAIT = re.compile(r"try again in ((?:\d+ (?:day|hour|minute|second)s?[ ,]*)+)", re.IGNORECASE)
_PART = re.compile(r"(\d+) (day|hour|minute|second)")
_SECONDS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
_AT = re.compile(r"try again at ([A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th), (\d{4} \d{1,2}:\d{2} [AP]M)")


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
        return meta.retry(message, kind, attempt=whole(found.group(1)))
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
    found = _AT.search(message)
    if found:
        try:
            # Codex prints local time, and it runs on this machine.
            at = datetime.strptime(f"{found.group(1)} {found.group(2)}", "%b %d %Y %I:%M %p").astimezone()
        except ValueError:
            return []
        return [meta.rate_limit(resets_at=at.timestamp(), message=message)]
    seconds = retry_after(message)
    return [meta.rate_limit(retry_after=seconds, message=message)] if seconds is not None else []
