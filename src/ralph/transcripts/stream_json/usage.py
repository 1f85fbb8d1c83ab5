"""Token counts in Claude Code's format: for each message, and for the whole run in its `result`."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from ralph.transcripts.events import TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import MOST, get_count, get_dict, get_float

#: Beyond this many messages, the counts of the older half are added up: no further line of theirs is expected.
_MOST_MESSAGES = 1000
_PROMPT_COUNTS = ("prompt_tokens", "cached_tokens", "cache_write_tokens")
_COUNTS = (*_PROMPT_COUNTS, "completion_tokens", "reasoning_tokens", "total_tokens")


def read_usage(usage: dict[str, Any], model: str | None = None, *, interim: bool = False) -> Usage | None:
    """One `usage` object.

    Its `input_tokens` exclude the tokens read from and written to the cache; our `prompt_tokens` include them. Some
    agents that borrowed the format include them too, as their `total_tokens` show.
    """
    fresh = _count(usage, "input_tokens")
    read = _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    output = _count(usage, "output_tokens")
    total = _count(usage, "total_tokens")
    if fresh is None and output is None:
        return None
    cache_included = total is not None and total == (fresh or 0) + (output or 0)
    outside = 0 if cache_included else (read or 0) + (written or 0)
    return Usage(
        prompt_tokens=None if fresh is None else fresh + outside,
        completion_tokens=output,
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=(
            get_count(get_dict(usage, "output_tokens_details"), "thinking_tokens")
            if "output_tokens_details" in usage
            else None
        ),
        total_tokens=total,
        model=model,
        interim=interim,
    )


def _count(usage: dict[str, Any], key: str) -> int | None:
    number = usage.get(key)
    if number is None or (type(number) is int and 0 <= number < MOST):  # almost always
        return number
    return get_count(usage, key)


def main_model(models: dict[str, Any]) -> str | None:
    """The most expensive model in `modelUsage`: the others only did small tasks on the side."""
    names = [name for name, used in models.items() if isinstance(used, dict)]
    return max(names, key=lambda n: get_float(models[n], "costUSD") or 0.0, default=None)


def _model_usage(used: dict[str, Any]) -> Usage:
    """What one model used, in Claude Code's sums by model."""
    fresh, read, written = (
        get_count(used, key) or 0 for key in ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    )
    return Usage(
        prompt_tokens=fresh + read + written,
        completion_tokens=get_count(used, "outputTokens"),
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=get_count(used, "thinkingTokens"),
    )


