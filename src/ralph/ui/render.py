"""Events to lines of text, readable without colour."""

from __future__ import annotations

from typing import Any

from ralph.config.durations import format_duration
from ralph.system.terminal import MAX_SHOWN, safe
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
from ralph.transcripts.meta import Kind

_TOOL_LINES = 12
#: More tools at once, or longer names, are nobody's honest ones.
_OPEN_TOOLS = 1000
_NAME = 200
_SIGNS = {ToolStatus.OK: "✓ ok", ToolStatus.FAIL: "✗ failed", ToolStatus.UNKNOWN: "· ended"}


class Renderer:
    """Gives (label, text) pairs; the console puts them on lines. Keeps what it needs of open tools only."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[str, int]] = {}

    def _keep(self, tool_id: str, name: str, shown: int) -> None:
        """An agent that opens tools and never ends them does not fill the memory: the oldest is forgotten."""
        if len(self._tools) >= _OPEN_TOOLS and tool_id not in self._tools:
            del self._tools[next(iter(self._tools))]
        self._tools[tool_id] = (name[:_NAME], shown)

    def lines(self, event: TranscriptEvent) -> list[tuple[str, str]]:
        # Words are by far the most; matching takes long to say no.
        if type(event) is Text:
            return _text(event)
        try:
            return self._other(event)  # type: ignore[arg-type]
        except RecursionError:
            return [("SYS", "an event that is nested too deeply to be shown; it is in the journal")]

    def _other(self, event: ToolOutput | ToolStart | ToolEnd | UsageEvent | Meta) -> list[tuple[str, str]]:
        match event:
            case ToolOutput(tool=tool, text=text):
                return self._output(tool.id, text)
            case ToolStart(tool=tool):
                self._keep(tool.id[:_NAME], tool.name, 0)
                return [("TOOL", f"{safe(tool.name)}{_input(tool.input)}")]
            case ToolEnd(tool=tool):
                key = tool.id[:_NAME]
                alone = len(self._tools) == 1 and key in self._tools  # right below its start: no need to name it again
                name, shown = self._tools.pop(key, (tool.name or "", 0))
                return _tool_end("" if alone else name, tool.status, tool.duration_ms, shown)
            case UsageEvent():
                return []
            case Meta(meta=fields):
                # Whatever a field holds, and whoever wrote it: nothing of it may control the terminal.
                return [(safe(label), safe(text)) for label, text in _meta(fields)]

    def _output(self, tool_id: str, text: str) -> list[tuple[str, str]]:
        tool_id = tool_id[:_NAME]
        name, shown = self._tools.get(tool_id, ("", 0))
        lines = text.rstrip("\n").split("\n")
        room = max(0, _TOOL_LINES - shown)
        self._keep(tool_id, name, shown + len(lines))
        return [("TOOL", "  │ " + safe(line)) for line in lines[:room]]


def _text(event: Text) -> list[tuple[str, str]]:
    tag, text = event.tag, event.text  # the tag is a string itself
    if "\n" not in text:
        return [(tag, text if len(text) <= MAX_SHOWN and text.isprintable() else safe(text))]
    return [(tag, safe(line.removesuffix("\r"))) for line in text.rstrip("\n").split("\n")]


def _input(value: dict[str, Any] | None) -> str:
    """The one thing that says what a tool does, else all of it."""
    if not value:
        return ""
    for key in ("command", "cmd", "file_path", "path", "filePath", "pattern", "query", "url", "description"):
        if isinstance(value.get(key), str):
            return " " + safe(value[key].strip().replace("\n", " ⏎ ")[:300])
    return " " + safe(", ".join(f"{k}={v}" for k, v in value.items())[:300].replace("\n", " ⏎ "))


def _tool_end(name: str, status: ToolStatus, duration_ms: int | None, shown: int) -> list[tuple[str, str]]:
    sign = _SIGNS[status]
    took = f" in {format_duration(duration_ms / 1000)}" if duration_ms is not None and duration_ms >= 100 else ""
    more = f" ({shown - _TOOL_LINES} more lines of output in the journal)" if shown > _TOOL_LINES else ""
    return [("TOOL", f"  {sign}{took}{' · ' + safe(name) if name else ''}{more}")]


def _meta(fields: dict[str, Any]) -> list[tuple[str, str]]:
    match fields.get("kind"):
        case Kind.RUN_START | Kind.RUN_RESUME:
            return _run_start(fields)
        case Kind.ITERATION_START:
            of = f" of {fields['max']}" if fields.get("max") else ""
            who = f", {fields['agent']}" if fields.get("fallback") else ""
            return [
                ("", ""),
                ("HEAD", f"Iteration {fields.get('n')}{of}{who}"),
                (
                    "PROMPT",
                    f"{_number(fields.get('prompt_chars'))} characters from {fields.get('prompt_from')}",
                ),
            ]
        case Kind.ITERATION_END:
            return _iteration_end(fields)
        case Kind.VERIFY:
            return _verify(fields)
        case Kind.WAIT:
            return [
                ("RALPH", f"waiting {_time(fields.get('seconds'))}, until {fields.get('at')} ({fields.get('why')})")
            ]
        case Kind.PAUSE:
            if fields.get("state") == "paused":
                return [("RALPH", f"paused; in another terminal, `{fields.get('go_on')}` lets it go on")]
            return [("RALPH", f"going on after a pause of {_time(fields.get('seconds'))}")]
        case Kind.STEER:
            return _steer(fields)
        case Kind.RUN_END:
            return _run_end(fields)
        case Kind.VERDICT:
            return _verdict(fields)
        case Kind.NOTICE:
            return [("SYS", line) for line in str(fields.get("text")).splitlines()]
        case Kind.EVENT:
            target = f" to {fields['target']}" if fields.get("target") else ""
            payload = " ⏎ ".join(str(fields.get("payload") or "").split("\n"))
            return [("EVENT", f"{fields.get('topic')}{target}{': ' + payload if payload else ''}")]
        case Kind.RETRY:
            return [("SYS", f"retrying: {fields.get('message')}")]
        case Kind.ERROR:
            return [("SYS", f"error ({fields.get('class')}): {fields.get('message')}")]
        case Kind.RATE_LIMIT:
            return [("SYS", f"rate limit: {fields.get('message') or 'reached'}")]
        case Kind.PARSE_ERROR:
            return [("SYS", f"not understood: {fields.get('message')}")]
        case _:
            return []


def _run_start(fields: dict[str, Any]) -> list[tuple[str, str]]:
    version = f" {fields['version']}" if fields.get("version") else ""
    cwd = fields.get("cwd")
    past = ""
    if fields.get("kind") == Kind.RUN_RESUME:
        how = str(fields.get("after")).replace("_", " ")
        past = f", gone on with after iteration {fields.get('iterations')} ({how})"
    return [
        ("HEAD", f"ralph run {fields.get('run')}{past}"),
        (
            "SYS",
            f"agent {fields.get('agent')}{version} · transcript {fields.get('transcript')} · in {cwd}",
        ),
        ("SYS", f"limits: {fields.get('limits')}"),
    ]


def _iteration_end(fields: dict[str, Any]) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for callout in ("plan", "actions", "report"):
        if fields.get(callout):
            lines.append((callout.upper(), str(fields[callout])))
    what = str(fields.get("outcome"))
    if fields.get("outcome") != "ok":
        what += f": {fields.get('why')}"
    facts = [f"iteration {fields.get('n')} {what}"]
    if "seconds" in fields:  # not of one that was cut short
        facts += [_time(fields["seconds"]), str(fields.get("progress"))]
    lines.append(("RALPH", " · ".join(facts)))
    lines.append(("RALPH", f"→ {fields.get('next')}"))
    return lines


def _steer(fields: dict[str, Any]) -> list[tuple[str, str]]:
    match fields.get("state"):
        case "arrived":
            what = "for the next prompt"
        case "read":
            what = "was read, and is done with"
        case _:
            what = "was dropped"
    first, *more = str(fields.get("text")).strip().split("\n")
    return [("STEER", f"note {what}: {first}{f' … ({len(more)} more lines)' if more else ''}")]


def _verify(fields: dict[str, Any]) -> list[tuple[str, str]]:
    sign, how = ("✓", "passes") if fields.get("ok") else ("✗", f"fails: {fields.get('why')}")
    when = "before the run" if fields.get("baseline") else "now"
    lines = [("VERIFY", f"{sign} {fields.get('command')} · {when} it {how} · {_time(fields.get('seconds'))}")]
    if fields.get("note"):
        lines.append(("VERIFY", f"  {fields['note']}"))
    if not fields.get("ok") and not fields.get("baseline"):
        tail = str(fields.get("tail") or "").splitlines()[-_TOOL_LINES:]
        lines += [("VERIFY", f"  │ {line}") for line in tail]
    return lines


def _verdict(fields: dict[str, Any]) -> list[tuple[str, str]]:
    usage = ", ".join(f"{k} {v}" for k, v in _table(fields.get("usage")).items()) or "unknown"
    tools = ", ".join(f"{v} {k}" for k, v in _table(fields.get("tools")).items())
    done = "complete" if fields.get("completed") else "not complete"
    session = fields.get("session_id") or "unknown"
    return [
        ("RALPH", f"{fields.get('outcome')}, {done}: {fields.get('why')}"),
        ("RALPH", f"tools: {tools} · usage: {usage} · session: {session}"),
    ]


def _run_end(fields: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("", ""),
        (
            "HEAD",
            f"{str(fields.get('end')).replace('_', ' ').capitalize()} (exit code {fields.get('exit_code')})",
        ),
    ]
    summary = _table(fields.get("summary"))
    width = max((len(name) for name in summary), default=0)
    for name, value in summary.items():
        lines += [(f"{'' if n else name:<{width}}", part) for n, part in enumerate(str(value).split("\n"))]
    return lines


def _table(value: Any) -> dict[str, Any]:
    """A journal may be anybody's: what should be a table need not be one."""
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "?"


def _time(value: Any) -> str:
    return format_duration(value) if isinstance(value, int | float) and 0 <= value < 1e15 else "?"
