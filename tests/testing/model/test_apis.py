"""The four APIs over real HTTP, used as an agent does: ask, run the tool calls, send the results, ask again."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ralph.testing.model import SCENARIOS, FakeModel
from ralph.testing.model.scenarios import CONTENT, MARKER

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TIMEOUT = 10


@dataclass(frozen=True)
class Answer:
    """An answer in one form for all APIs."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, Json]] = field(default_factory=list)
    input: int = 0
    output: int = 0


def post(url: str, body: Json) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        data: bytes = response.read()
    return data


def events(data: bytes) -> list[Json]:
    lines = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def anthropic(url: str, prompt: str, results: int, stream: bool, tools: bool) -> Answer:
    messages: list[Json] = [{"role": "user", "content": prompt}]
    for n in range(results):
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": "done"}
        messages += [{"role": "assistant", "content": "…"}, {"role": "user", "content": [result]}]
    body = {"model": "m", "messages": messages, "stream": stream}
    if tools:
        body["tools"] = [{"name": "Bash", "input_schema": SHELL}]
    data = post(f"{url}/v1/messages?beta=true", body)
    if not stream:
        message = json.loads(data)
        blocks = message["content"]
    else:
        blocks, message = _anthropic_stream(events(data))
    usage = message["usage"]
    return Answer(
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"],
        usage["input_tokens"] + usage["cache_read_input_tokens"],
        usage["output_tokens"],
    )


def _anthropic_stream(stream: list[Json]) -> tuple[list[Json], Json]:
    assert [stream[0]["type"], stream[-1]["type"]] == ["message_start", "message_stop"]
    blocks: list[Json] = []
    for event in stream:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
            typed = ""
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            match delta["type"]:
                case "text_delta":
                    blocks[-1]["text"] += delta["text"]
                case "thinking_delta":
                    blocks[-1]["thinking"] += delta["thinking"]
                case "input_json_delta":
                    typed += delta["partial_json"]
        elif event["type"] == "content_block_stop" and typed:
            blocks[-1]["input"] = json.loads(typed)
    return blocks, next(e for e in stream if e["type"] == "message_delta")


def chat(url: str, prompt: str, results: int, stream: bool, tools: bool) -> Answer:
    messages: list[Json] = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    for n in range(results):
        messages += [{"role": "assistant"}, {"role": "tool", "tool_call_id": f"t{n}", "content": "done"}]
    body = {"model": "m", "messages": messages, "stream": stream}
    if tools:
        body["tools"] = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}]
    data = post(f"{url}/v1/chat/completions", body)
    if stream:
        chunks = events(data)
        assert data.endswith(b"data: [DONE]\n\n")
        deltas = [c["choices"][0]["delta"] for c in chunks if c["choices"]]
        text = "".join(d.get("content") or "" for d in deltas)
        thinking = "".join(d.get("reasoning_content") or "" for d in deltas)
        calls, usage = _chat_calls(deltas), chunks[-1]["usage"]
    else:
        whole = json.loads(data)
        message, usage = whole["choices"][0]["message"], whole["usage"]
        text, thinking = message["content"], message.get("reasoning_content", "")
        functions = [c["function"] for c in message.get("tool_calls", ())]
        calls = [(f["name"], json.loads(f["arguments"])) for f in functions]
    return Answer(text, thinking, calls, usage["prompt_tokens"], usage["completion_tokens"])


def _chat_calls(deltas: list[Json]) -> list[tuple[str, Json]]:
    pieces = [c for d in deltas for c in d.get("tool_calls", ())]
    calls = []
    for index in sorted({c["index"] for c in pieces}):
        own = [c["function"] for c in pieces if c["index"] == index]
        calls.append((own[0]["name"], json.loads("".join(f["arguments"] for f in own))))
    return calls


def responses(url: str, prompt: str, results: int, stream: bool, tools: bool) -> Answer:
    messages: list[Json] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}]
    for n in range(results):
        messages += [
            {"type": "function_call", "call_id": f"t{n}"},
            {"type": "function_call_output", "call_id": f"t{n}"},
        ]
    body = {"model": "m", "input": messages, "stream": stream}
    if tools:
        body["tools"] = [{"type": "function", "name": "shell", "parameters": SHELL}]
    data = post(f"{url}/v1/responses", body)
    if stream:
        stream_events = events(data)
        assert [e["sequence_number"] for e in stream_events] == list(range(len(stream_events)))
        whole = stream_events[-1]["response"]
        done = [e["item"] for e in stream_events if e["type"] == "response.output_item.done"]
        assert whole["output"] == done
        typed = "".join(e["delta"] for e in stream_events if e["type"] == "response.output_text.delta")
        assert typed == "".join(i["content"][0]["text"] for i in done if i["type"] == "message")
    else:
        whole = json.loads(data)
    assert whole["status"] == "completed"
    items = whole["output"]
    return Answer(
        "".join(i["content"][0]["text"] for i in items if i["type"] == "message"),
        "".join(i["summary"][0]["text"] for i in items if i["type"] == "reasoning"),
        [(i["name"], json.loads(i["arguments"])) for i in items if i["type"] == "function_call"],
        whole["usage"]["input_tokens"],
        whole["usage"]["output_tokens"],
    )


