"""OpenAI's chat completions API, which most providers offer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ralph.testing.model.exchange import Api, Event, Json, ModelRequest, Reply, new_id, objects, pieces, words
from ralph.testing.model.openai_errors import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator


def read(_path: str, body: Json) -> ModelRequest:
    prompt, results = "", 0
    for message in objects(body.get("messages")):
        match message.get("role"):
            case "user":
                prompt, results = words(message.get("content")), 0
            case "tool":
                results += 1
    functions = [t["function"] for t in objects(body.get("tools")) if isinstance(t.get("function"), dict)]
    tools = {f["name"]: f.get("parameters") or {} for f in functions if "name" in f}
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    return ModelRequest(str(body.get("model") or ""), prompt, results, tools, bool(body.get("stream")), schema)


def whole(reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.text}} for c in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    return _head(reply, "chat.completion") | {"choices": [choice], "usage": _usage(reply)}


def events(reply: Reply) -> Iterator[Event]:
    head = _head(reply, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None) -> Event:
        return Event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(reply.thinking, 24):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.calls):
        opening = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield chunk({"tool_calls": [opening]})
        for piece in pieces(call.text, 20):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(reply))
    yield Event({**head, "choices": [], "usage": _usage(reply)})
    yield Event("[DONE]")


def _head(reply: Reply, kind: str) -> Json:
    return {"id": new_id("chatcmpl"), "object": kind, "created": int(time.time()), "model": reply.model}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _usage(reply: Reply) -> Json:
    used = reply.usage
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }


API = Api("chat", read, whole, events, refusal)
