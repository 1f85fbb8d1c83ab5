"""Google's generateContent API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ralph.testing.model.exchange import Api, Event, Json, ModelRequest, Refusal, Reply, new_id, objects, pieces, words
from ralph.testing.model.script import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

#: /v1beta/models/MODEL:VERB
PATH = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$")
_RPC = "type.googleapis.com/google.rpc."
_METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
_PER_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
_PER_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"


def _exceeded(quota: str) -> Json:
    return {"@type": f"{_RPC}QuotaFailure", "violations": [{"quotaMetric": _METRIC, "quotaId": quota}]}


_REFUSALS: dict[Failure, tuple[int, str, str, list[Json]]] = {
    Failure.AUTH: (
        401,
        "UNAUTHENTICATED",
        "API key not valid. Please pass a valid API key.",
        [{"@type": f"{_RPC}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
    ),
    Failure.RATE_LIMIT: (
        429,
        "RESOURCE_EXHAUSTED",
        "Resource has been exhausted. Please retry in 2s.",
        [_exceeded(_PER_MINUTE), {"@type": f"{_RPC}RetryInfo", "retryDelay": "2s"}],
    ),
    Failure.SERVER: (500, "INTERNAL", "An internal error has occurred.", []),
    Failure.QUOTA: (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", [_exceeded(_PER_DAY)]),
    Failure.CONTEXT: (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        [],
    ),
}


def read(path: str, body: Json) -> ModelRequest:
    prompt, results = "", 0
    for content in objects(body.get("contents")):
        if content.get("role", "user") != "user":
            continue
        parts = objects(content.get("parts"))
        brought = sum("functionResponse" in part for part in parts)
        text = words([p for p in parts if not p.get("thought")], "")
        if brought:
            results += brought
        elif text:
            prompt, results = text, 0
    declared = [f for t in objects(body.get("tools")) for f in objects(t.get("functionDeclarations"))]
    tools = {f["name"]: f.get("parametersJsonSchema") or f.get("parameters") or {} for f in declared}
    form = body.get("generationConfig") or {}
    schema = form.get("responseJsonSchema") or form.get("responseSchema")
    found = PATH.search(path)
    model, verb = found.groups() if found else ("", "")
    return ModelRequest(model, prompt, results, tools, verb == "streamGenerateContent", schema)


def whole(reply: Reply) -> Json:
    return _answer(reply, new_id("resp"), list(_parts(reply)), last=True)


def events(reply: Reply) -> Iterator[Event]:
    identity = new_id("resp")
    parts = list(_parts(reply))
    for number, part in enumerate(parts, 1):
        yield Event(_answer(reply, identity, [part], last=number == len(parts)))


def refusal(failure: Failure) -> Refusal:
    status, name, message, details = _REFUSALS[failure]
    error: Json = {"code": status, "message": message, "status": name}
    if details:
        error["details"] = details
    return Refusal(status, {"error": error}, {"retry-after": "2"} if failure is Failure.RATE_LIMIT else {})


def _parts(reply: Reply) -> Iterator[Json]:
    if reply.thinking:
        yield {"text": f"**Planning**\n\n{reply.thinking}", "thought": True}
    for piece in pieces(reply.text):
        yield {"text": piece}
    for call in reply.calls:
        yield {"functionCall": {"name": call.name, "args": call.arguments}, "thoughtSignature": "c2NyaXB0ZWQ="}
    if not (reply.thinking or reply.text or reply.calls):
        yield {"text": ""}


def _answer(reply: Reply, identity: str, parts: list[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(reply),
        "modelVersion": reply.model,
        "responseId": identity,
    }


def _usage(reply: Reply) -> Json:
    """In this API, the output does not include thoughts."""
    used = reply.usage
    return {
        "promptTokenCount": used.input,
        "candidatesTokenCount": used.output - used.reasoning,
        "thoughtsTokenCount": used.reasoning,
        "cachedContentTokenCount": used.cached,
        "totalTokenCount": used.input + used.output,
    }


API = Api("gemini", read, whole, events, refusal)
