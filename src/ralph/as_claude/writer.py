"""Writes canonical events as lines of Claude's stream-json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.judging.judge import Outcome
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    TranscriptEvent,
    Usage,
    replace_surrogates,
)

if TYPE_CHECKING:
    from datetime import datetime

    from ralph.as_claude.wording import ApiError
    from ralph.judging.judge import Verdict
    from ralph.judging.observe import Observation

#: Signals in a tool's output are not the agent's own. They are altered so that they do not end a host's loop.
_ALTERED = {"<<<RALPHEX:": "<<< RALPHEX:", "<promise>": "< promise>"}

_encoder = msgspec.json.Encoder()


def line(value: dict[str, Any]) -> bytes:
    try:
        return _encoder.encode(value) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(replace_surrogates(value)) + b"\n"


def delta(text: str) -> bytes:
    """A piece of text. An empty one only shows that the agent is still running."""
    return line({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}})


class ClaudeWriter:
    """Writes the agent's text as it comes, and its tool calls if `verbose`."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._boundary = False
        self._message: list[str] = []

    @property
    def message(self) -> str:
        """The agent's last message."""
        return "\n".join(self._message)

    def feed(self, events: list[TranscriptEvent]) -> list[bytes]:
        lines = []
        for event in events:
            match event:
                case Text(tag=Tag.AI, text=text):
                    if self._boundary and text.strip():
                        self._message, self._boundary = [], False
                    self._message.append(text)
                    lines.append(delta(text + "\n"))
                case ToolStart(tool=tool):
                    self._boundary = True
                    if self._verbose:
                        lines.append(delta(_without_signals(f"$ {_command(tool.input) or tool.name}") + "\n"))
                case ToolOutput(text=text):
                    if self._verbose:
                        lines.append(delta(_without_signals(text) + "\n"))
                case ToolEnd():
                    self._boundary = True
        return lines


def _command(given: dict[str, Any] | None) -> str:
    command = (given or {}).get("command")
    if isinstance(command, list):
        return " ".join(str(part) for part in command)
    return command if isinstance(command, str) else ""


def _without_signals(text: str) -> str:
    for signal, altered in _ALTERED.items():
        text = text.replace(signal, altered)
    return text


def result(verdict: Verdict, seen: Observation, message: str, seconds: float, error: ApiError | None) -> dict[str, Any]:
    """Claude's last line: how the run ended, its session, cost and usage. Unknown fields are absent."""
    failed = verdict.outcome is not Outcome.OK
    reason = f"{verdict.outcome}: {verdict.why}"
    text = error.text if error else reason if failed else message
    value: dict[str, Any] = {
        "type": "result",
        # Claude has this name for an error of the provider, too.
        "subtype": "error_during_execution" if failed and error is None else "success",
        "is_error": failed,
        "result": text,
        "duration_ms": round(seconds * 1000),
        "session_id": seen.session_id,
        "total_cost_usd": seen.usage.cost_usd,
        "usage": usage(seen.usage) if seen.usage_seen else None,
        "errors": [reason] if failed else None,
        "terminal_reason": error.terminal_reason if error else None,
    }
    return {name: field for name, field in value.items() if field is not None} | (error.fields if error else {})


def error_message(error: ApiError, session_id: str | None, now: datetime) -> dict[str, Any]:
    """An error of the provider as a message, which is how Claude reports it and where tools look for it."""
    message = {
        "type": "message",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": error.text}],
    }
    value: dict[str, Any] = {
        "type": "assistant",
        "message": message,
        "session_id": session_id,
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "error": error.name,
        "is_api_error_message": True,
    }
    return {name: field for name, field in value.items() if field is not None} | error.fields


def failure(reason: str) -> dict[str, Any]:
    """The last line if the agent could not be started."""
    return {
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": True,
        "result": reason,
        "errors": [reason],
    }


def usage(known: Usage) -> dict[str, int]:
    """Usage as Claude reports it: input tokens exclude those from the cache. Unknown counts are absent."""
    cached, written = known.cached_tokens, known.cache_write_tokens
    fresh = None if known.prompt_tokens is None else max(0, known.prompt_tokens - (cached or 0) - (written or 0))
    counts = {
        "input_tokens": fresh,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": known.completion_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}
