"""OpenAI's responses API, which Codex uses."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ralph.testing.model.exchange import Api, Event, Json, ModelRequest, Reply, ToolCall, new_id, objects, pieces, words
from ralph.testing.model.openai_errors import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator


def read(_path: str, body: Json) -> ModelRequest:
    given = body.get("input")
    prompt, results = (given, 0) if isinstance(given, str) else ("", 0)
    for item in objects(given):
        if str(item.get("type")).endswith("_output"):
            results += 1
        elif item.get("role") == "user":
            prompt, results = words(item.get("content")), 0
    tools = {t["name"]: t.get("parameters") or {} for t in objects(body.get("tools")) if t.get("type") == "function"}
    schema = ((body.get("text") or {}).get("format") or {}).get("schema")
    return ModelRequest(str(body.get("model") or ""), prompt, results, tools, bool(body.get("stream")), schema)


def whole(reply: Reply) -> Json:
    return _response(reply, "completed", _items(reply))


def events(reply: Reply) -> Iterator[Event]:
    for number, (kind, fields) in enumerate(_plain_events(reply)):
        yield Event({"type": kind, "sequence_number": number, **fields}, kind)


def _plain_events(reply: Reply) -> Iterator[tuple[str, Json]]:
    opening = _response(reply, "in_progress", [])
    yield "response.created", {"response": opening}
    yield "response.in_progress", {"response": opening}
    items = _items(reply)
    for index, item in enumerate(items):
        at = {"item_id": item["id"], "output_index": index}
        blank: Json = {"summary": [], "content": [], "arguments": ""}
        begun = item | {key: value for key, value in blank.items() if key in item} | {"status": "in_progress"}
        yield "response.output_item.added", {"output_index": index, "item": begun}
        match item["type"]:
            case "reasoning":
                yield from _streamed(
                    "reasoning_summary_text", "reasoning_summary_part", at, "summary", item["summary"][0]
                )
            case "message":
                yield from _streamed("output_text", "content_part", at, "content", item["content"][0])
            case _:
                for piece in pieces(item["arguments"], 20):
                    yield "response.function_call_arguments.delta", at | {"delta": piece}
                yield "response.function_call_arguments.done", at | {"arguments": item["arguments"]}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": opening | {"status": "completed", "output": items, "usage": _usage(reply)}}


def _streamed(text_event: str, part_event: str, at: Json, index: str, part: Json) -> Iterator[tuple[str, Json]]:
    """A part with text: opened, filled piece by piece, closed."""
    at = at | {f"{index}_index": 0}
    yield f"response.{part_event}.added", at | {"part": part | {"text": ""}}
    for piece in pieces(part["text"]):
        yield f"response.{text_event}.delta", at | {"delta": piece}
    yield f"response.{text_event}.done", at | {"text": part["text"]}
    yield f"response.{part_event}.done", at | {"part": part}


def _items(reply: Reply) -> list[Json]:
    items: list[Json] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"id": new_id("rs"), "type": "reasoning", "summary": summary, "encrypted_content": "c2NyaXB0ZWQ="})
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        message = {"id": new_id("msg"), "type": "message", "status": "completed", "role": "assistant"}
        items.append({**message, "content": content})
    return items + [_function_call(call) for call in reply.calls]


def _function_call(call: ToolCall) -> Json:
    return {
        "id": new_id("fc"),
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.text,
    }


def _response(reply: Reply, status: str, output: list[Json]) -> Json:
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "model": reply.model,
        "output": output,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(reply) if output or status == "completed" else None,
    }


def _usage(reply: Reply) -> Json:
    used = reply.usage
    return {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    }


API = Api("responses", read, whole, events, refusal)
