"""Failures of a server or a connection, and how they are reported."""

from __future__ import annotations

import socket
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agents.openai_http.byteserver import DONE, ask, delta, event, head, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.openai_http.byteserver import ByteServer, Heard

    Serve = Callable[..., ByteServer]


def openai_error(message: str, kind: str = "invalid_request_error", code: object = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def failed(heard: Heard) -> tuple[str, str]:
    """The class and the message, which the error and the result share."""
    assert heard.code == 1
    (error,) = heard.metas("error")
    assert heard.result["ok"] is False
    assert (heard.result["class"], heard.result["reason"]) == (error["class"], error["message"])
    return error["class"], error["message"]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        ("401 Unauthorized", openai_error("Incorrect API key provided", code="invalid_api_key"), "auth"),
        ("403 Forbidden", openai_error("Country not supported"), "auth"),
        ("402 Payment Required", {"error": {"code": 402, "message": "Insufficient credits"}}, "quota"),
        ("429 Too Many Requests", openai_error("Slow down", "requests", "rate_limit_exceeded"), "rate_limited"),
        ("429 Too Many Requests", openai_error("No more", "insufficient_quota", "insufficient_quota"), "quota"),
        ("500 Internal Server Error", openai_error("Oops", "server_error"), "overloaded"),
        ("502 Bad Gateway", b"<html>nginx</html>", "overloaded"),
        ("503 Service Unavailable", {"error": {"code": 503, "message": "Loading model"}}, "overloaded"),
        ("400 Bad Request", openai_error("Too much", code="context_length_exceeded"), "context_exceeded"),
        (
            "400 Bad Request",  # llama.cpp
            {"error": {"code": 400, "message": "the request is too big", "type": "exceed_context_size_error"}},
            "context_exceeded",
        ),
        (
            "400 Bad Request",  # vLLM before 0.10
            {"object": "error", "message": "This model's maximum context length is 8 tokens.", "code": 400},
            "context_exceeded",
        ),
        ("404 Not Found", {"error": "model 'm' not found"}, "failed"),
        ("422 Unprocessable Entity", {"detail": [{"loc": ["body", "model"], "msg": "Field required"}]}, "failed"),
        ("400 Bad Request", [openai_error("API key not valid")], "failed"),
    ],
)
def test_refusals_are_classified(serve: Serve, status: str, body: object, expected: str) -> None:
    kind, message = failed(ask(serve(refusal(status, body)).url, OPENAI_API_KEY="sk-some-key"))
    assert kind == expected
    assert f"/v1/chat/completions answered {status[:3]}" in message


def test_the_message_quotes_the_server(serve: Serve) -> None:
    assert failed(ask(serve(refusal("404 Not Found", {"error": "model 'm' not found"})).url))[1].endswith(
        "answered 404: model 'm' not found"
    )
    assert "ends in /v1" in failed(ask(serve(refusal("404 Not Found", b"404 page not found")).url))[1]
    upstream = {"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "upstream is ill"}}}
    assert "Provider returned error (upstream is ill)" in failed(ask(serve(refusal("502 Bad", upstream)).url))[1]


def test_a_missing_key_is_named_and_a_quoted_key_is_masked(serve: Serve) -> None:
    server = serve(refusal("401 Unauthorized", openai_error("Wrong key: sk-very-secret")))
    assert "no key was sent: set OPENAI_API_KEY" in failed(ask(server.url))[1]
    heard = ask(server.url, OPENAI_API_KEY="sk-very-secret")
    assert "Wrong key: [key]" in failed(heard)[1]
    assert b"sk-very-secret" not in heard.stdout


@pytest.mark.parametrize(
    ("headers", "message", "expected"),
    [
        ({"Retry_After": "17"}, "Slow down", 17.0),
        ({"retry_after_ms": "1500", "Retry_After": "2"}, "Slow down", 1.5),
        ({}, "Rate limit reached. Please try again in 6s.", 6.0),
        ({}, "Slow down", None),
    ],
)
def test_a_limit_says_how_long_to_wait(
    serve: Serve, headers: dict[str, str], message: str, expected: float | None
) -> None:
    heard = ask(serve(refusal("429 Too Many Requests", openai_error(message), **headers)).url)
    assert failed(heard)[0] == "rate_limited"
    assert heard.metas("rate_limit")[0].get("retry_after") == expected


def test_a_limit_says_when_it_ends(serve: Serve) -> None:
    date = formatdate(time.time() + 120, usegmt=True)
    heard = ask(serve(refusal("429 Too Many Requests", openai_error("Slow down"), Retry_After=date)).url)
    assert 100 < heard.metas("rate_limit")[0]["retry_after"] <= 121
    limits = {"headers": {"X-RateLimit-Reset": "1800000000000"}}
    body = {"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-min", "metadata": limits}}
    heard = ask(serve(refusal("429 Too Many Requests", body)).url)
    assert heard.metas("rate_limit")[0]["resets_at"] == 1_800_000_000


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"error": {"code": 429, "message": "Slow down"}}, "rate_limited"),
        ({"error": {"code": 502, "message": "Provider disconnected"}}, "overloaded"),
        ({"error": {"code": "server_error", "message": "Provider disconnected"}}, "overloaded"),
        ({"error": "out of memory"}, "failed"),
    ],
)
def test_an_error_instead_of_an_answer_or_in_the_middle_of_one_is_reported(
    serve: Serve, error: object, expected: str
) -> None:
    heard = ask(serve([head(), delta(content="I beg"), event(error), DONE]).url)
    assert (heard.said(), failed(heard)[0]) == ("I beg", expected)
    data = msgspec.json.encode(error)
    assert failed(ask(serve([head(kind="application/json", Content_Length=str(len(data))), data]).url))[0] == expected


