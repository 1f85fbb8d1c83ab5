"""Claude Code's messages, and what comes of them."""

from __future__ import annotations

import json
from typing import Any

from ralph.agents.claude.adapter import ClaudeAdapter
from ralph.judging.replay import replay
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    TranscriptEvent,
)

MARKER = "<promise>COMPLETE</promise>"


def run(*lines: Any) -> list[TranscriptEvent]:
    adapter = ClaudeAdapter()
    events = [e for line in lines for e in adapter.feed(line if isinstance(line, str) else json.dumps(line))]
    return events + adapter.flush()


def verdict(*lines: Any, exit_code: int = 0) -> dict[str, Any]:
    data = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    *_, (last, _) = replay(data, b"", "claude", exit_code, None, None)
    assert isinstance(last[0], Meta)
    return last[0].meta


def texts(events: list[TranscriptEvent], tag: Tag) -> list[str]:
    return [e.text for e in events if isinstance(e, Text) and e.tag is tag]


def metas(events: list[TranscriptEvent], kind: str) -> list[dict[str, Any]]:
    return [e.meta for e in events if isinstance(e, Meta) and e.meta["kind"] == kind]


def delta(text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}


def assistant(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "m1", "model": "claude-x", "content": list(blocks)}, **fields}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def result(text: str = "", **fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": text, **fields}
