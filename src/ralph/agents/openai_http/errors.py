"""How servers refuse, and what that means for a loop. Pure: what was answered in, a failure out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.events import decode_json
from ralph.transcripts.meta import ErrorClass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.transcripts.events import TranscriptEvent

_LONGEST = 2000
#: Shorter ones are made up for local servers, and no secrets.
_SHORTEST_KEY = 8
#: 2001 in seconds; a bigger number than the second is in milliseconds
_EPOCH, _MILLISECONDS = 1e9, 1e12


class Failure(msgspec.Struct, frozen=True):
    message: str
    error_class: ErrorClass = ErrorClass.FAILED
    #: seconds from now, or since the epoch
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
        """A server may quote the key it does not like; the journal must not."""
        if key is None or len(key) < _SHORTEST_KEY or key not in self.message:
            return self
        return msgspec.structs.replace(self, message=self.message.replace(key, "[key]"))


class _Reported(msgspec.Struct, frozen=True):
    """A server's own words about an error."""

    message: str
    #: its type and code, which are words too
    names: str = ""
    status: int | None = None
    headers: dict[str, Any] = {}

    @property
    def words(self) -> str:
        return f"{self.message} {self.names}"


def refused(status: int, headers: Mapping[str, str], body: bytes, shown: str, *, with_key: bool) -> Failure:
    """An HTTP status that is no success."""
    if 300 <= status < 400:
        target = headers.get("location", "elsewhere")
        return Failure(f"{shown} redirects to {target}: set OPENAI_BASE_URL to where it leads")
    text = body.decode("utf-8", "replace").strip()
    reported = _read(_decoded(text), alone=True)
    message = reported.message if reported else _plain(text)
    words = reported.words if reported else message
    kind = classify(words, status)
    said = f"{shown} answered {status}" + (f": {message}" if message else "")
    if kind is ErrorClass.AUTH and not with_key:
        said += " (no key was sent: set OPENAI_API_KEY, or OPENROUTER_API_KEY for OpenRouter)"
    if status in (404, 405) and reported is None:
        said += " (is OPENAI_BASE_URL right? It usually ends in /v1)"
    more = reported.headers if reported else {}
    return Failure(said, kind, _wait(headers, words), _reset(headers, more))


def reported_in(value: dict[str, Any]) -> Failure | None:
    """An error in place of an answer or in the middle of one, where the HTTP status was a success."""
    found = _read(value, alone=False)
    if found is None:
        return None
    kind = classify(found.words, found.status)
    return Failure(
        f"the server reports an error: {found.message}", kind, _wait({}, found.words), _reset({}, found.headers)
    )


def _read(value: Any, *, alone: bool) -> _Reported | None:
    """`alone`: the value is known to tell of an error, whatever its form."""
    match value:
        case {"error": dict() as error} if error:
            return _from_fields(error)
        case {"error": str() as message} if message:
            return _Reported(message[:_LONGEST])
        case {"object": "error"}:
            return _from_fields(value)
        case {"detail": detail} if alone and detail:
            return _Reported(_text(detail))
        case {"message": message} if alone and message:
            return _from_fields(value)
        case [first, *_]:
            return _read(first, alone=alone)
        case _:
            return None


def _from_fields(error: dict[str, Any]) -> _Reported:
    metadata = error.get("metadata")
    details: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    message = _text(error.get("message") or error.get("code") or error)
    raw = details.get("raw")  # what the provider behind OpenRouter said
    if isinstance(raw, str) and raw.strip() and raw not in message:
        message = f"{message} ({raw.strip()[:500]})"
    headers = details.get("headers")
    return _Reported(
        message,
        " ".join(str(error[name]) for name in ("type", "code", "status") if isinstance(error.get(name), str)),
        _status(error.get("code")) or _status(error.get("status")),
        {str(k).lower(): v for k, v in headers.items()} if isinstance(headers, dict) else {},
    )


def _status(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 400 <= value < 600 else None


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:_LONGEST]


def _decoded(text: str) -> Any:
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return None


def _plain(text: str) -> str:
    """What is no JSON: its first line, unless it is a web page."""
    return "" if text.startswith("<") else text.partition("\n")[0][:300]


def _wait(headers: Mapping[str, str], words: str) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None:
        return seconds
    if given:
        try:
            date = parsedate_to_datetime(given)
        except ValueError:
            return retry_after(words)
        at = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (at - datetime.now(UTC)).total_seconds())
    return retry_after(words)


def _reset(*sources: Mapping[str, Any]) -> float | None:
    """`X-RateLimit-Reset`, where it is a moment: OpenRouter gives milliseconds since the epoch, others seconds."""
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
