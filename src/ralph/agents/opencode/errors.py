"""opencode's errors: what they mean, and when to try again."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import LIMITS, limit_events
from ralph.transcripts.json_lines import get_dict, get_int, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: What opencode tells the model when it refuses a call. Missing file permissions are reported in other words.
_REFUSALS = (
    "The user rejected permission to use",
    "The user has rejected permission",
    "The user has specified a rule which prevents you from using",
)


def is_refusal(error: str) -> bool:
    return error.startswith(_REFUSALS)


def error_class(message: str, name: str | None = None, status: int | None = None) -> ErrorClass:
    """By opencode's own name for the error, else by what the provider said."""
    match name:
        case "ContextOverflowError":
            return ErrorClass.CONTEXT_EXCEEDED
        case "ProviderAuthError":
            return ErrorClass.AUTH
    if message.startswith("Unexpected server error"):
        return ErrorClass.FAILED  # the server inside the CLI, not an overloaded provider
    return classify(message, status)


def error_message(error: Any) -> str:
    if isinstance(error, str):
        return error
    return get_str(get_dict(error, "data"), "message") or get_str(error, "message", "name") or "opencode failed"


def error_events(error: Any) -> list[TranscriptEvent]:
    """A fatal error, and before it the end of a limit if the provider's headers or its message give one."""
    message, data = error_message(error), get_dict(error, "data")
    kind = error_class(message, get_str(error, "name"), get_int(data, "statusCode"))
    wait = _wait(get_dict(data, "responseHeaders")) if kind in LIMITS else {}
    limits = [meta.rate_limit(message=message, **wait)] if wait else limit_events(message, kind)
    return [*limits, meta.error(message, kind)]


def _wait(headers: dict[str, Any]) -> dict[str, float]:
    lower = {key.lower(): value for key, value in headers.items() if isinstance(value, str)}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        given = lower.get(name, "")
        if given.replace(".", "", 1).isdecimal():
            return {"retry_after": amount(given) / unit}
        try:
            return {"resets_at": parsedate_to_datetime(given).timestamp()}
        except (ValueError, OverflowError):
            continue
    return {}