class RunUsage:
    """Adds up the usage of a run and counts nothing twice.

    With `check_result`, the totals of a `result` without `modelUsage` are checked against the messages: in releases of
    Claude Code before 1.0.128 they are wrong.
    """

    def __init__(self, *, check_result: bool = False) -> None:
        self._check_result = check_result
        #: the latest counts of each message since the last result
        self._messages: dict[str, dict[str, Any]] = {}
        #: the highest counts of each of them, which were reported as interim ones
        self._interim: dict[str, Usage] = {}
        self._older: Usage | None = None
        #: whether there were messages of subagents since the last result
        self._delegated = False
        self._current = ""
        self._last_result: Usage | None = None
        self._last_cost: float | None = None

    def subagent(self, message: dict[str, Any], model: str | None) -> list[TranscriptEvent]:
        """Count a message of a subagent, as `message` does."""
        self._delegated = True
        return self.message(message, model)

    def message(self, message: dict[str, Any], model: str | None) -> list[TranscriptEvent]:
        """Count a message. Its counts grow with each of its lines, so they replace the ones before.

        Lines without an id belong to the current message. Returns what the line adds, as interim usage.
        """
        usage = message.get("usage")
        if not isinstance(usage, dict):
            return []
        name = message.get("id")
        return self._set(name if isinstance(name, str) else self._current, usage, model)

    def delta(self, usage: dict[str, Any], message: str | None, model: str | None) -> list[TranscriptEvent]:
        """Count the final counts of a message that is being streamed; the counts they leave out still hold."""
        name = self._current if message is None else message
        return self._set(name, self._messages.get(name, {}) | usage, model) if usage else []

    def _set(self, message: str, usage: dict[str, Any], model: str | None) -> list[TranscriptEvent]:
        self._current = message
        before = self._messages.pop(message, None)  # so that the messages are in the order of their latest lines
        self._messages[message] = usage
        if before == usage:
            return []
        if len(self._messages) > _MOST_MESSAGES:
            half = list(islice(self._messages, len(self._messages) // 2))
            self._older = _total([self._older, *(read_usage(self._messages.pop(old)) for old in half)])
            for old in half:
                self._interim.pop(old, None)
        return self._increase(message, usage, model)

    def _increase(self, message: str, usage: dict[str, Any], model: str | None) -> list[TranscriptEvent]:
        """What a message used beyond what was reported of it. A later line may report less than an earlier one."""
        now = read_usage(usage, model, interim=True)
        if now is None or not (now.prompt_tokens or now.completion_tokens or now.total_tokens):
            return []
        before = self._interim.get(message)
        self._interim[message] = now
        if before is None:
            return [UsageEvent(now)]
        counts = {name: (getattr(now, name), getattr(before, name)) for name in _COUNTS}
        highest = {name: new if old is None or (new or 0) > old else old for name, (new, old) in counts.items()}
        self._interim[message] = msgspec.structs.replace(now, **highest)
        more = {name: None if new is None else max(0, new - (old or 0)) for name, (new, old) in counts.items()}
        return [UsageEvent(msgspec.structs.replace(now, **more))] if any(more.values()) else []

    def result(self, value: dict[str, Any], model: str | None) -> Usage | None:
        """The usage that a `result` adds to the results before it.

        Measured with releases 1.0.60 to 2.1.325: `usage` covers one turn, also in a resumed session, but
        `total_cost_usd` accumulates over turns. After --resume, the cost covers the run up to 2.1.276 and the whole
        session from 2.1.277; from 2.1.309, the costs since the last result are given as well. For the releases in
        between, the loop subtracts what it knows the session had cost before.
        """
        counted = _total([self._older, *map(read_usage, self._messages.values())])
        given = value.get("usage")
        usage = read_usage(given) if isinstance(given, dict) else counted
        doubled = False
        if usage is not None and counted is not None and self._check_result and "modelUsage" not in value:
            doubled = _is_doubled(usage, counted)
            if doubled or self._is_last_message(usage):
                usage = counted
        added = usage
        if usage is not None and isinstance(given, dict):
            if self._last_result is not None and not self._messages:
                added = _increase(usage, self._last_result)
            self._last_result = usage
            added = self._complete(added or usage, value)
        self._delegated = False
        self._messages, self._interim, self._older = {}, {}, None
        cost = None if doubled else self._new_cost(value)  # a cost that was computed from doubled counts is wrong, too
        if added is None and cost is None:
            return None
        model = model or main_model(get_dict(value, "modelUsage"))
        return msgspec.structs.replace(added or Usage(), model=model, cost_usd=cost)

    def _complete(self, result: Usage, value: dict[str, Any]) -> Usage:
        """The usage of a result that covers less than the messages before it.

        Claude Code's `usage` leaves out subagents and, if one ended in the background, the turns that followed. The
        messages have all prompts, but not the whole answers; newer releases report the sum by model.
        """
        counted = _total([self._older, *self._interim.values()])
        if counted is None or not (self._delegated or "modelUsage" in value):
            return result
        if (counted.prompt_tokens or 0) <= (result.prompt_tokens or 0):
            return result
        models = list(get_dict(value, "model_usage_since_last_result").values())
        everything = _total([_model_usage(used) for used in models if isinstance(used, dict)])
        if everything is not None and (everything.prompt_tokens or 0) >= (counted.prompt_tokens or 0):
            return everything
        answers = max(counted.completion_tokens or 0, result.completion_tokens or 0)
        return msgspec.structs.replace(counted, completion_tokens=answers, at_least=True)

    def _is_last_message(self, usage: Usage) -> bool:
        """Whether a result reports its last message instead of the run, as 1.0.100 does."""
        last = read_usage(self._messages.get(self._current, {}))
        names = (*_PROMPT_COUNTS, "completion_tokens")
        return last is not None and all(getattr(last, name) == getattr(usage, name) for name in names)

    def _new_cost(self, value: dict[str, Any]) -> float | None:
        total = get_float(value, "total_cost_usd")
        if total is None:
            return None
        before, self._last_cost = self._last_cost, total
        since = [get_float(used, "costUSD") for used in get_dict(value, "model_usage_since_last_result").values()]
        if since:
            known = sum(cost for cost in since if cost is not None)
            if abs(known - total) > 1e-9:
                return known
        return total - before if before is not None and total >= before else total


def _total(usages: list[Usage | None]) -> Usage | None:
    """The sum of each count; a count that none of them has stays None."""
    known = [usage for usage in usages if usage is not None]
    counts = {name: [n for usage in known if (n := getattr(usage, name)) is not None] for name in _COUNTS}
    sums: dict[str, Any] = {name: sum(numbers) for name, numbers in counts.items() if numbers}
    return Usage(**sums) if known else None


def _is_doubled(result: Usage, counted: Usage) -> bool:
    """Whether a result counts each prompt twice.

    1.0.60 and its contemporaries add the counts at a message's start to those at its end. Today's API reports the
    prompt in both, but at the start only the first tokens of the answer, so the answer is not doubled.
    """
    twice = [None if n is None else 2 * n for n in (getattr(counted, name) for name in _PROMPT_COUNTS)]
    answer = counted.completion_tokens or 0
    return (
        bool(counted.prompt_tokens)
        and [getattr(result, name) for name in _PROMPT_COUNTS] == twice
        and answer <= (result.completion_tokens or 0) < 2 * answer
    )


def _increase(result: Usage, last: Usage) -> Usage:
    """What a result adds if no message came since the last one: it repeats the counts or continues them.

    If a count went down, it does neither, and the result stands for itself.
    """
    counts = {name: (getattr(result, name), getattr(last, name)) for name in _COUNTS}
    if any(new is not None and old is not None and new < old for new, old in counts.values()):
        return result
    more: dict[str, Any] = {name: new - (old or 0) for name, (new, old) in counts.items() if new is not None}
    return Usage(**more)
