"""Codex's `--json` since 0.44: threads, turns and items; and the form of 0.4x that came before it."""

from __future__ import annotations

from typing import Any

from ralph.agents.codex.calls import Call
from ralph.agents.codex.errors import classify_message, limit, retry
from ralph.agents.codex.fields import arguments, checklist, content_text, token_counts, tool_name
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolStatus, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_dict, get_int, get_list, get_str, get_text, is_not_text
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.recent import Recent, RecentCalls

_WORDS = {"agent_message": Tag.AI, "assistant_message": Tag.AI, "reasoning": Tag.THINK, "plan": Tag.THINK}
_TOOLS = frozenset({"command_execution", "file_change", "web_search", "image_view", "image_generation"})
_STATUS = {"completed": ToolStatus.OK, "failed": ToolStatus.FAIL, "declined": ToolStatus.FAIL}


class ThreadItems:
    """Translates the objects that have a `type`."""

    def __init__(self) -> None:
        self._turn_open = False
        #: a turn has ended, and no other has begun
        self._turn_ended = False
        #: the model, if the log names it
        self._model: str | None = None
        self._error: tuple[str, ErrorClass] | None = None
        #: why Codex is trying again, if nothing has come since
        self._retrying: tuple[str, ErrorClass] | None = None
        self._session = False
        self._tools = RecentCalls()
        self._partial = Recent[str, Text]()
        self._plan = ""
        self._refused = ""
        self._counted: dict[str, int] = {}

    def knows(self, value: dict[str, Any]) -> bool:
        name = get_str(value, "type") or ""
        return name in ("error", "session.created") or name.startswith(("thread.", "turn.", "item."))

    def feed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        name = get_str(value, "type")
        if name != "error":
            self._retrying = None
        match name:
            case "item.started" | "item.updated" | "item.completed":
                return self._item(value, name)
            case "turn.started":
                self._turn_open, self._turn_ended = True, False
                return []
            case "turn.completed":
                return self._turn_completed(value)
            case "turn.failed":
                return self._turn_failed(value)
            case "thread.started" | "session.created":
                return self._thread_started(value)
            case "error":
                return self._error_line(value)
        return [meta.unknown(value)]

    def flush(self) -> list[TranscriptEvent]:
        """What began and never ended. A turn without an end is a failure whatever the exit code."""
        events: list[TranscriptEvent] = list(self._partial.values())
        self._partial.clear()
        error = self._error or (self._retrying if self._turn_open else None)
        if error is not None:
            events += [*limit(*error), meta.error(*error)]
        elif self._turn_open:
            events.append(meta.error("the output ends without a result", ErrorClass.FAILED))
        self._turn_open, self._error, self._retrying = False, None, None
        return events

    # -- threads and turns

    def _thread_started(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        # If no turn ends after this, the output was cut; but 0.4x has no turns.
        self._turn_open = value.get("type") == "thread.started"
        name = get_str(value, "thread_id", "session_id")
        if name is None or self._session:
            return []
        self._session = True
        return [meta.session(name)]

    def answer(self, used: Usage) -> list[TranscriptEvent]:
        """What the log reports of an answer. If that comes after the end of the turn, the turn's total has it."""
        self._model = used.model or self._model
        return [UsageEvent(used)] if used.interim and not self._turn_ended else []

    def _turn_completed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._turn_open, self._turn_ended, self._error = False, True, None
        result = meta.result(ok=True)
        if self._refused:
            reason = f"Codex was not allowed to run: {self._refused}"
            result = meta.result(ok=False, reason=reason, error_class=ErrorClass.PERMISSION_DENIED)
        return [*self._usage(get_dict(value, "usage")), result]

    def _turn_failed(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._turn_open, self._turn_ended, self._error = False, True, None
        message = get_str(get_dict(value, "error"), "message") or get_str(value, "message", "error")
        message = message or "the turn failed"
        kind = classify_message(message)
        result = meta.result(ok=False, reason=message, error_class=kind)
        return [*self._usage(get_dict(value, "usage")), *limit(message, kind), result]

    def _error_line(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        message = get_str(value, "message") or get_str(get_dict(value, "error"), "message")
        message = message or "an error without a message"
        again = retry(message)
        if again is not None:
            cause = again.meta.get("class")
            self._retrying = (message, ErrorClass(cause)) if cause else None
            return [Text(Tag.SYS, message), again]
        kind = classify_message(message)
        # `turn.failed` repeats it. Only without one does this decide the outcome.
        self._error = (message, kind)
        return [Text(Tag.SYS, message), meta.error(message, kind, fatal=False)]

    def _usage(self, usage: dict[str, Any]) -> list[TranscriptEvent]:
        """The counts are of the whole thread, so the ones reported before are subtracted.

        After a resume they still include earlier runs. By how much, this output does not say.
        """
        counts = token_counts(usage)
        more = {name: count - self._counted.get(name, 0) for name, count in counts.items()}
        more = {name: count if count >= 0 else counts[name] for name, count in more.items()}
        self._counted |= counts
        return [UsageEvent(Usage(**more, model=self._model))] if more else []

    # -- items

    def _item(self, value: dict[str, Any], event: str) -> list[TranscriptEvent]:
        item = get_dict(value, "item")
        name = get_str(item, "type", "item_type") or ""  # 0.4x has an `item_type`
        key = get_str(item, "id") or name
        completed = event == "item.completed"
        if name in _WORDS:
            return self._text(item, _WORDS[name], key, completed)
        if name == "todo_list":
            return self._todo(item)
        if name == "error":
            message = get_str(item, "message", "text") or "a warning without a message"
            return [Text(Tag.SYS, message), meta.error(message, fatal=False)] if completed else []
        if name not in _TOOLS and not name.endswith("_tool_call"):
            return [meta.unknown(value)]
        if event == "item.updated":
            return []
        if get_str(item, "id") is None and self._tools.get(key, "") is None:
            del self._tools[key]  # without an id, it can only be another call
        events = [] if key in self._tools else self._start(item, name, key)
        return events + self._end(item, key) if completed else events

    def _text(self, item: dict[str, Any], tag: Tag, key: str, completed: bool) -> list[TranscriptEvent]:
        """A message or a thought. One that still grows waits until it is complete."""
        text = get_text(item, "text", "message", "content", "summary")
        if completed:
            self._partial.pop(key, None)
            if text is None:
                return [meta.unknown(item)] if is_not_text(item, "text", "message", "content", "summary") else []
            return [Text(tag, text.removesuffix("\n"))]
        if text:
            self._partial[key] = Text(tag, text)
        return []

    def _todo(self, item: dict[str, Any]) -> list[TranscriptEvent]:
        plan = checklist(get_list(item, "items"))
        if not plan or plan == self._plan:
            return []
        self._plan = plan
        return [Text(Tag.SYS, plan)]

    def _start(self, item: dict[str, Any], name: str, key: str) -> list[TranscriptEvent]:
        tool, given = _call(item, name)
        self._tools.begin(key, tool)
        return [Call(key, tool).start(given)]

    def _end(self, item: dict[str, Any], key: str) -> list[TranscriptEvent]:
        started_as = self._tools[key]
        if started_as is None:
            return []  # it has already ended
        self._tools[key] = None
        call = Call(key, started_as)
        status = _status(item)
        if get_str(item, "status") == "declined":
            self._refused = get_str(item, "command") or call.name
        elif status is ToolStatus.OK:
            self._refused = ""  # Codex found another way
        events: list[TranscriptEvent] = []
        output = _output(item)
        if output:
            events.append(call.output(output.removesuffix("\n")))
        events.append(call.end(status, get_count(item, "duration_ms")))
        return events


def _call(item: dict[str, Any], name: str) -> tuple[str, dict[str, Any] | None]:
    """The name and the input of a tool."""
    match name:
        case "command_execution":
            return "shell", {"command": item.get("command")}
        case "file_change":
            return "apply_patch", {"changes": get_list(item, "changes")}
        case "mcp_tool_call":
            return tool_name(item) or name, arguments(item)
        case "web_search":
            return name, {"query": item.get("query")}
        case "collab_tool_call":
            return get_str(item, "tool") or name, {"prompt": item["prompt"]} if get_str(item, "prompt") else None
    return name, {k: v for k, v in item.items() if k not in ("id", "type", "item_type", "status")} or None


def _status(item: dict[str, Any]) -> ToolStatus:
    name, code = get_str(item, "status"), get_int(item, "exit_code")
    status = _STATUS.get(name or "", ToolStatus.UNKNOWN)
    if code is not None:
        return ToolStatus.FAIL if code or status is ToolStatus.FAIL else ToolStatus.OK
    if name is None:
        return ToolStatus.FAIL if item.get("error") else ToolStatus.OK
    return status


def _output(item: dict[str, Any]) -> str:
    return (
        get_str(item, "aggregated_output", "output")
        or get_str(get_dict(item, "error"), "message")
        or get_str(item, "error")
        or content_text(get_dict(item, "result"))
    )
