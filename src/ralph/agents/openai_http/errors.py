"""Turns a server's refusal into a failure that a loop can act on. Pure: no connection."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.events import decode_json
from ralph.transcripts.json_lines import get_dict, get_str
from ralph.transcripts.meta import ErrorClass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.transcripts.events import TranscriptEvent

_LONGEST = 2000
#: Shorter keys are placeholders for local servers, not secrets.
_SHORTEST_KEY = 8
#: A reset time below the first number is not a date; above the second one it is in milliseconds.
_EPOCH, _MILLISECONDS = 1e9, 1e12


class Failure(msgspec.Struct, frozen=True):
    message: str
    error_class: ErrorClass = ErrorClass.FAILED
    #: in seconds from now, and since the epoch
    retry_after: float | None = None
    resets_at: float | None = None

    def events(self) -> list[TranscriptEvent]:
        limit: list[TranscriptEvent] = []
        if self.error_class is ErrorClass.RATE_LIMITED:
            limit.append(meta.rate_limit(self.resets_at, self.message, retry_after=self.retry_after))
        return [
            *limit,
            meta.error(self.message, self.error_class),
            meta.result(ok=False, reason=self.message, error_class=self.error_class),
        ]

    def without(self, key: str | None) -> Failure:
        """Mask the key. A server may quote it, and it must not get into the journal."""
        if key is None or len(key) < _SHORTEST_KEY or key not in self.message:
            return self
        return msgspec.structs.replace(self, message=self.message.replace(key, "[key]"))


class _Report(msgspec.Struct, frozen=True):
    """An error as the server describes it."""

    message: str
    #: the message with the error's type and code, to classify it
    words: str
    status: int | None = None
    headers: dict[str, Any] = {}


def refused(status: int, headers: Mapping[str, str], body: bytes, shown: str, *, with_key: bool) -> Failure:
    """The failure behind an HTTP status other than 2xx."""
    if 300 <= status < 400:
        target = headers.get("location", "elsewhere")
        return Failure(f"{shown} redirects to {target}: set OPENAI_BASE_URL to the new address")
    text = body.decode("utf-8", "replace").strip()
    try:
        structured = _read(decode_json(text), is_error=True)
    except (ValueError, RecursionError):
        structured = None
    plain = _first_line(text)
    report = structured or _Report(plain, plain)
    kind = classify(report.words, status)
    message = f"{shown} answered {status}" + (f": {report.message}" if report.message else "")
    if kind is ErrorClass.AUTH and not with_key:
        message += " (no key was sent: set OPENAI_API_KEY, or OPENROUTER_API_KEY for OpenRouter)"
    if status in (404, 405) and structured is None:
        message += " (check OPENAI_BASE_URL, which usually ends in /v1)"
    return Failure(message, kind, _wait(headers, report.words), _reset_time(headers, report.headers))


def reported_in(value: dict[str, Any]) -> Failure | None:
    """The failure in a chunk of an answer whose HTTP status was 200."""
    report = _read(value, is_error=False)
    if report is None:
        return None
    message = f"the server reports an error: {report.message}"
    kind = classify(report.words, report.status)
    return Failure(message, kind, _wait({}, report.words), _reset_time(report.headers))


def _read(value: Any, *, is_error: bool) -> _Report | None:
    """Find the report in a JSON value. `is_error` says that the value is known to be one, whatever its form."""
    match value:
        case {"error": dict() as error} if error:
            return _from_fields(error)
        case {"error": str() as message} if message:
            return _Report(message[:_LONGEST], message[:_LONGEST])
        case {"object": "error"}:
            return _from_fields(value)
        case {"detail": detail} if is_error and detail:
            return _Report(_text(detail), _text(detail))
        case {"message": message} if is_error and message:
            return _from_fields(value)
        case [first, *_]:
            return _read(first, is_error=is_error)
        case _:
            return None


def _from_fields(error: dict[str, Any]) -> _Report:
    metadata = get_dict(error, "metadata")
    message = _text(error.get("message") or error.get("code") or error)
    raw = (get_str(metadata, "raw") or "").strip()  # the words of the provider behind OpenRouter
    if raw and raw not in message:
        message = f"{message} ({raw[:500]})"
    return _Report(
        message,
        " ".join([message, *(error[name] for name in ("type", "code", "status") if get_str(error, name))]),
        _status(error.get("code")) or _status(error.get("status")),
        {name.lower(): value for name, value in get_dict(metadata, "headers").items()},
    )


def _status(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 400 <= value < 600 else None


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:_LONGEST]


def _first_line(text: str) -> str:
    """The first line of plain text, or nothing if it is a web page."""
    return "" if text.startswith("<") else text.partition("\n")[0][:300]


def _wait(headers: Mapping[str, str], words: str) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after", "")
    seconds = _number(given)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(given)
    except ValueError:
        return retry_after(words)
    at = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _reset_time(*sources: Mapping[str, Any]) -> float | None:
    """`X-RateLimit-Reset` if it is a date: OpenRouter sends milliseconds since the epoch, others seconds."""
    for source in sources:
        at = _number(source.get("x-ratelimit-reset"))
        if at is not None and at > _EPOCH:
            return at / 1000 if at > _MILLISECONDS else at
    return None


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < float("inf") else None
