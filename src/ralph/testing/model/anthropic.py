"""Anthropic's Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.testing.model.exchange import Api, Event, Json, ModelRequest, Refusal, Reply, new_id, objects, pieces, words
from ralph.testing.model.script import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

_REFUSALS = {
    Failure.AUTH: (401, "authentication_error", "invalid x-api-key"),
    Failure.RATE_LIMIT: (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    Failure.SERVER: (500, "api_error", "Internal server error"),
    Failure.QUOTA: (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    Failure.CONTEXT: (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
}


def read(_path: str, body: Json) -> ModelRequest:
    prompt = ""
    # Claude Code before 1.0.100 may send a call and its result twice in one conversation. They count once.
    results: set[str] = set()
    for message in objects(body.get("messages")):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        brought = [part.get("tool_use_id") for part in objects(content) if part.get("type") == "tool_result"]
        if brought:
            results.update(map(str, brought))
        else:
            prompt, results = words(content), set()
    tools = {t["name"]: t.get("input_schema") or {} for t in objects(body.get("tools")) if "name" in t}
    form = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return ModelRequest(
        str(body.get("model") or ""), prompt, len(results), tools, bool(body.get("stream")), form.get("schema")
    )


def whole(reply: Reply) -> Json:
    blocks = [block for block, _ in _blocks(reply)]
    return _message(reply) | {"content": blocks, "stop_reason": _stop(reply), "usage": _usage(reply)}


def events(reply: Reply) -> Iterator[Event]:
    opening = _message(reply) | {"usage": _usage(reply) | {"output_tokens": 1}}
    yield _event("message_start", message=opening)
    for index, (block, deltas) in enumerate(_blocks(reply)):
        blank = {
            key: ({} if key == "input" else "") for key in ("text", "thinking", "signature", "input") if key in block
        }
        yield _event("content_block_start", index=index, content_block=block | blank)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta={"stop_reason": _stop(reply), "stop_sequence": None}, usage=_usage(reply))
    yield _event("message_stop")


def refusal(failure: Failure) -> Refusal:
    status, kind, message = _REFUSALS[failure]
    headers = {"retry-after": "2"} if failure is Failure.RATE_LIMIT else {}
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": new_id("req")}
    return Refusal(status, body, headers)


def _event(kind: str, **fields: object) -> Event:
    return Event({"type": kind, **fields}, kind)


def _message(reply: Reply) -> Json:
    return {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _blocks(reply: Reply) -> list[tuple[Json, list[Json]]]:
    """Each block, and the deltas that it is streamed as."""
    blocks: list[tuple[Json, list[Json]]] = []
    if reply.thinking:
        signature = {"type": "signature_delta", "signature": "c2NyaXB0ZWQ="}
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": p} for p in pieces(reply.thinking, 24)]
        block: Json = {"type": "thinking", "thinking": reply.thinking, "signature": signature["signature"]}
        blocks.append((block, [*deltas, signature]))
    if reply.text:
        deltas = [{"type": "text_delta", "text": p} for p in pieces(reply.text)]
        blocks.append(({"type": "text", "text": reply.text}, deltas))
    for call in reply.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        blocks.append((block, [{"type": "input_json_delta", "partial_json": p} for p in pieces(call.text, 20)]))
    return blocks


def _stop(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _usage(reply: Reply) -> Json:
    """In this API, the input does not include cached tokens."""
    return {
        "input_tokens": reply.usage.input - reply.usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.usage.cached,
        "output_tokens": reply.usage.output,
    }


API = Api("anthropic", read, whole, events, refusal)
