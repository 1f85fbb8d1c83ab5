"""The errors of both of OpenAI's APIs."""

from __future__ import annotations

from ralph.testing.model.exchange import Refusal
from ralph.testing.model.script import Failure

_REFUSALS = {
    Failure.AUTH: (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    Failure.RATE_LIMIT: (429, "requests", "rate_limit_exceeded", "Rate limit reached. Please try again in 2s."),
    Failure.SERVER: (500, "server_error", "server_error", "The server had an error while processing your request."),
    Failure.QUOTA: (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    Failure.CONTEXT: (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens, but your messages resulted in 200000 tokens.",
    ),
}


def refusal(failure: Failure) -> Refusal:
    status, kind, code, message = _REFUSALS[failure]
    headers = {"retry-after": "2"} if failure is Failure.RATE_LIMIT else {}
    return Refusal(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, headers)
