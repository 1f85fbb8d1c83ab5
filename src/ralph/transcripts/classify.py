"""The kind of error behind a CLI's own message. Never apply it to what a model or a tool wrote."""

from __future__ import annotations

import re

from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount

_STATUS = re.compile(r"(?<![\d.:])(40[0-9]|41[0-9]|42[0-9]|5[0-9]{2})(?![\d.]|\s*(?:ms|tokens|bytes|characters))")
_CONTEXT = re.compile(
    r"context[ _-]?(?:window|length|limit|size|overflow)|contextoverflow|prompt (?:is )?too long|maximum context|"
    r"too many (?:input )?tokens|token limit|prompt budget|exceeds? the (?:model|maximum)|"
    r"input (?:is )?too (?:long|large)",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[_ ]quota|quota|usage limit|billing|credit balance|out of credits|payment required|spending limit|"
    r"(?:daily|weekly|monthly) limit|hit your (?:usage )?limit",
    re.IGNORECASE,
)
_RATE = re.compile(r"rate[ _-]?limit|too many requests|throttl|resource[_ ]exhausted|retry after", re.IGNORECASE)
_AUTH = re.compile(
    r"unauthori[sz]ed|authenticat|api[ _-]?key|not logged in|log ?in|forbidden|invalid (?:token|credential)|"
    r"no auth|permission_error|expired token|oauth",
    re.IGNORECASE,
)
_OVERLOADED = re.compile(
    r"overload|internal server error|service unavailable|bad gateway|gateway time-?out|server (?:had an )?error|"
    r"api_error|server_error",
    re.IGNORECASE,
)
#: No server has answered: it is down, or there is no way to it.
_UNREACHABLE = re.compile(
    r"connection ?refused|\bconnection error\b|could(?: not|n't) connect|unable to connect|failed to connect|"
    r"tcp connect error|"
    r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EAI_NONAME|ENETUNREACH|EHOSTUNREACH|FailedToOpenSocket|"
    r"getaddrinfo|name or service not known|nodename nor servname|temporary failure in name resolution|"
    r"could(?: not|n't) resolve|no such host|dns error|failed to lookup address|"
    r"network is unreachable|no route to host|can(?:no|')t reach",
    re.IGNORECASE,
)
#: The first match decides.
_WORDS = (
    (_QUOTA, ErrorClass.QUOTA),
    (_RATE, ErrorClass.RATE_LIMITED),
    (_OVERLOADED, ErrorClass.OVERLOADED),
    (_AUTH, ErrorClass.AUTH),
)

_WAIT = re.compile(
    r"(?:retry|try again|resets?) (?:in|after) (?:about )?(\d+(?:\.\d+)?) ?"
    r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)\b",
    re.IGNORECASE,
)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def retry_after(message: str) -> float | None:
    """Return the seconds to wait if the message names them ("please retry in 2s")."""
    found = _WAIT.search(message)
    if found is None:
        return None
    unit = found.group(2).lower()
    seconds = 0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[0]]
    return amount(found.group(1)) * seconds


def is_unreachable(message: str) -> bool:
    """Whether the message says that the provider could not be reached at all, so that nothing refused the request."""
    return _UNREACHABLE.search(message) is not None


def classify(message: str, status: int | None = None) -> ErrorClass:
    """Classify by HTTP status if it is known or named in the message, otherwise by words.

    A provider that cannot be reached is a failure: it is not overloaded, and nobody has refused a key.
    """
    if status is None and is_unreachable(message):
        return ErrorClass.FAILED
    if status is None:
        found = _STATUS.search(message)
        status = int(found.group(1)) if found else None
    if _CONTEXT.search(message) and status not in (401, 403, 429):
        return ErrorClass.CONTEXT_EXCEEDED
    if status is not None:
        return _by_status(status, quota=_QUOTA.search(message) is not None)
    return next((kind for words, kind in _WORDS if words.search(message)), ErrorClass.FAILED)


def _by_status(status: int, *, quota: bool) -> ErrorClass:
    match status:
        case 401 | 403:
            return ErrorClass.AUTH
        case 402:
            return ErrorClass.QUOTA
        case 400 if quota:
            return ErrorClass.QUOTA  # "Your credit balance is too low"
        case 413:
            return ErrorClass.CONTEXT_EXCEEDED
        case 429:
            return ErrorClass.QUOTA if quota else ErrorClass.RATE_LIMITED
    return ErrorClass.OVERLOADED if 500 <= status < 600 else ErrorClass.FAILED
