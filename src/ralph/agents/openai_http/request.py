"""What is asked, and how to ask for less when a server does not know the rest."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec


class Form(Enum):
    """The best first."""

    STREAM_WITH_USAGE = "with usage"
    STREAM = "streamed"
    WHOLE = "in one piece"


def body(model: str, prompt: str, form: Form) -> bytes:
    asked: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    if form is not Form.WHOLE:
        asked["stream"] = True
    if form is Form.STREAM_WITH_USAGE:
        asked["stream_options"] = {"include_usage": True}
    return msgspec.json.encode(asked)


def weaker(form: Form, status: int, answer: bytes) -> Form | None:
    """What to ask instead, if it was the form that a server refused: not every one knows `stream_options`."""
    if status not in (400, 404, 405, 422, 501):
        return None
    words = answer.lower()
    if form is Form.STREAM_WITH_USAGE and (b"stream_options" in words or b"include_usage" in words):
        return Form.STREAM
    return Form.WHOLE if form is not Form.WHOLE and b"stream" in words else None
