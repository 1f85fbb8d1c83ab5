"""Turns the chunks of an answer into transcript events. Pure: no clock, no connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.agents.openai_http.errors import Failure, reported_in
from ralph.agents.openai_http.thinking import ThinkTags
from ralph.transcripts import meta
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import Tag, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_dict, get_float, get_list, get_str

if TYPE_CHECKING:
    from ralph.agents.openai_http.sse import Item

#: Show lines that do not belong to an answer, but not all of a web page.
_MOST_GARBAGE = 20
_GARBAGE_LENGTH = 2000
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")


class Answer:
    """Collects an answer. Call `feed` for each item and `end` once nothing more comes."""

    def __init__(self) -> None:
        self._words = DeltaLines(Tag.AI)
        self._thoughts = DeltaLines(Tag.THINK)
        self._tags = ThinkTags()
        self._usage: dict[str, Any] = {}
        self._model: str | None = None
        self._id: str | None = None
        self._tools: list[str] = []
        self._understood = False
        self._garbage = 0
        #: why the model stopped; once this is known, the text is complete
        self.finish: str | None = None
        #: the error that the server reported instead of the answer, or in the middle of it
        self.failure: Failure | None = None
        #: how much text has come, to show progress
        self.characters = 0

    def feed(self, item: Item) -> list[TranscriptEvent]:
        if self.failure is not None:
            return []
        if isinstance(item, dict):
            return self._chunk(item)
        self._garbage += 1
        if self._garbage > _MOST_GARBAGE:
            return []
        return [meta.parse_error("this is not part of an answer", item[:_GARBAGE_LENGTH])]

    def end(self, broken: str | None = None, *, done: bool = False) -> list[TranscriptEvent]:
        """Return the remaining events, and a result unless `failure` is set now.

        `broken` says why the connection failed, if it did. `done` says that the server marked the end.
        """
        events = self._show(self._tags.flush()) + self._thoughts.flush() + self._words.flush()
        if self._usage:
            events.append(UsageEvent(_usage(self._usage, self._model)))
        self.failure = self.failure or self._verdict(broken, done=done)
        if self.failure is None:
            events += [*self._warnings(), meta.result(ok=True, reason=self.finish)]
        return events

    def _chunk(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self.failure = reported_in(value)
        if self.failure is not None:
            return []
        choices = value.get("choices")
        if not isinstance(choices, list) and not isinstance(value.get("usage"), dict):
            return [meta.unknown(value)]
        self._understood = True
        events: list[TranscriptEvent] = []
        self._model = get_str(value, "model") or self._model
        if self._id is None and (answer_id := get_str(value, "id")):
            self._id = answer_id
            events.append(meta.session(answer_id, self._model))
        self._usage = get_dict(value, "usage") or self._usage
        first = next(iter(get_list(value, "choices")), None)
        return events + self._choice(first) if isinstance(first, dict) else events

    def _choice(self, choice: dict[str, Any]) -> list[TranscriptEvent]:
        whole = get_dict(choice, "message")
        delta = get_dict(choice, "delta") or whole
        self._usage = get_dict(choice, "usage") or self._usage  # where Moonshot sends it
        # Some servers send the same thought under two names.
        thought = get_str(delta, *_THOUGHTS)
        events = self._show([(Tag.THINK, thought)]) if thought else []
        for tag, text in _content(delta):
            events += self._show(self._tags.feed(text) if tag is Tag.AI else [(tag, text)])
        calls = (get_str(get_dict(call, "function"), "name") for call in get_list(delta, "tool_calls"))
        self._tools += [name for name in calls if name]
        self.finish = get_str(choice, "finish_reason") or self.finish or ("stop" if whole else None)
        return events

    def _show(self, pieces: list[tuple[Tag, str]]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        for tag, text in pieces:
            self.characters += len(text)
            here, other = (self._words, self._thoughts) if tag is Tag.AI else (self._thoughts, self._words)
            events += other.flush() + here.feed(text)
        return events

    def _verdict(self, broken: str | None, *, done: bool) -> Failure | None:
        match self.finish:
            case "content_filter":
                return Failure("the provider's content filter stopped the answer")
            case "error":
                return Failure("the provider stopped the answer with an unknown error")
            case str():
                return None
        if done and self._understood:
            return None
        if self._understood or (broken and not self._garbage):
            return Failure(f"the answer is incomplete: {broken or 'the server closed the connection early'}")
        if not self._garbage:
            return Failure("the server closed the connection without an answer")
        hint = broken or "check OPENAI_BASE_URL, which usually ends in /v1"
        return Failure(f"the server is not an OpenAI-compatible endpoint: {hint}")

    def _warnings(self) -> list[TranscriptEvent]:
        """What the user should know although the answer is complete."""
        warnings = []
        if self.finish == "length":
            warnings.append("the answer was cut off at the model's token limit")
        if self._tools:
            names = ", ".join(dict.fromkeys(self._tools))
            warnings.append(f"the model called tools ({names}), but this agent has none")
        return [meta.error(text, fatal=False) for text in warnings]


def _content(delta: dict[str, Any]) -> list[tuple[Tag, str]]:
    """The content is a string or a list of parts, some of them thoughts. A refusal has a field of its own."""
    parts = get_list(delta, "content")
    if parts:
        return [piece for part in parts for piece in _part(part)]
    text = get_str(delta, "content", "refusal")
    return [(Tag.AI, text)] if text else []


def _part(part: Any) -> list[tuple[Tag, str]]:
    thoughts = get_list(part, "thinking")  # Mistral
    if thoughts:
        return [(Tag.THINK, text) for one in thoughts if (text := get_str(one, "text"))]
    text = get_str(part, "text")
    return [(Tag.AI, text)] if text else []


def _usage(given: dict[str, Any], model: str | None) -> Usage:
    prompt = get_dict(given, "prompt_tokens_details")
    completion = get_dict(given, "completion_tokens_details")
    cached = get_count(prompt, "cached_tokens")
    return Usage(
        get_count(given, "prompt_tokens"),
        get_count(given, "completion_tokens"),
        get_count(given, "total_tokens"),
        model,
        get_count(given, "prompt_cache_hit_tokens") if cached is None else cached,
        get_count(prompt, "cache_write_tokens"),
        get_count(completion, "reasoning_tokens"),
        get_float(given, "cost"),
    )
