"""Fatal errors, and when a limit ends."""

from __future__ import annotations

import pytest

from ralph.transcripts import meta
from ralph.transcripts.classify import classify, is_unreachable
from ralph.transcripts.errors import fatal_error
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json import errors as stream_json


@pytest.mark.parametrize("kind", [ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED])
def test_a_limit_reports_how_long_to_wait(kind: ErrorClass) -> None:
    message = "Slow down, retry in 2s."
    assert fatal_error(message, kind) == [meta.rate_limit(message=message, retry_after=2.0), meta.error(message, kind)]
    assert fatal_error("Slow down.", kind) == [meta.error("Slow down.", kind)]


def test_other_errors_never_report_a_wait() -> None:
    message = "The build broke, retry in 2s."
    assert fatal_error(message, ErrorClass.FAILED) == [meta.error(message, ErrorClass.FAILED)]


@pytest.mark.parametrize(
    "message",
    [
        "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)",  # Claude Code
        "API Error: Can't reach the API server — check your internet or DNS (ENOTFOUND)",
        "Could not connect to local model provider at http://127.0.0.1:1/v1.",  # Copilot
        "error sending request for url (http://127.0.0.1:500/v1): tcp connect error: Connection refused (os error 111)",
        "getaddrinfo EAI_AGAIN api.example.com",
        "request failed: dns error: failed to lookup address information: Name or service not known",
        "connect ECONNREFUSED 127.0.0.1:503",
        "[API Error: server error: no route to host]",
        "Unable to connect. Is the computer able to access the url?",
    ],
)
def test_a_provider_that_cannot_be_reached_is_not_overloaded(message: str) -> None:
    assert classify(message) is ErrorClass.FAILED
    assert stream_json.error_class(message, "server_error") is ErrorClass.FAILED
    assert is_unreachable(message)


def test_a_server_that_answers_is_judged_by_its_answer() -> None:
    assert classify("upstream connect error: connection refused", 503) is ErrorClass.OVERLOADED
    assert classify("Internal server error") is ErrorClass.OVERLOADED
    assert not is_unreachable("502 Bad Gateway")
