"""pi's error messages. They come from the provider: a status and its JSON, or one sentence."""

from __future__ import annotations

import re

import msgspec

from ralph.transcripts import meta
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.errors import LIMITS
from ralph.transcripts.events import TranscriptEvent, decode_json
from ralph.transcripts.json_lines import get_dict, get_str
from ralph.transcripts.meta import ErrorClass

_STATUS = re.compile(r"([45]\d\d)\b[: ]*(.*)", re.DOTALL)
#: How pi's fatal lines on stderr begin, if not with a status.
_OWN = re.compile(
    r"No API key|No session found|You have hit your|Error(?:: | \()|Request error|Request aborted|Unknown provider|"
    r"Authentication failed"
)


class PiError(msgspec.Struct, frozen=True):
    message: str
    error_class: ErrorClass

    def limit(self) -> list[TranscriptEvent]:
        """When to try again, if the message says so ("Try again in ~5 min.")."""
        if self.error_class not in LIMITS:
            return []
        seconds = retry_after(self.message.replace("~", ""))
        return [] if seconds is None else [meta.rate_limit(message=self.message, retry_after=seconds)]


def explain(text: str) -> PiError:
    """The class of an `errorMessage`, by its status first, and its text without the JSON around it."""
    found = _STATUS.match(text)
    status = int(found.group(1)) if found else None
    return PiError(_sentence(found.group(1), found.group(2)) if found else text, classify(text, status))


def on_stderr(line: str) -> PiError | None:
    """The error, if this line is certainly one that ends pi; warnings and the output of extensions are not."""
    if line.startswith("No models available"):
        return PiError(line, ErrorClass.AUTH)  # it lists the models of providers that it has a key for
    if _OWN.match(line) or _STATUS.match(line):
        return explain(line)
    return None


def _sentence(status: str, rest: str) -> str:
    try:
        body = decode_json(rest) if rest.startswith("{") else None
    except (ValueError, RecursionError):
        body = None
    message = get_str(get_dict(body, "error"), "message") or get_str(body, "message", "error", "detail")
    return f"{status} {message or rest}".strip()
