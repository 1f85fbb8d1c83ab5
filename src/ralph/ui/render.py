"""Events come in, (label, text) pairs go out: one for each line on the screen, readable without colour."""

from __future__ import annotations

from typing import Any

from ralph.config.durations import format_duration
from ralph.system.terminal import MAX_SHOWN, safe
from ralph.system.text import count
from ralph.transcripts.events import (
    Meta,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    UsageEvent,
)
from ralph.ui.meta_lines import meta_lines

_TOOL_LINES = 12
#: No honest agent has more tools open at once, or longer names.
_OPEN_TOOLS = 1000
_NAME = 200
_SIGNS = {ToolStatus.OK: "✓ ok", ToolStatus.FAIL: "✗ failed", ToolStatus.UNKNOWN: "· ended"}


class Renderer:
    """Renders the events of one stream. It remembers nothing but the tools that are open."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[str, int]] = {}

    def _keep(self, tool_id: str, name: str, shown: int) -> None:
        """Tools that never end must not fill the memory, so the oldest is dropped."""
        if len(self._tools) >= _OPEN_TOOLS and tool_id not in self._tools:
            del self._tools[next(iter(self._tools))]
        self._tools[tool_id] = (name[:_NAME], shown)

    def lines(self, event: TranscriptEvent) -> list[tuple[str, str]]:
        """The lines for an event, safe for a terminal."""
        # Most events are text, and `match` is slow.
        if type(event) is Text:
            return _text(event)
        try:
            return self._other(event)  # type: ignore[arg-type]
        except RecursionError:
            return [("SYS", "an event is nested too deeply to be shown; the journal has it")]

    def _other(self, event: ToolOutput | ToolStart | ToolEnd | UsageEvent | Meta) -> list[tuple[str, str]]:
        match event:
            case ToolOutput(tool=tool, text=text):
                return self._output(tool.id, text)
            case ToolStart(tool=tool):
                self._keep(tool.id[:_NAME], tool.name, 0)
                return [("TOOL", f"{safe(tool.name)}{_input(tool.input)}")]
            case ToolEnd(tool=tool):
                key = tool.id[:_NAME]
                alone = len(self._tools) == 1 and key in self._tools  # its start is right above
                name, shown = self._tools.pop(key, (tool.name or "", 0))
                return _tool_end("" if alone else name, tool.status, tool.duration_ms, shown)
            case UsageEvent():
                return []
            case Meta(meta=fields):
                return [(safe(label), safe(text)) for label, text in meta_lines(fields)]

    def _output(self, tool_id: str, text: str) -> list[tuple[str, str]]:
        tool_id = tool_id[:_NAME]
        name, shown = self._tools.get(tool_id, ("", 0))
        lines = text.rstrip("\n").split("\n")
        room = max(0, _TOOL_LINES - shown)
        self._keep(tool_id, name, shown + len(lines))
        return [("TOOL", "  │ " + safe(line)) for line in lines[:room]]


def _text(event: Text) -> list[tuple[str, str]]:
    tag, text = event.tag, event.text  # a tag is a string
    if "\n" not in text:
        return [(tag, text if len(text) <= MAX_SHOWN and text.isprintable() else safe(text))]
    return [(tag, safe(line.removesuffix("\r"))) for line in text.rstrip("\n").split("\n")]


def _input(value: dict[str, Any] | None) -> str:
    """The argument that tells most about what a tool does, or all of them."""
    if not value:
        return ""
    for key in ("command", "cmd", "file_path", "path", "filePath", "pattern", "query", "url", "description"):
        if isinstance(value.get(key), str):
            return " " + safe(value[key].strip().replace("\n", " ⏎ ")[:300])
    return " " + safe(", ".join(f"{k}={v}" for k, v in value.items())[:300].replace("\n", " ⏎ "))


def _tool_end(name: str, status: ToolStatus, duration_ms: int | None, shown: int) -> list[tuple[str, str]]:
    sign = _SIGNS[status]
    took = f" in {format_duration(duration_ms / 1000)}" if duration_ms is not None and duration_ms >= 100 else ""
    hidden = shown - _TOOL_LINES
    more = f" ({count(hidden, 'more line')} of output in the journal)" if hidden > 0 else ""
    return [("TOOL", f"  {sign}{took}{' · ' + safe(name) if name else ''}{more}")]
