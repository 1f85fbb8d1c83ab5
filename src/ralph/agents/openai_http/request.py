"""The request, and simpler forms of it for servers that do not support everything."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec


class Form(Enum):
    """How to ask for the answer, best form first. The values complete "asking for the answer …"."""

    STREAM_WITH_USAGE = "as a stream with usage"
    STREAM = "as a stream"
    WHOLE = "in one piece"


def body(model: str, prompt: str, form: Form) -> bytes:
    request: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    if form is not Form.WHOLE:
        request["stream"] = True
    if form is Form.STREAM_WITH_USAGE:
        request["stream_options"] = {"include_usage": True}
    return msgspec.json.encode(request)


def simpler(form: Form, status: int, answer: bytes) -> Form | None:
    """Return the form to try next if the server rejected this one: not every server knows `stream_options`."""
    if status not in (400, 404, 405, 422, 501):
        return None
    words = answer.lower()
    if form is Form.STREAM_WITH_USAGE and (b"stream_options" in words or b"include_usage" in words):
        return Form.STREAM
    return Form.WHOLE if form is not Form.WHOLE and b"stream" in words else None
