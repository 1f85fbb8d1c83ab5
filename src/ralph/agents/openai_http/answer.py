"""The chunks of an answer into transcript events. Pure: no clock, no connection."""

from __future__ import annotations

from typing import Any

from ralph.agents.openai_http.errors import Failure, reported_in
from ralph.agents.openai_http.sse import End, Garbage, Item
from ralph.agents.openai_http.thinking import ThinkTags
from ralph.transcripts import meta
from ralph.transcripts.deltas import DeltaLines
from ralph.transcripts.events import Tag, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import get_count, get_dict, get_float, get_list, get_str

#: Lines that are no part of an answer are shown, but not all of somebody's web page.
_GARBAGE_SHOWN = 20
_GARBAGE_LENGTH = 2000
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")


class Answer:
    """Feed it what came; ask `end()` for the rest once nothing more comes."""

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
        #: `[DONE]` has come: nothing follows
        self.done = False
        #: why the model stopped; once it is known the answer is whole
        self.finish: str | None = None
        self.failure: Failure | None = None
        #: how much has come, to tell a slow answer from none
        self.characters = 0

    def feed(self, item: Item) -> list[TranscriptEvent]:
        if self.done or self.failure is not None:
            return []
        match item:
            case End.DONE:
                self.done = True
                return []
            case Garbage(line):
                self._garbage += 1
                if self._garbage > _GARBAGE_SHOWN:
                    return []
                return [meta.parse_error("the server sent what is no part of an answer", line[:_GARBAGE_LENGTH])]
            case dict():
                return self._chunk(item)

    def end(self, broken: str | None = None, key: str | None = None) -> list[TranscriptEvent]:
        """The rest, and the verdict. `broken` says how the connection failed, if it did; `key` is not to be quoted."""
        events = self._say(self._tags.flush()) + self._thoughts.flush() + self._words.flush()
        if self._usage:
            events.append(UsageEvent(_usage(self._usage, self._model)))
        if self.failure is None:
            self.failure = self._verdict(broken)
        if self.failure is not None:
            self.failure = self.failure.without(key)
            return events + self.failure.events()
        return [*events, *self._remarks(), meta.result(ok=True, reason=self.finish)]

    def _chunk(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        failure = reported_in(value)
        if failure is not None:
            self.failure = failure
            return []
        choices = value.get("choices")
        if not isinstance(choices, list) and not isinstance(value.get("usage"), dict):
            return [meta.unknown(value)]
        self._understood = True
        events = self._introduce(value)
        self._usage = get_dict(value, "usage") or self._usage
        first = choices[0] if isinstance(choices, list) and choices else None
        return events + self._choice(first) if isinstance(first, dict) else events

    def _introduce(self, value: dict[str, Any]) -> list[TranscriptEvent]:
        self._model = get_str(value, "model") or self._model
        if self._id is not None or not get_str(value, "id"):
            return []
        self._id = get_str(value, "id") or ""
        return [meta.session(self._id, self._model)]

    def _choice(self, choice: dict[str, Any]) -> list[TranscriptEvent]:
        whole = get_dict(choice, "message")
        delta = get_dict(choice, "delta") or whole
        self._usage = get_dict(choice, "usage") or self._usage  # Moonshot's place for it
        events = self._say(_thoughts(delta))
        for tag, text in _content(delta):
            events += self._say(self._tags.feed(text) if tag is Tag.AI else [(tag, text)])
        for call in get_list(delta, "tool_calls"):
            name = get_str(get_dict(call, "function"), "name")
            self._tools += [name] if name else []
        finish = get_str(choice, "finish_reason")
        self.finish = finish or self.finish or ("stop" if whole else None)
        return events

    def _say(self, pieces: list[tuple[Tag, str]]) -> list[TranscriptEvent]:
        events: list[TranscriptEvent] = []
        for tag, text in pieces:
            self.characters += len(text)
            here, other = (self._words, self._thoughts) if tag is Tag.AI else (self._thoughts, self._words)
            events += other.flush() + here.feed(text)
        return events

    def _verdict(self, broken: str | None) -> Failure | None:
        match self.finish:
            case "content_filter":
                return Failure("the provider's content filter ended the answer")
            case "error":
                return Failure("the provider ended the answer with an error that it does not name")
            case str():
                return None
        if self.done and self._understood:
            return None
        if self._understood or (broken and not self._garbage):
            why = broken or "the server ended it without saying that it is complete"
            return Failure(f"the answer was cut: {why}")
        if not self._garbage:
            return Failure("the server closed the connection without an answer")
        return Failure(
            "the server did not answer as an OpenAI-compatible endpoint does: "
            + (broken or "is OPENAI_BASE_URL right? It usually ends in /v1")
        )

    def _remarks(self) -> list[TranscriptEvent]:
        """What a good end should not hide."""
        remarks = []
        if self.finish == "length":
            remarks.append("the answer ends where the model's limit of tokens was reached")
        if self._tools:
            named = ", ".join(dict.fromkeys(self._tools))
            remarks.append(f"the model asked for tools ({named}), and this agent has none")
        return [meta.error(text, fatal=False) for text in remarks]


def _thoughts(delta: dict[str, Any]) -> list[tuple[Tag, str]]:
    """One of them: some servers send the same thought under two names."""
    text = get_str(delta, *_THOUGHTS)
    return [(Tag.THINK, text)] if text else []


def _content(delta: dict[str, Any]) -> list[tuple[Tag, str]]:
    """Mostly a string; a list of parts, of which some are thoughts; or why the model will not answer."""
    content = delta.get("content")
    if isinstance(content, list):
        return [piece for part in content if isinstance(part, dict) for piece in _part(part)]
    text = content if isinstance(content, str) and content else get_str(delta, "refusal")
    return [(Tag.AI, text)] if text else []


def _part(part: dict[str, Any]) -> list[tuple[Tag, str]]:
    inner = get_list(part, "thinking")
    if inner:  # Mistral's
        return [(Tag.THINK, text) for p in inner if (text := get_str(p, "text"))]
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
