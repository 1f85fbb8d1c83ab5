"""What the events of one iteration add up to. Its size does not grow with the transcript."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any, TypeGuard

import msgspec

from ralph.judging.costs import Cost, CostOf
from ralph.judging.signals import FinalMessage, Markers, SignalReader
from ralph.transcripts import recent
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
)
from ralph.transcripts.meta import Kind

_TAIL = 2000
#: In the year 5138. Whoever names a later time does not mean it.
_LATEST = 1e11
#: Longer names are nobody's honest ones.
_NAME = 200


class ToolCounts(msgspec.Struct):
    started: int = 0
    ok: int = 0
    fail: int = 0
    unknown: int = 0


def add_usage(total: Usage, more: Usage) -> Usage:
    """Sums what is known; what nobody gave stays None."""
    return Usage(
        prompt_tokens=_both(total.prompt_tokens, more.prompt_tokens),
        completion_tokens=_both(total.completion_tokens, more.completion_tokens),
        total_tokens=_both(known_total(total), known_total(more)),
        model=more.model or total.model,
        cached_tokens=_both(total.cached_tokens, more.cached_tokens),
        cache_write_tokens=_both(total.cache_write_tokens, more.cache_write_tokens),
        reasoning_tokens=_both(total.reasoning_tokens, more.reasoning_tokens),
        cost_usd=_both(total.cost_usd, more.cost_usd),
    )


def _is_time(value: Any) -> TypeGuard[int | float]:
    """Seconds that lead to a date which can be written, in an agent's words that may hold any number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST


def _both(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def subtract_usage(total: Usage, known: Usage) -> Usage:
    """What came on top of what is known already; unchanged if the total cannot hold it."""
    left = {
        name: value - (getattr(known, name) or 0)
        for name in Usage.__struct_fields__
        if isinstance(value := getattr(total, name), int | float)
    }
    return total if any(value < 0 for value in left.values()) else msgspec.structs.replace(total, **left)


def known_total(usage: Usage) -> int | None:
    """All tokens, as given or as the sum of both sides."""
    if usage.total_tokens is not None:
        return usage.total_tokens
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return None
    return (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)


class Observation:
    """Feed it every event of an iteration, in order."""

    def __init__(
        self, markers: Markers | SignalReader, cost_of: CostOf | None = None, before: Usage | None = None
    ) -> None:
        #: what a resumed session had told before, if it will tell it again
        self._before = before
        #: the usage as the agent told it
        self.told = Usage()
        self.message: SignalReader = FinalMessage(markers) if isinstance(markers, Markers) else markers
        self.spoke = False
        self.last_words = ""
        self._answer = 0  # of the words since anything else happened, however they came in pieces
        self._new_answer = False
        self.plan = ""
        self.tools = ToolCounts()
        self.tool_names: Counter[str] = Counter()
        self.tool_ms = 0
        self.open_tools: dict[str, str] = recent.Recent[str, str]()
        self.usage = Usage()
        self.usage_seen = False
        self.cost = Cost(cost_of)
        self.model: str | None = None
        self.session_id: str | None = None
        self.error: dict[str, Any] | None = None
        self.result: dict[str, Any] | None = None
        self.resets_at: float | None = None
        self.retry_after: float | None = None
        self.parse_errors = 0
        #: the CLI's own retry that nothing has followed yet
        self.retrying: dict[str, Any] | None = None

    @property
    def spent(self) -> Usage:
        """The usage, with its cost by the price table if the agent names none."""
        return msgspec.structs.replace(self.usage, cost_usd=self.cost.usd)

    @property
    def answer(self) -> str | None:
        """Equal for equal final messages; None if there were no words."""
        return f"{self._answer:08x}" if self.spoke else None

    def feed(self, events: list[TranscriptEvent]) -> None:
        words: list[str] = []  # those that nothing came between: taken together they cost a third
        for event in events:
            kind = type(event)
            if kind is Text:
                if event.tag is Tag.AI:  # type: ignore[union-attr]
                    words.append(event.text)  # type: ignore[union-attr]
                    continue
            elif kind is ToolOutput:
                continue
            if words:
                self._words(words)
                words = []
            if kind is Text:
                self._not_said(event)  # type: ignore[arg-type]
            else:
                self._other(event)
        if words:
            self._words(words)

    def _words(self, words: list[str]) -> None:
        if type(self.message) is FinalMessage:
            self.message.feed("\n".join(words))
        else:  # the reader of a convention gets them as they came
            for text in words:
                self.message.feed(text)
        spoken = [text for text in words if text and not text.isspace()]
        if not spoken:
            return
        self.spoke = True
        self.retrying = None
        if self._new_answer:
            self._answer, self._new_answer = 0, False
        self._answer = zlib.crc32("".join(spoken).encode("utf-8", "surrogatepass"), self._answer)
        last = spoken[-1]
        self.last_words = last if len(last) <= _TAIL else last[-_TAIL:]

    def _not_said(self, event: Text) -> None:
        if event.tag is Tag.THINK:
            if not self.plan:
                self.plan = event.text.strip().partition("\n")[0][:200]
        elif event.tag in (Tag.PROMPT, Tag.USER):
            self._boundary()

    def _boundary(self) -> None:
        self.message.boundary()
        self._new_answer = True

    def _other(self, event: TranscriptEvent) -> None:
        match event:
            case ToolStart(tool=tool):
                self.tools.started += 1
                self.retrying = None
                self._count(tool.name)
                self.open_tools[tool.id[:_NAME]] = tool.name[:_NAME]
                self._boundary()
            case ToolEnd(tool=tool):
                if self.open_tools.pop(tool.id[:_NAME], None) is None and tool.name:
                    self._count(tool.name)
                match tool.status:
                    case ToolStatus.OK:
                        self.tools.ok += 1
                    case ToolStatus.FAIL:
                        self.tools.fail += 1
                    case _:
                        self.tools.unknown += 1
                self.tool_ms += tool.duration_ms or 0
                self._boundary()
            case UsageEvent(usage=usage):
                self.told = add_usage(self.told, usage)
                if self._before is not None:
                    usage, self._before = subtract_usage(usage, self._before), None
                self.usage = add_usage(self.usage, usage)
                self.usage_seen = True
                self.cost.add(usage if usage.model else msgspec.structs.replace(usage, model=self.model))
            case Meta(meta=fields):
                self._meta(fields)

    def _count(self, name: str) -> None:
        self.tool_names[name[:_NAME]] += 1
        if len(self.tool_names) > recent.KEPT:  # names that an agent makes up: those used most are told
            self.tool_names = Counter(dict(self.tool_names.most_common(recent.KEPT // 2)))

    def _meta(self, fields: dict[str, Any]) -> None:
        match fields.get("kind"):
            case Kind.SESSION:
                session = fields.get("session_id")
                self.session_id = session if isinstance(session, str) else self.session_id
                model = fields.get("model")
                self.model = model if isinstance(model, str) else self.model
            case Kind.ERROR if fields.get("fatal", True):
                self.error = fields
            case Kind.RESULT:
                self.result = fields
                if fields.get("ok") is True:
                    self.error = None  # it got over it
            case Kind.RETRY:
                self.retrying = fields
            case Kind.RATE_LIMIT:
                resets, after = fields.get("resets_at"), fields.get("retry_after")
                self.resets_at = float(resets) if _is_time(resets) else self.resets_at
                self.retry_after = float(after) if _is_time(after) else self.retry_after
            case Kind.PARSE_ERROR:
                self.parse_errors += 1
