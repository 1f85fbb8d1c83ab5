"""Codex's `--json` of today (0.44 and later): threads, turns and items; and its forerunner of 0.4x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.agents.codex.errors import classify_message, limit, retry
from ralph.transcripts import meta
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
)
from ralph.transcripts.json_lines import Usual, get_count, get_dict, get_int, get_list, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable

_COUNTS = {
    "prompt_tokens": "input_tokens",  # includes the cached ones
    "cached_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "completion_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}
_WORDS = {"agent_message": Tag.AI, "assistant_message": Tag.AI, "reasoning": Tag.THINK, "plan": Tag.THINK}
_TOOLS = frozenset({"command_execution", "file_change", "web_search", "image_view", "image_generation"})
_STATUS = {
    "completed": ToolStatus.OK,
    "failed": ToolStatus.FAIL,
    "declined": ToolStatus.FAIL,
    "in_progress": ToolStatus.UNKNOWN,
}


class _Item(msgspec.Struct, gc=False):
    id: str
    type: str
    text: str | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    status: str | None = None
    duration_ms: int | None = None


class _Line(msgspec.Struct, gc=False):
    type: str
    item: _Item | None = None


_decode = msgspec.json.Decoder(_Line).decode


class ThreadItems:
    """Translates the objects that have a `type`, one run at a time."""

    def __init__(self) -> None:
        self._turn_open = False
        #: whether any line was of this format
        self.used = False
        self._error: tuple[str, ErrorClass] | None = None
        #: what it is trying again for, if nothing has come since
        self._retrying: tuple[str, ErrorClass] | None = None
        self._session = False
        self._tools = Recent[str, str]()
        self._partial = Recent[str, Text]()
        self._plan = ""
        self._refused = ""
        self._counted: dict[str, int] = {}
        self._handlers: dict[str, Callable[[dict[str, Any]], list[TranscriptEvent]]] = {
            "item.completed": self._item_completed,
            "item.started": self._item_started,
            "item.updated": self._item_updated,
            "turn.started": self._turn_started,
            "turn.completed": self._turn_completed,
            "turn.failed": self._turn_failed,
            "thread.started": self._thread_started,
            "session.created": self._thread_started,
            "error": self._error_line,
        }

    def feed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.used = True
        name = value.get("type")
        handler = self._handlers.get(name) if isinstance(name, str) else None
        if name != "error":
            self._retrying = None
        return handler(value) if handler else [meta.unknown(value)]

    @property
    def usual(self) -> Usual:
        """What reads items of the common kinds, decoded straight into their fields."""
        return _decode, self._usual

    def _usual(self, line: _Line, events: list[TranscriptEvent]) -> bool:
        item = line.item
        if item is None:
            return False
        if line.type == "item.started":
            if item.type != "command_execution" or item.id in self._tools:
                return False
            self._retrying = None
            self._tools[item.id] = "shell"
            events.append(ToolStart(ToolCall(item.id, "shell", {"command": item.command})))
            return True
        if line.type != "item.completed":
            return False
        tag = _WORDS.get(item.type)
        if tag is not None:
            if not item.text or self._partial:
                return False
            self._retrying = None
            events.append(Text(tag, item.text.removesuffix("\n")))
            return True
        if item.type != "command_execution" or item.status == "declined" or self._tools.pop(item.id, None) is None:
            return False
        self._retrying = None
        code = item.exit_code
        if code is None:
            status = _STATUS.get(item.status or "", ToolStatus.UNKNOWN)
        else:
            status = ToolStatus.FAIL if code or item.status == "failed" else ToolStatus.OK
        if status is ToolStatus.OK:
            self._refused = ""
        if item.aggregated_output:
            events.append(ToolOutput(ToolRef(item.id, "shell"), item.aggregated_output.removesuffix("\n")))
        events.append(ToolEnd(ToolResult(item.id, status, item.duration_ms, "shell")))
        return True

    def knows(self, value: dict[str, Any]) -> bool:
        name = value.get("type")
        return isinstance(name, str) and (name in self._handlers or name.startswith(("thread.", "turn.", "item.")))

    def flush(self) -> list[TranscriptEvent]:
        """What began and never ended; a turn without an end is a failure whatever the exit code."""
        events: list[TranscriptEvent] = list(self._partial.values())
        self._partial.clear()
        told = self._error or (self._retrying if self._turn_open else None)
        if told is not None:
            events += [*limit(*told), meta.error(*told)]
        elif self._turn_open:
            events.append(meta.error("the output ends without a result", ErrorClass.FAILED))
        self._turn_open, self._error, self._retrying = False, None, None
        return events

    # -- threads and turns

    def _thread_started(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        # A thread that began, and no turn that ended: the output was cut, unless it is of 0.4x, which has no turns.
        self._turn_open = value.get("type") == "thread.started"
        name = get_str(value, "thread_id", "session_id")
        if name is None or self._session:
            return []
        self._session = True
        return [meta.session(name)]

    def _turn_started(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._turn_open = True
        return []

    def _turn_completed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._turn_open, self._error = False, None
        events = self._usage(get_dict(value, "usage"))
        if self._refused:
            reason = f"Codex was not allowed to run: {self._refused}"
            events.append(meta.result(ok=False, reason=reason, error_class=ErrorClass.PERMISSION_DENIED))
        else:
            events.append(meta.result(ok=True))
        return events

    def _turn_failed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._turn_open, self._error = False, None
        message = (
            get_str(get_dict(value, "error"), "message") or get_str(value, "message", "error") or "the turn failed"
        )
        kind = classify_message(message)
        result = meta.result(ok=False, reason=message, error_class=kind)
        return [*self._usage(get_dict(value, "usage")), *limit(message, kind), result]

    def _error_line(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = (
            get_str(value, "message") or get_str(get_dict(value, "error"), "message") or "an error without a message"
        )
        again = retry(message)
        if again is not None:
            cause = again.meta.get("class")
            self._retrying = (message, ErrorClass(cause)) if cause else None
            return [Text(Tag.SYS, message), again]
        kind = classify_message(message)
        # `turn.failed` says it again; only if that never comes is this the last word.
        self._error = (message, kind)
        return [Text(Tag.SYS, message), meta.error(message, kind, fatal=False)]

    def _usage(self, usage: dict[str, Any]) -> list[TranscriptEvent]:
        """The numbers count the whole thread: what this stream said before is taken off.

        After a resume they still hold what earlier runs used. How much that was is not in this output.
        """
        counts: dict[str, int] = {}
        for ours, theirs in _COUNTS.items():
            number = get_count(usage, theirs)
            if number is not None:
                before = self._counted.get(ours, 0)
                counts[ours] = number - before if number >= before else number
                self._counted[ours] = number
        return [UsageEvent(Usage(**counts))] if counts else []  # type: ignore[arg-type]

    # -- items

    def _item_started(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        item, name, key = _identify(value)
        if name in _WORDS:
            return self._hold(item, name, key)
        if name == "todo_list":
            return self._todo(item)
        if name == "error" or key in self._tools:
            return []
        return self._start(item, name, key) if _is_tool(name) else [meta.unknown(value)]

    def _item_updated(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        item, name, key = _identify(value)
        if name in _WORDS:
            return self._hold(item, name, key)
        return self._todo(item) if name == "todo_list" else []

    def _item_completed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        item, name, key = _identify(value)
        tag = _WORDS.get(name)
        if tag is not None:
            if self._partial:
                self._partial.pop(key, None)
            text = get_str(item, "text", "message")
            return [Text(tag, text.removesuffix("\n"))] if text else []
        match name:
            case "todo_list":
                return self._todo(item)
            case "error":
                message = get_str(item, "message", "text") or "a warning without a message"
                return [Text(Tag.SYS, message), meta.error(message, fatal=False)]
            case _ if not _is_tool(name):
                return [meta.unknown(value)]
        events = [] if key in self._tools else self._start(item, name, key)
        return events + self._end(item, name, key)

    def _hold(self, item: dict[str, Any], name: str, key: str) -> list[TranscriptEvent]:
        """Words that are still growing: they come whole when they are completed."""
        text = get_str(item, "text", "message")
        if text:
            self._partial[key] = Text(_WORDS[name], text)
        return []

    def _todo(self, item: dict[str, Any]) -> list[TranscriptEvent]:
        lines = [
            f"[{'x' if step.get('completed') is True else ' '}] {get_str(step, 'text', 'step') or ''}"
            for step in get_list(item, "items")
            if isinstance(step, dict)
        ]
        plan = "\n".join(lines)
        if not plan or plan == self._plan:
            return []
        self._plan = plan
        return [Text(Tag.SYS, plan)]

    def _start(self, item: dict[str, Any], name: str, key: str) -> list[TranscriptEvent]:
        tool, given = _call(item, name)
        self._tools[key] = tool
        return [ToolStart(ToolCall(key, tool, given))]

    def _end(self, item: dict[str, Any], name: str, key: str) -> list[TranscriptEvent]:
        tool = self._tools.pop(key, name)
        said = get_str(item, "status")
        status = _STATUS.get(said, ToolStatus.UNKNOWN) if said else ToolStatus.UNKNOWN
        code = get_int(item, "exit_code")
        if code is not None:
            status = ToolStatus.FAIL if code or status is ToolStatus.FAIL else ToolStatus.OK
        elif said is None:
            status = ToolStatus.FAIL if item.get("error") else ToolStatus.OK
        if said == "declined":
            self._refused = get_str(item, "command") or tool
        elif status is ToolStatus.OK:
            self._refused = ""  # it found another way
        events: list[TranscriptEvent] = []
        text = _output(item)
        if text:
            events.append(ToolOutput(ToolRef(key, tool), text.removesuffix("\n")))
        events.append(ToolEnd(ToolResult(key, status, get_count(item, "duration_ms"), tool)))
        return events


def _is_tool(name: str) -> bool:
    return name in _TOOLS or name.endswith("_tool_call")


def _identify(value: dict[str, Any]) -> tuple[dict[str, Any], str, str]:
    """The item, its type (0.4x calls that `item_type`) and its id."""
    item = get_dict(value, "item")
    name = get_str(item, "type", "item_type") or ""
    return item, name, get_str(item, "id") or name


def _call(item: dict[str, Any], name: str) -> tuple[str, dict[str, Any] | None]:
    match name:
        case "command_execution":
            return "shell", {"command": item.get("command")}
        case "file_change":
            return "apply_patch", {"changes": get_list(item, "changes")}
        case "mcp_tool_call":
            arguments = item.get("arguments")
            tool = ".".join(part for part in (get_str(item, "server"), get_str(item, "tool")) if part)
            return tool or name, arguments if isinstance(arguments, dict) else None
        case "web_search":
            return name, {"query": item.get("query")}
        case "collab_tool_call":
            return get_str(item, "tool") or name, {"prompt": item["prompt"]} if get_str(item, "prompt") else None
        case _:
            return name, {k: v for k, v in item.items() if k not in ("id", "type", "item_type", "status")} or None


def _output(item: dict[str, Any]) -> str | None:
    text = get_str(item, "aggregated_output", "output")
    if text:
        return text
    wrong = get_str(get_dict(item, "error"), "message") or get_str(item, "error")
    if wrong:
        return wrong
    parts = [get_str(part, "text") for part in get_list(get_dict(item, "result"), "content")]
    return "\n".join(part for part in parts if part) or None
