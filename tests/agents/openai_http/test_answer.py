"""How answers become events: the real agent process against a real server."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from agents.openai_http.byteserver import DONE, HANG, ask, delta, environment, event, head
from ralph.transcripts.events import Tag, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.openai_http.byteserver import ByteServer

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 7},
}


def test_a_streamed_answer(serve: Callable[..., ByteServer]) -> None:
    server = serve(
        [
            head(),
            b": a comment\n\n",
            delta(role="assistant", content=""),
            delta(content="Two li"),
            delta(content="nes,\nand <promise>COM"),
            delta(content="PLETE</promise>"),
            delta("stop"),
            event({"id": "chatcmpl-1", "model": "real-model", "choices": [], "usage": USAGE}),
            DONE,
        ]
    )
    heard = ask(server.url, "Grüße\n", model="some/model", OPENAI_API_KEY="sk-secret-key")
    assert heard.code == 0
    assert heard.said() == "Two lines,\nand <promise>COMPLETE</promise>"
    assert heard.metas("session") == [{"kind": "session", "session_id": "chatcmpl-1", "model": "real-model"}]
    assert heard.usages == [Usage(100, 20, 120, "real-model", cached_tokens=64, reasoning_tokens=7)]
    assert heard.result["ok"] is True
    (question,) = server.questions
    assert question.line == "POST /v1/chat/completions HTTP/1.1"
    assert question.headers["authorization"] == "Bearer sk-secret-key"
    assert question.asked == {
        "model": "some/model",
        "messages": [{"role": "user", "content": "Grüße\n"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_an_answer_in_one_piece(serve: Callable[..., ByteServer]) -> None:
    message = {"role": "assistant", "content": "One\nanswer", "reasoning_content": "Hm."}
    body = msgspec.json.encode(
        {"id": "x", "model": "real", "choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE}
    )
    # The server keeps the connection open: the announced length is the end.
    heard = ask(serve([head(kind="application/json", Content_Length=str(len(body))), body, HANG]).url)
    assert (heard.code, heard.said(), heard.said(Tag.THINK)) == (0, "One\nanswer", "Hm.")
    assert heard.usages[0].total_tokens == 120
    assert heard.result["ok"] is True


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_thoughts_are_separate_from_the_text(serve: Callable[..., ByteServer], name: str) -> None:
    thoughts = [delta(**{name: "First I "}), delta(**{name: "think.\nLOOP_COMPLETE"})]
    heard = ask(serve([head(), *thoughts, delta(content="Then I speak."), delta("stop"), DONE]).url)
    assert heard.said(Tag.THINK) == "First I think.\nLOOP_COMPLETE"
    assert heard.said() == "Then I speak."


def test_a_thought_under_two_names_is_shown_once(serve: Callable[..., ByteServer]) -> None:
    both = delta(reasoning="Once.", reasoning_content="Once.")
    assert ask(serve([head(), both, delta("stop"), DONE]).url).said(Tag.THINK) == "Once."


def test_think_tags_in_the_text_are_recognised(serve: Callable[..., ByteServer]) -> None:
    pieces = ["<th", "ink>\nLOOP_COMP", "LETE? No.\n</thi", "nk>\n\nNot yet.", " <think> is a tag."]
    heard = ask(serve([head(), *(delta(content=p) for p in pieces), delta("stop"), DONE]).url)
    assert heard.said(Tag.THINK).strip() == "LOOP_COMPLETE? No."
    assert heard.said() == "Not yet. <think> is a tag."


def test_lines_are_printed_as_they_come(serve: Callable[..., ByteServer]) -> None:
    server = serve([head(), delta(content="first line\nsecond"), HANG])
    command = [sys.executable, "-P", "-m", "ralph.agents.openai_http", "--model", "m"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment(OPENAI_BASE_URL=server.url)
    ) as agent:
        assert agent.stdout is not None
        printed = [agent.stdout.readline(), agent.stdout.readline()]
        assert b'"text":"first line"' in printed[1]
        agent.kill()


def test_a_slow_trickle_of_bytes(serve: Callable[..., ByteServer]) -> None:
    """Packets and chunks may end in the middle of a character."""
    data = delta(content="Grüße 😀\n") + delta(content="日本") + delta("stop") + DONE
    parts = [data[i : i + 3] for i in range(0, len(data), 3)]
    chunked = [b"%x\r\n%s\r\n" % (len(p), p) for p in parts]
    heard = ask(serve([head(Transfer_Encoding="chunked"), *chunked, b"0\r\n\r\n"]).url)
    assert (heard.code, heard.said()) == (0, "Grüße 😀\n日本")
    slowly = [x for p in parts for x in (p, 0.002)]
    assert ask(serve([head(), *slowly]).url).said() == "Grüße 😀\n日本"


def test_a_long_line_reports_progress(serve: Callable[..., ByteServer]) -> None:
    trickle = [x for _ in range(9) for x in (delta(content="word "), 0.3)]
    heard = ask(serve([head(), *trickle, delta("stop"), DONE]).url)
    assert heard.metas("progress")
    assert heard.said() == "word " * 9


def test_a_huge_answer(serve: Callable[..., ByteServer]) -> None:
    line = "x" * 999 + "\n"
    answer = [head(), *[delta(content=line * 50)] * 200, delta(content="y" * 5_000_000), delta("stop"), DONE]
    heard = ask(serve(answer).url)
    assert heard.code == 0
    assert heard.said() == (line * 50 * 200) + "y" * 5_000_000


def test_a_huge_prompt_and_one_that_is_not_utf8(serve: Callable[..., ByteServer]) -> None:
    server = serve([head(), delta(content="ok"), delta("stop"), DONE])
    assert ask(server.url, b"caf\xe9 " * 1_000_000).code == 0
    assert server.questions[0].asked["messages"][0]["content"] == "caf� " * 1_000_000


@pytest.mark.parametrize("tail", [[delta("stop")], [delta("stop"), b"data: [DONE]"], [DONE]])
def test_any_of_several_marks_ends_an_answer(serve: Callable[..., ByteServer], tail: list[bytes]) -> None:
    heard = ask(serve([head(), delta(content="words"), *tail]).url)
    assert (heard.code, heard.said(), heard.result["ok"]) == (0, "words", True)


def test_done_ends_the_answer_at_once(serve: Callable[..., ByteServer]) -> None:
    assert ask(serve([head(), delta(content="words"), DONE, HANG]).url).code == 0
    assert ask(serve([head() + delta(content="words") + DONE + delta(content="more")]).url).said() == "words"


def test_lines_without_empty_ones_between_and_with_carriage_returns(serve: Callable[..., ByteServer]) -> None:
    events = [delta(content="a"), delta(content="b"), delta("stop")]
    assert ask(serve([head(), *(e.strip() + b"\n" for e in events)]).url).said() == "ab"
    assert ask(serve([head(), *(e.strip() + b"\r\n\r\n" for e in events)]).url).said() == "ab"


def test_usage_in_every_chunk_counts_once(serve: Callable[..., ByteServer]) -> None:
    def chunk(tokens: int) -> bytes:
        usage = {"prompt_tokens": 5, "completion_tokens": tokens, "cost": 0.25 * tokens}
        return event({"choices": [{"index": 0, "delta": {"content": "w"}, "finish_reason": None}], "usage": usage})

    heard = ask(serve([head(), chunk(1), chunk(2), delta("stop"), DONE]).url)
    assert heard.usages == [Usage(5, 2, None, "real-model", cost_usd=0.5)]


def test_an_empty_answer_is_no_failure_of_the_agent(serve: Callable[..., ByteServer]) -> None:
    heard = ask(serve([head(), delta(role="assistant", content=""), delta("stop"), DONE]).url)
    assert (heard.code, heard.said(), heard.result["ok"]) == (0, "", True)


def test_a_token_limit_and_tool_calls_are_warnings(serve: Callable[..., ByteServer]) -> None:
    heard = ask(serve([head(), delta(content="I beg"), delta("length"), DONE]).url)
    (remark,) = heard.metas("error")
    assert (heard.code, remark["fatal"]) == (0, False)
    assert "token limit" in remark["message"]
    calls = [{"index": 0, "id": "c", "function": {"name": "shell", "arguments": "{}"}}]
    heard = ask(serve([head(), delta(tool_calls=calls), delta("tool_calls"), DONE]).url)
    assert "(shell), but this agent has none" in heard.metas("error")[0]["message"]


def test_unknown_data_is_reported(serve: Callable[..., ByteServer]) -> None:
    odd = event({"type": "ping"}) + b"data: {torn\n\n" + b"what is this\n"
    heard = ask(serve([head(), odd, delta(content="words"), delta("stop"), DONE]).url)
    assert (heard.code, heard.said()) == (0, "words")
    assert heard.metas("unknown") == [{"kind": "unknown", "line": {"type": "ping"}}]
    assert [m["line"] for m in heard.metas("parse_error")] == ["{torn", "what is this"]
