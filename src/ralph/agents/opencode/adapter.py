"""opencode and its forks (kilo): `run --format json`, one finished part a line, and the text for people.

There are no deltas, no first and no last event: a run is over when a step ends for another reason than tool calls.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

from ralph.agents.opencode.parts import (
    Cache,
    Line,
    Part,
    State,
    Time,
    Tokens,
    decode_line,
    lenient,
    text_of,
    whole_number,
)
from ralph.agents.opencode.ui import UiLines, error_class, is_refusal
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.classify import retry_after
from ralph.transcripts.events import (
    Meta,
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
from ralph.transcripts.json_lines import JsonAdapter, Usual, get_dict, get_int, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount
from ralph.transcripts.recent import Recent, RecentKeys

#: How every line begins: one that does and is no JSON was cut, even if it is the only one.
_OPENING = '{"type":"'
_CUT = "the output ends without a result"
#: Why a step may end so that the run is over, but not well.
_BAD_REASONS = {
    "length": "the model's answer was cut at its output limit",
    "content-filter": "the provider's content filter stopped the answer",
    "error": "the model's answer ended in an error",
}
_KNOWN = ("text", "tool_use", "step_start", "step_finish", "reasoning", "error", "retry")
_NO_PART, _NO_TOKENS, _NO_CACHE = Part(), Tokens(), Cache()
_LIMITS = (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED)


class OpencodeAdapter(JsonAdapter):
    name = "opencode"
    capabilities = Capabilities(supports_roles=True, supports_tool_events=True, supports_usage_events=True)

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._session = ""
        self._seen = RecentKeys[str]()  # parts that came whole: a later change of one comes as the same event again
        self._open = RecentKeys[str]()
        self._stdout = UiLines()
        self._stderr = UiLines(stderr=True)
        self._calls = 0
        self._refused = Recent[str, str]()  # by tool: one that was allowed after all is not missed
        # where the run stands, for the end of the output
        self._failed = False
        self._ended = False
        self._cut = False
        self._reason: str | None = None
        self._in_step = self._step_words = self._step_tools = False

    def recognises(self, value: dict[str, Any]) -> bool:
        return isinstance(value.get("type"), str) and ("sessionID" in value or isinstance(value.get("part"), dict))

    def on_text(self, line: str) -> list[TranscriptEvent]:
        if self.structured:
            return [Text(Tag.SYS, line)]
        self._cut = False
        tag, text, told = self._stdout.read(line)
        return [Text(tag, text), *told]

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        _, text, told = self._stderr.read(line)
        return [Text(Tag.SYS, text), *told]

    def usual(self) -> Usual | None:
        return decode_line, self._usual

    def _usual(self, line: Line, events: list[TranscriptEvent]) -> bool:
        if not self.structured and line.part is None and type(line.session) is not str:
            return False
        if not self._event(line, events):
            return False
        self.structured = True
        return True

    def on_object(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.structured = True
        events: list[TranscriptEvent] = []
        return events if self._event(lenient(value), events) else [meta.unknown(value)]

    def _event(self, line: Line, events: list[TranscriptEvent]) -> bool:
        """False if the type of the line is not known."""
        if not self._session and line.type in _KNOWN and type(line.session) is str and line.session:
            self._session = line.session
            events.append(meta.session(line.session))
        part = line.part or _NO_PART
        match line.type:
            case "step_start":
                self._in_step, self._step_words, self._step_tools = True, False, False
                self._ended = False
            case "text":
                self._words(part, Tag.AI, events)
            case "tool_use":
                self._tool(part, events)
            case "step_finish":
                self._step_finish(part, events)
            case "reasoning":
                self._words(part, Tag.THINK, events)
            case "error":
                events += self._error(line.error)
            case "retry":
                message = _message(part.error)
                events.append(meta.retry(message, error_class(message), attempt=whole_number(part.attempt)))
            case _:
                return False  # a session that only this line names is named by the next one
        return True

    def flush(self) -> list[TranscriptEvent]:
        events = super().flush()
        if not self.structured:
            return [*events, meta.error(_CUT)] if self._cut else events
        if self._ended:
            return events
        if self._refused:
            # A refused call ends the run where it is, with exit code 0.
            events.append(self._result())
        elif self._failed:
            pass  # the error was told
        elif self._in_step:
            # Some versions lose the last `step_finish`: whole words without it are an end, nothing at all is not.
            if not self._step_words or self._cut:
                events.append(meta.error(_CUT))
        elif self._reason == "stop":
            events.append(self._result())
        elif self._reason == "tool-calls":
            events.append(meta.error(_CUT))
        return events

    def _broken(self, line: str, reason: str) -> list[TranscriptEvent]:
        events = super()._broken(line, reason)
        self._cut = self.structured or line.startswith(_OPENING)
        return events

    def _words(self, part: Part, tag: Tag, events: list[TranscriptEvent]) -> None:
        text = part.text
        if type(text) is not str or not text or self._again(part.id):
            return
        if part.synthetic is True or (part.session is not None and part.session != self._session):
            tag = Tag.SYS  # the CLI put it there, or a subagent's session
        elif tag is Tag.AI:
            self._step_words = True
        self._ended = False
        events.append(Text(tag, text.removesuffix("\n")))

    def _tool(self, part: Part, events: list[TranscriptEvent]) -> None:
        state = part.state or State()
        call = part.call if type(part.call) is str and part.call else part.id
        if type(call) is not str:
            self._calls += 1
            call = f"call-{self._calls}"
        key = part.id if type(part.id) is str else call
        if key in self._seen:
            return
        name = part.tool if type(part.tool) is str and part.tool else "tool"
        unavailable = name == "invalid"  # what a call to a tool that is not there is turned into
        if unavailable:
            name = get_str(state.input, "tool") or name
        self._step_tools, self._ended = True, False
        if key not in self._open:
            events.append(ToolStart(ToolCall(call, name, state.input if type(state.input) is dict else None)))
        if state.status == "running" or state.status == "pending":
            self._open.add(key)
            return
        self._open.discard(key)
        self._seen.add(key)
        error = text_of(state.error)
        output = error or text_of(state.output)
        if output:
            events.append(ToolOutput(ToolRef(call, name), output))
        result = ToolStatus.FAIL if unavailable else _status(state)
        if error and is_refusal(error):
            self._refused[name] = error
        elif self._refused and result is ToolStatus.OK:
            self._refused.pop(name, None)
        events.append(ToolEnd(ToolResult(call, result, _duration(state.time), name)))

    def _step_finish(self, part: Part, events: list[TranscriptEvent]) -> None:
        if self._again(part.id):
            return
        self._in_step = False
        self._reason = reason = part.reason if type(part.reason) is str else None
        usage = _usage(part)
        if usage is not None:
            events.append(UsageEvent(usage))
        if reason in _BAD_REASONS:
            self._ended = True
            events.append(meta.result(ok=False, reason=_BAD_REASONS[reason], error_class=ErrorClass.FAILED))
        elif reason == "stop" and not self._step_tools:
            # With tool calls in the step, "stop" is a provider's slip and another step follows.
            events.append(self._result())

    def _result(self) -> Meta:
        self._ended = True
        if self._refused:
            reason = next(iter(self._refused.values()))
            return meta.result(ok=False, reason=reason, error_class=ErrorClass.PERMISSION_DENIED)
        self._failed = False
        return meta.result(ok=True, reason=self._reason)

    def _error(self, error: Any) -> list[TranscriptEvent]:
        self._failed = True
        message = _message(error)
        data = get_dict(error, "data")
        kind = error_class(message, get_str(error, "name"), get_int(data, "statusCode"))
        events: list[TranscriptEvent] = [Text(Tag.SYS, message)]
        wait = _wait(get_dict(data, "responseHeaders"), message) if kind in _LIMITS else None
        if wait is not None:
            events.append(meta.rate_limit(message=message, **wait))
        events.append(meta.error(message, kind))
        return events

    def _again(self, key: Any) -> bool:
        if type(key) is not str:
            return False
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def _status(state: State) -> ToolStatus:
    if state.status == "completed":
        # A command is "completed" whatever its exit code; null is one that a signal ended.
        return ToolStatus.OK if state.metadata.exit == 0 else ToolStatus.FAIL
    return ToolStatus.FAIL if state.status == "error" else ToolStatus.UNKNOWN


def _duration(time: Time) -> int | None:
    start, end = whole_number(time.start), whole_number(time.end)
    return end - start if start is not None and end is not None and end >= start else None


def _told_within(part: Part, total: int | None, written: int | None) -> bool:
    """Whether the input may hold the cached tokens, as it does in 1.0.61 unless the provider is Anthropic.

    Its steps have neither a total nor, in a repository, a snapshot; those of 1.1.31 have the latter.
    """
    return total is None and not written and part.snapshot is None


def _usage(part: Part) -> Usage | None:
    """One step's tokens. opencode counts cached ones apart from the input, newer versions reasoning apart too."""
    tokens = part.tokens or _NO_TOKENS
    cache = tokens.cache or _NO_CACHE
    read, written = whole_number(cache.read), whole_number(cache.write)
    prompt, output = whole_number(tokens.input), whole_number(tokens.output)
    reasoning, total = whole_number(tokens.reasoning), whole_number(tokens.total)
    if prompt is not None and not (_told_within(part, total, written) and prompt >= (read or 0)):
        prompt += (read or 0) + (written or 0)
    if output is not None and reasoning and total == (prompt or 0) + output + reasoning:
        output += reasoning
    # A model whose price opencode does not know costs 0: that is no number.
    cost = float(part.cost) if type(part.cost) in (int, float) and 0 < part.cost < 1e9 else None
    if prompt is None and output is None and total is None and cost is None:
        return None
    return Usage(prompt, output, total, None, read, written, reasoning, cost)


def _message(error: Any) -> str:
    if isinstance(error, str):
        return error
    return get_str(get_dict(error, "data"), "message") or get_str(error, "message", "name") or "opencode failed"


def _wait(headers: dict[str, Any], message: str) -> dict[str, float] | None:
    """When to come back: what the provider's headers say, else what its message says."""
    lower = {key.lower(): value for key, value in headers.items() if isinstance(value, str)}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        given = lower.get(name)
        if given is None:
            continue
        if given.replace(".", "", 1).isdecimal():
            return {"retry_after": amount(given) / unit}
        try:
            return {"resets_at": parsedate_to_datetime(given).timestamp()}
        except (ValueError, OverflowError):
            continue
    seconds = retry_after(message)
    return None if seconds is None else {"retry_after": seconds}


ADAPTER = OpencodeAdapter
