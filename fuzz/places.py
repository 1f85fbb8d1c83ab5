"""Where the agent's own text is in each format. Text in any other place is not the agent's own.

The places come from what the CLIs print, not from what the adapters make of it. A place is written as the keys that
lead to a text, each object with its discriminators: `<message|assistant>.content`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = (
    "type", "subtype", "item_type", "contentType", "role", "sessionUpdate", "event", "method", "say", "kind", "jsonrpc",
)  # fmt: skip
_CLAUDE = (
    r"<stream_event>\..*<text(_delta)?>\.text",
    r"<assistant>\..*<text>\.text",
    r"<result\|?\w*>\.result",
)
_ACP = r".*<agent_message_chunk>\.content<text>\.text"
OWN: dict[str, tuple[str, ...]] = {
    "amp": _CLAUDE,
    "claude": _CLAUDE,
    "cline": (r".*\.(text|accumulated)", _ACP),
    "codex": (r".*<(agent|assistant)_message(_delta)?>\..*", r".*\.last_agent_message"),
    "copilot": (r"<assistant\.message(_delta)?>\.data\.(content|deltaContent)",),
    "cursor": (r"<assistant>\..*", r"<result\|?\w*>\.result"),
    "droid": (r"<message\|assistant>\.text", r"<completion>\.finalText", _ACP),
    "gemini": (r"<message\|assistant>\.content",),
    "goose": (_ACP, r"<message>\.message<assistant>\.content\[\]<text>\.text"),
    "grok": (r"<text>\.data", r"<result\|?\w*>\.result", r"\.text"),
    "kimi": (r"<assistant>\.content(\[\]<text>\.text)?", _ACP),
    "opencode": (r"<text>\.part<text>\.text",),
    "pi": (r".*<text_(start|delta|end)>\.(delta|content)", r".*<assistant>\.content\[\]<text>\.text"),
    "qwen": _CLAUDE,
    "vibe": (r"<message\|assistant>\.content\[\]<text>\.text",),
}


class Place(msgspec.Struct, frozen=True):
    """A text inside a JSON value: the object or list that holds it, its key there, and how one gets there."""

    holder: Any
    key: Any
    name: str


def places(value: Any, name: str = "") -> Iterator[Place]:
    """Every text in a JSON value, except the discriminators of objects."""
    if isinstance(value, dict):
        kinds = [value[kind] for kind in _KINDS if kind != "jsonrpc" and isinstance(value.get(kind), str)]
        name += f"<{'|'.join(kinds)}>" if kinds else ""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inside:
        here = f"{name}[]" if isinstance(value, list) else f"{name}.{key}"
        if isinstance(one, dict | list):
            yield from places(one, here)
        elif isinstance(one, str) and key not in _KINDS:
            yield Place(value, key, here)


def is_own(adapter: str, place: Place) -> bool:
    return any(re.fullmatch(own, place.name) for own in OWN[adapter])
