"""A request and an answer, independent of any API, so that one scenario works with all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ralph.testing.model.script import Failure, Usage

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ModelRequest:
    """What the scripts need to know about a request."""

    model: str = ""
    #: the text of the user's last message
    prompt: str = ""
    #: the number of tool results since then
    results: int = 0
    #: the JSON schema of each tool, by name
    tools: dict[str, Json] = field(default_factory=dict)
    stream: bool = False
    #: the JSON schema that the answer must have, if the request sets one
    schema: Json | None = None


@dataclass(frozen=True)
class ToolCall:
    """A call in the form that the agent's own tool takes."""

    id: str
    name: str
    arguments: Json

    @property
    def text(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Reply:
    """What the model answers."""

    model: str
    thinking: str
    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage


@dataclass(frozen=True)
class Event:
    """One server-sent event; `data` is JSON or, for `[DONE]`, bare text."""

    data: Json | str
    name: str = ""

    def encode(self) -> bytes:
        head = f"event: {self.name}\n" if self.name else ""
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        return f"{head}data: {data}\n\n".encode()


@dataclass(frozen=True)
class Refusal:
    """An API's error response."""

    status: int
    body: Json
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Api:
    """Reads the requests and writes the responses of one provider's API. Pure functions, no I/O."""

    name: str
    read: Callable[[str, Json], ModelRequest]
    whole: Callable[[Reply], Json]
    events: Callable[[Reply], Iterator[Event]]
    refusal: Callable[[Failure], Refusal]


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex[:20]}"


def pieces(text: str, size: int = 12) -> Iterator[str]:
    """The pieces of a streamed text: short, so that a marker is split; but only about 40 of them."""
    size = max(size, len(text) // 40)
    for start in range(0, len(text), size):
        yield text[start : start + size]


def objects(value: object) -> list[Json]:
    """The JSON objects in what should be a list of them."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def words(content: object, joint: str = "\n") -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return joint.join(p["text"] for p in objects(content) if isinstance(p.get("text"), str))