def test_a_content_filter_is_a_failure(serve: Serve) -> None:
    assert "content filter" in failed(ask(serve([head(), delta("content_filter"), DONE]).url))[1]


WHOLE = delta(content="words\nof ") + delta(content="the model 日本") + delta(content="語")


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (len(WHOLE), "words\nof the model 日本語"),
        (WHOLE.index("本".encode()) + 1, "words\nof "),  # within a character
        (WHOLE.index(b'"choices"', 200), "words\nof "),  # within a line of JSON
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_an_incomplete_answer_is_a_failure_but_its_text_is_kept(
    serve: Serve, cut: int, said: str, chunked: bool
) -> None:
    data = WHOLE[:cut]
    body = [head(Transfer_Encoding="chunked"), b"%x\r\n%s" % (len(WHOLE), data)] if chunked else [head(), data]
    heard = ask(serve(body).url)
    assert heard.said() == said
    assert "the answer is incomplete" in failed(heard)[1]


def test_an_incomplete_document_is_a_failure(serve: Serve) -> None:
    data = msgspec.json.encode({"choices": [{"message": {"content": "LOOP_COMPLETE"}, "finish_reason": "stop"}]})
    heard = ask(serve([head(kind="application/json", Content_Length=str(len(data))), data[:-9]]).url)
    assert heard.said() == ""
    assert "closed early" in failed(heard)[1]


@pytest.mark.parametrize("answer", [[], [head()], [head(Content_Length="0")]])
def test_no_answer_at_all_is_a_failure(serve: Serve, answer: list[bytes]) -> None:
    kind, message = failed(ask(serve(answer).url))
    assert kind == "failed"
    assert "closed the connection" in message


def test_a_server_of_another_kind_is_recognised(serve: Serve) -> None:
    heard = ask(serve([head(kind="text/html"), b"<!DOCTYPE html>\n<title>Open WebUI</title>\n" * 50]).url)
    assert "ends in /v1" in failed(heard)[1]
    assert len(heard.metas("parse_error")) <= 20
    assert "does not speak valid HTTP" in failed(ask(serve([b"SSH-2.0-OpenSSH_9.6\r\n"]).url))[1]


def test_a_redirect_is_not_followed(serve: Serve) -> None:
    moved = [head("301 Moved Permanently", Location="https://elsewhere.invalid/v1", Content_Length="0")]
    assert "redirects to https://elsewhere.invalid/v1: set OPENAI_BASE_URL" in failed(ask(serve(moved).url))[1]


def test_a_server_that_is_not_running_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kind, message = failed(ask(f"http://127.0.0.1:{port}/v1"))
    assert kind == "failed"
    assert "connection refused; is the server running?" in message
    assert "the host no-such-host.invalid is unknown" in failed(ask("http://no-such-host.invalid/v1"))[1]


def test_an_error_without_its_body_is_still_classified(serve: Serve) -> None:
    heard = ask(serve([head("503 Service Unavailable", Content_Length="100"), b'{"error', 0.2]).url)
    assert failed(heard)[0] == "overloaded"


def test_the_answer_of_a_server_that_stops_reading_the_request_is_reported(serve: Serve) -> None:
    body = refusal("413 Payload Too Large", {"error": "request entity too large"})
    server = serve(body, reads=False)
    assert failed(ask(server.url, "x" * 20_000_000))[0] == "context_exceeded"


@pytest.mark.parametrize(
    ("complaint", "expected"),
    [
        ({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}, [True]),
        (openai_error("This model does not support streaming: set stream to false"), [None]),
    ],
)
def test_a_server_that_rejects_an_option_is_asked_without_it(
    serve: Serve, complaint: object, expected: list[object]
) -> None:
    server = serve(
        refusal("422 Unprocessable Entity", complaint), [head(), delta(content="words"), delta("stop"), DONE]
    )
    heard = ask(server.url)
    assert (heard.code, heard.said()) == (0, "words")
    first, second = server.questions
    assert first.asked["stream_options"] == {"include_usage": True}
    assert "stream_options" not in second.asked
    assert [second.asked.get("stream")] == expected
    assert len(heard.metas("retry")) == 1


def test_simpler_requests_are_tried_only_once_each(serve: Serve) -> None:
    server = serve(refusal("400 Bad Request", openai_error("stream_options? stream? no")))
    assert failed(ask(server.url))[0] == "failed"
    assert len(server.questions) == 3
