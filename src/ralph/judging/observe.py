"""A summary of the events of one iteration. Its size does not grow with the transcript."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec

from ralph.judging.signals import FinalMessage, Markers, SignalReader
from ralph.judging.usage import UsageCount
from ralph.transcripts import recent
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolEnd,
    ToolOutput,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
)
from ralph.transcripts.meta import ErrorClass, Kind

if TYPE_CHECKING:
    from ralph.judging.costs import Cost, CostOf

#: In the year 5138. A later time is a mistake.
_LATEST = 1e11
#: A longer name is not a real one.
_NAME = 200
_UNNAMED = "tool"


class ToolCounts(msgspec.Struct):
    started: int = 0
    ok: int = 0
    fail: int = 0
    unknown: int = 0


def _is_time(value: Any) -> TypeGuard[int | float]:
    """Whether a number that an agent reports can be a time in seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST


class Observation:
    """Feed it every event of an iteration, in order."""

    def __init__(
        self,
        markers: Markers | SignalReader,
        cost_of: CostOf | None = None,
        before: Usage | None = None,
        prompt: str | None = None,
    ) -> None:
        """`prompt` is what the agent was told, which plain output may repeat.

        `before` is what a resumed session reported before, if it will report it again.
        """
        self.prompt = prompt
        self._used = UsageCount(cost_of, before)
        self.message: SignalReader = FinalMessage(markers) if isinstance(markers, Markers) else markers
        self.spoke = False
        self._answer = 0  # checksum of the words since the last event of another kind, however they were split
        self._new_answer = False
        self.plan = ""
        self.tools = ToolCounts()
        self.tool_names: Counter[str] = Counter()
        self.tool_ms = 0
        self.open_tools: dict[str, str] = recent.Recent[str, str]()
        self._ended_tools = recent.RecentKeys[str]()
        self.model: str | None = None
        self.session_id: str | None = None
        self.error: dict[str, Any] | None = None
        self.result: dict[str, Any] | None = None
        self.resets_at: float | None = None
        self.retry_after: float | None = None
        #: the CLI's own retry, until anything follows it
        self.retrying: dict[str, Any] | None = None

    @property
    def usage(self) -> Usage:
        """What was used so far. It is a lower bound until the agent reports its own total."""
        return self._used.total

    @property
    def usage_seen(self) -> bool:
        return self._used.seen

    @property
    def reported(self) -> Usage:
        """The usage as the agent reported it."""
        return self._used.reported

    @property
    def cost(self) -> Cost:
        return self._used.cost

    @property
    def spent(self) -> Usage:
        """The usage, with its cost from the price table if the agent reports none."""
        return msgspec.structs.replace(self.usage, cost_usd=self.cost.usd)

    def used(self, *, cut_short: bool) -> Usage:
        """What the iteration used: a lower bound if it was cut short before the agent reported its end."""
        unknown = cut_short and self.usage_seen and self.result is None
        return msgspec.structs.replace(self.spent, at_least=True) if unknown else self.spent

    @property
    def reported_error(self) -> bool:
        """Whether the agent's CLI itself reported an error."""
        return self.error is not None or (self.result is not None and self.result.get("ok") is False)

    @property
    def finished(self) -> bool:
        """The agent reported its result, or it waits for a login that nobody will do."""
        needs_login = self.error is not None and self.error.get("class") == ErrorClass.AUTH
        return (self.result is not None or needs_login) and not self.open_tools

    @property
    def answer(self) -> str | None:
        """Equal for equal final messages; None if the agent wrote nothing."""
        return f"{self._answer:08x}" if self.spoke else None

    def feed(self, events: list[TranscriptEvent]) -> None:
        words: list[str] = []  # consecutive words: joining them costs a third of handling each
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
                self._other_text(event)  # type: ignore[arg-type]
            else:
                self._other(event)
        if words:
            self._words(words)

    def _words(self, words: list[str]) -> None:
        if type(self.message) is FinalMessage:
            self.message.feed("\n".join(words))
        else:  # a dialect's reader gets them unjoined
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

    def _other_text(self, event: Text) -> None:
        if event.tag is Tag.THINK:
            if not self.plan:
                self.plan = event.text.strip().partition("\n")[0][:200]
        elif event.tag in (Tag.PROMPT, Tag.USER):
            self._boundary(event.text)

    def _boundary(self, text: str = "") -> None:
        self.message.boundary(text)
        self._new_answer = True

    def _other(self, event: TranscriptEvent) -> None:
        match event:
            case ToolStart(tool=tool):
                self._tool_start(tool.id[:_NAME], tool.name)
            case ToolEnd(tool=tool):
                self._tool_end(tool)
                self._boundary()
            case UsageEvent(usage=usage):
                self._used.add(usage, self.model)
            case Meta(meta=fields):
                self._meta(fields)

    def _tool_start(self, call: str, name: str) -> None:
        self.retrying = None
        self._boundary()
        if call in self.open_tools:
            return  # reported twice
        self.tools.started += 1
        self._count(name)
        self.open_tools[call] = name[:_NAME]
        self._ended_tools.discard(call)

    def _tool_end(self, tool: ToolResult) -> None:
        """The end of the call with that id. One that never started counts as a call; one that has ended does not."""
        call = tool.id[:_NAME]
        if self.open_tools.pop(call, None) is None:
            if call in self._ended_tools:
                return
            self.tools.started += 1
            self._count(tool.name or _UNNAMED)
        self._ended_tools.add(call)
        match tool.status:
            case ToolStatus.OK:
                self.tools.ok += 1
            case ToolStatus.FAIL:
                self.tools.fail += 1
            case _:
                self.tools.unknown += 1
        self.tool_ms += tool.duration_ms or 0

    def _count(self, name: str) -> None:
        self.tool_names[name[:_NAME]] += 1
        if len(self.tool_names) > recent.KEPT:  # an agent that invents names: keep those used most
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
                    self.error = None  # it recovered
            case Kind.RETRY:
                self.retrying = fields
            case Kind.RATE_LIMIT:
                resets, after = fields.get("resets_at"), fields.get("retry_after")
                self.resets_at = float(resets) if _is_time(resets) else self.resets_at
                self.retry_after = float(after) if _is_time(after) else self.retry_after