def gemini(url: str, prompt: str, results: int, stream: bool, tools: bool) -> Answer:
    messages: list[Json] = [{"role": "user", "parts": [{"text": prompt}]}]
    for _ in range(results):
        messages.append({"role": "model", "parts": [{"functionCall": {"name": "run_shell_command"}}]})
        messages.append({"role": "user", "parts": [{"functionResponse": {"name": "run_shell_command"}}]})
    body: Json = {"contents": messages}
    if tools:
        declared = {"name": "run_shell_command", "parametersJsonSchema": SHELL}
        body["tools"] = [{"functionDeclarations": [declared]}]
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    data = post(f"{url}/v1beta/models/m:{verb}", body)
    parts = events(data) if stream else [json.loads(data)]
    assert parts[-1]["candidates"][0]["finishReason"] == "STOP"
    usage = parts[-1]["usageMetadata"]
    content = [part for whole in parts for part in whole["candidates"][0]["content"]["parts"]]
    return Answer(
        "".join(part["text"] for part in content if "text" in part and not part.get("thought")),
        "".join(part["text"] for part in content if part.get("thought")),
        [(part["functionCall"]["name"], part["functionCall"]["args"]) for part in content if "functionCall" in part],
        usage["promptTokenCount"],
        usage["totalTokenCount"] - usage["promptTokenCount"],
    )


APIS: list[Callable[[str, str, int, bool, bool], Answer]] = [anthropic, chat, responses, gemini]
every_api = pytest.mark.parametrize("ask", APIS, ids=lambda ask: ask.__name__)
stream_or_not = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@every_api
@stream_or_not
def test_success_thinks_runs_a_command_writes_a_file_and_finishes(ask: Any, stream: bool) -> None:
    with FakeModel("success") as model:
        first, second, third = (ask(model.url, "Do it.", results, stream, True) for results in range(3))
    assert first.thinking.endswith("List the files, then write one.")
    assert first.text == "First I look around."
    assert [args["command"] for _, args in first.calls] == ["ls"]
    ((_, writing),) = second.calls
    assert CONTENT in writing["command"]
    assert third.calls == []
    assert third.text.endswith(f"\n\n{MARKER}\n")
    assert [(a.input, a.output) for a in (first, second, third)] == [(1200, 105), (1400, 60), (1550, 57)]
    assert [(r.api, r.step, r.main, r.prompt) for r in model.requests] == [
        (ask.__name__, step, True, "Do it.") for step in range(3)
    ]


@every_api
@stream_or_not
def test_a_side_request_gets_a_title_and_does_not_advance_the_script(ask: Any, stream: bool) -> None:
    with FakeModel("success") as model:
        aside = ask(model.url, "Name this session.", 0, stream, False)
        first = ask(model.url, "Do it.", 0, stream, True)
    assert aside.calls == []
    assert MARKER not in aside.text
    assert len(first.calls) == 1
    assert [r.main for r in model.requests] == [False, True]


@every_api
def test_two_commands_in_one_turn_need_two_results(ask: Any) -> None:
    with FakeModel("parallel") as model:
        first, between, then = (ask(model.url, "Do it.", results, True, True) for results in range(3))
    assert [args["command"] for _, args in first.calls] == ["echo one", "echo two; exit 1"]
    assert len(between.calls) == 2
    assert len(then.calls) == 1


@every_api
def test_unusual_text_arrives_unchanged(ask: Any) -> None:
    with FakeModel("unicode") as model:
        last = ask(model.url, "Do it.", 2, True, True)
    assert last.text == SCENARIOS["unicode"].turns[-1].text
    assert max(len(line) for line in last.text.split("\n")) == 200_000


@every_api
def test_an_answer_can_be_empty(ask: Any) -> None:
    with FakeModel("empty") as model:
        answer = ask(model.url, "Do it.", 0, True, True)
    assert (answer.text, answer.thinking, answer.calls) == ("", "", [])


@every_api
def test_a_scenario_can_answer_requests_without_tools(ask: Any) -> None:
    with FakeModel("answer") as model:
        assert ask(model.url, "Do it.", 0, False, False).text.endswith(f"{MARKER}\n")


@every_api
@pytest.mark.parametrize(("scenario", "status"), [("error401", 401), ("error429", 429), ("error500", 500)])
def test_errors_have_their_status(ask: Any, scenario: str, status: int) -> None:
    with FakeModel(scenario) as model:
        for tools in (True, False):
            with pytest.raises(urllib.error.HTTPError) as error:
                ask(model.url, "Do it.", 0, True, tools)
            assert error.value.code == status
            assert error.value.headers["retry-after"] == ("2" if status == 429 else None)
            assert json.loads(error.value.read())["error"]["message"]


@every_api
@pytest.mark.parametrize("scenario", ["quota", "ctxlimit"])
def test_errors_that_no_retry_can_fix_are_client_errors(ask: Any, scenario: str) -> None:
    with FakeModel(scenario) as model, pytest.raises(urllib.error.HTTPError) as error:
        ask(model.url, "Do it.", 0, True, True)
    assert error.value.code in (400, 429)
    assert "retry-after" not in error.value.headers
    error.value.close()


@every_api
def test_flaky_fails_only_the_first_request_of_the_agent_itself(ask: Any) -> None:
    with FakeModel("flaky") as model:
        ask(model.url, "A title.", 0, True, False)
        with pytest.raises(urllib.error.HTTPError) as error:
            ask(model.url, "Do it.", 0, True, True)
        error.value.close()
        assert len(ask(model.url, "Do it.", 0, True, True).calls) == 1


def test_a_result_that_is_sent_twice_counts_once() -> None:
    """Claude Code 1.0.60 repeats a call and its result within one conversation."""
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t0", "content": "done"}]}
    messages = [{"role": "user", "content": "go"}, *2 * [{"role": "assistant", "content": "…"}, result]]
    body = {"model": "m", "messages": messages, "tools": [{"name": "Bash", "input_schema": SHELL}]}
    with FakeModel("success") as model:
        message = json.loads(post(f"{model.url}/v1/messages", body))
    assert message["content"][0]["text"] == SCENARIOS["success"].turns[1].text
