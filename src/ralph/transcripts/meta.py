"""The kinds of `meta` events, each with the function that makes it.

Adapters report here everything that is neither text nor a tool call; the judge relies on it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from ralph.transcripts.events import Meta


class Kind(StrEnum):
    SESSION = "session"
    RATE_LIMIT = "rate_limit"
    ERROR = "error"
    RETRY = "retry"
    RESULT = "result"
    PARSE_ERROR = "parse_error"
    UNKNOWN = "unknown"
    # written by ralph itself
    RUN_START = "run_start"
    RUN_RESUME = "run_resume"
    ITERATION_START = "iteration_start"
    ITERATION_END = "iteration_end"
    VERIFY = "verify"
    WAIT = "wait"
    PAUSE = "pause"
    STEER = "steer"
    NOTICE = "notice"
    RUN_END = "run_end"
    VERDICT = "verdict"
    EVENT = "event"


#: The kinds that an adapter may emit.
_FROM_AGENTS = frozenset(
    {Kind.SESSION, Kind.RATE_LIMIT, Kind.ERROR, Kind.RETRY, Kind.RESULT, Kind.PARSE_ERROR, Kind.UNKNOWN}
)
#: Kinds that only ralph itself may write. An agent's transcript must not contain them.
OURS = frozenset(Kind) - _FROM_AGENTS


class ErrorClass(StrEnum):
    """What went wrong, as far as a CLI reports it. The values are names of outcomes."""

    FAILED = "failed"
    EMPTY = "empty"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    AUTH = "auth"
    QUOTA = "quota"
    PERMISSION_DENIED = "permission_denied"
    CONTEXT_EXCEEDED = "context_exceeded"
    QUESTION = "question"


def _meta(kind: Kind, **fields: Any) -> Meta:
    return Meta({"kind": kind.value, **{k: v for k, v in fields.items() if v is not None}})


def session(session_id: str, model: str | None = None) -> Meta:
    return _meta(Kind.SESSION, session_id=session_id, model=model)


def rate_limit(resets_at: float | None = None, message: str | None = None, *, retry_after: float | None = None) -> Meta:
    """A limit of the provider. Its end is in seconds since the epoch (`resets_at`) or from now (`retry_after`)."""
    return _meta(Kind.RATE_LIMIT, resets_at=resets_at, retry_after=retry_after, message=message)


def error(message: str, error_class: ErrorClass = ErrorClass.FAILED, *, fatal: bool = True) -> Meta:
    """An error. A `fatal` one decides the outcome unless a successful `result` follows."""
    return _meta(Kind.ERROR, message=message, **{"class": error_class.value}, fatal=None if fatal else False)


def retry(
    message: str,
    error_class: ErrorClass | None = None,
    *,
    attempt: int | None = None,
    delay_ms: int | None = None,
) -> Meta:
    """The CLI retries by itself. This decides the outcome only if the iteration fails before anything else happens."""
    name = error_class.value if error_class else None
    return _meta(Kind.RETRY, message=message, **{"class": name}, attempt=attempt, delay_ms=delay_ms)


def result(*, ok: bool, reason: str | None = None, error_class: ErrorClass | None = None, **raw: Any) -> Meta:
    """The agent's own report of how it ended. Nothing more is expected after it."""
    return _meta(Kind.RESULT, ok=ok, reason=reason, **{"class": error_class.value if error_class else None}, **raw)


def parse_error(message: str, line: str) -> Meta:
    return _meta(Kind.PARSE_ERROR, message=message, line=line)


def unknown(value: Any) -> Meta:
    """A line of a type that the adapter does not know, kept complete."""
    return _meta(Kind.UNKNOWN, line=value)


def topic(topic: str, target: str | None, payload: str) -> Meta:
    """An `<event>` tag in the agent's text."""
    return _meta(Kind.EVENT, topic=topic, target=target, payload=payload)


def notice(text: str) -> Meta:
    return _meta(Kind.NOTICE, text=text)
