"""Token counts in the schema that Claude Code shares with others: per message, and for the run in its result."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

from ralph.transcripts.events import Usage, decode_json
from ralph.transcripts.json_lines import MOST, get_count, get_dict, get_float

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MOST)] | None


class _Details(msgspec.Struct, gc=False):
    thinking_tokens: _Count = None


class _Told(msgspec.Struct, gc=False):
    """A `usage` object whose counts are counts, as they nearly always are."""

    input_tokens: _Count = None
    cache_read_input_tokens: _Count = None
    cache_creation_input_tokens: _Count = None
    output_tokens: _Count = None
    total_tokens: _Count = None
    output_tokens_details: _Details | None = None


_decode_all = msgspec.json.Decoder(list[_Told]).decode


def read_usage(value: dict[str, Any], model: str | None = None) -> Usage | None:
    """One `usage` object. Its `input_tokens` leave out what was read from or written to the cache; ours do not.

    Agents that borrowed the schema may count them in, as their total shows.
    """
    fresh = get_count(value, "input_tokens")
    read = get_count(value, "cache_read_input_tokens")
    written = get_count(value, "cache_creation_input_tokens")
    output = get_count(value, "output_tokens")
    total = get_count(value, "total_tokens")
    if fresh is None and output is None:
        return None
    apart = 0 if total is not None and total == (fresh or 0) + (output or 0) else (read or 0) + (written or 0)
    return Usage(
        prompt_tokens=None if fresh is None else fresh + apart,
        completion_tokens=output,
        model=model,
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=get_count(get_dict(value, "output_tokens_details"), "thinking_tokens"),
        total_tokens=total,
    )


def main_model(models: dict[str, Any]) -> str | None:
    """The model that cost most, of those in `modelUsage`: the others did small things on the side."""
    names = [name for name, used in models.items() if isinstance(used, dict)]
    return max(names, key=lambda n: get_float(models[n], "costUSD") or 0.0, default=None)


#: A message has two or three lines with counts; should a stream have more, they are merged as they come.
_MOST_PARTS = 8
#: More messages than these are added up, as no line of the older ones will come any more.
_MOST_MESSAGES = 10_000


class RunUsage:
    """Adds up a run without counting anything twice."""

    def __init__(self) -> None:
        #: of each message what its lines say; decoded only if no result tells the sum
        self._messages: dict[str, list[dict[str, Any] | bytes]] = {}
        self._older: Usage | None = None
        self._current = ""
        self._last: Usage | None = None
        self._cost: float | None = None
        #: whether the run may be one of Claude Code before 1.0.128, whose results count wrong
        self.may_be_old = False
        #: a message without a name is one of its own, not the last one again
        self.nameless_are_many = False
        self._named = 0

    def message(self, message: dict[str, Any]) -> None:
        """The counts of a message. They grow with each of its lines, so the last ones replace those before."""
        usage = message.get("usage")
        if type(usage) is dict:
            name = message.get("id")
            if type(name) is str:
                self._current = name
            elif self.nameless_are_many:
                self._current = self._new_name()
            self._messages[self._current] = [usage]
            if len(self._messages) > _MOST_MESSAGES:
                self._add_up()

    def raw_message(self, name: str | None, usage: msgspec.Raw) -> None:
        """The same, not decoded yet: the counts of a message matter only if no result tells the sum."""
        raw = bytes(usage)
        if raw[:1] == b"{":
            if name is None:
                self._current = name = self._new_name() if self.nameless_are_many else self._current
            else:
                self._current = name
            messages = self._messages
            messages[name] = [raw]
            if len(messages) > _MOST_MESSAGES:
                self._add_up()

    def _new_name(self) -> str:
        self._named += 1
        return f"#{self._named}"

    def _add_up(self) -> None:
        current = self._messages.pop(self._current)
        self._older = _sum(self._messages, None, self._older)
        self._messages = {self._current: current}

    def delta(self, usage: dict[str, Any] | bytes) -> None:
        """The final counts of the message that is being streamed."""
        known = self._messages.get(self._current)
        if known is None:
            self._messages[self._current] = [usage]
        elif len(known) < _MOST_PARTS:
            known.append(usage)
        else:
            self._messages[self._current] = [{**_decoded(known), **_decoded([usage])}]

    def result(self, value: dict[str, Any], model: str | None) -> Usage | None:
        """What a `result` line adds to the results before it.

        Measured on 1.0.60 to 2.1.325: a second turn's `usage` is its own, and a resumed run's too, while
        `total_cost_usd` goes on from turn to turn. Of a resumed run it is the run's own up to 2.1.276 and the session's
        after that; since 2.1.309 what came since the last result stands beside it. Between the two it is what the line
        says: the loop, which knows what the session told before, makes the difference.
        """
        given = value.get("usage")
        model = model or main_model(get_dict(value, "modelUsage"))
        total = read_usage(given, model) if isinstance(given, dict) else _sum(self._messages, model, self._older)
        if self.may_be_old and total is not None and self._messages and "modelUsage" not in value:
            apart = _sum(self._messages, model, self._older)
            if apart is not None and _doubled(total, apart):
                # The cost was worked out from the same counts, so it is unknown.
                total, value = apart, {k: v for k, v in value.items() if k != "total_cost_usd"}
            elif apart is not None and self._is_last_message(total):
                total = apart
        more = total
        if total is not None and isinstance(given, dict):
            if self._last is not None and not self._messages:
                more = _beyond(total, self._last)
            self._last = total
        self._messages, self._older = {}, None
        cost = self._new_cost(value)
        if more is None and cost is None:
            return None
        more = more or Usage(model=model)
        return Usage(
            more.prompt_tokens,
            more.completion_tokens,
            more.total_tokens,
            more.model,
            more.cached_tokens,
            more.cache_write_tokens,
            more.reasoning_tokens,
            cost,
        )

    def _is_last_message(self, total: Usage) -> bool:
        """1.0.100 tells the tokens of its last message alone; those of each message are right."""
        last = _sum({"": self._messages.get(self._current, [])}, total.model, None)
        return last is not None and all(getattr(last, n) == getattr(total, n) for n in _COUNTS[:4])

    def _new_cost(self, value: dict[str, Any]) -> float | None:
        total = get_float(value, "total_cost_usd")
        if total is None:
            return None
        since = [get_float(used, "costUSD") for used in get_dict(value, "model_usage_since_last_result").values()]
        known = sum(cost for cost in since if cost is not None) if since else None
        before, self._cost = self._cost, total
        if known is not None and abs(known - total) > 1e-9:
            return known
        return total - before if before is not None and total >= before else total


_COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "total_tokens",
)


def _doubled(total: Usage, messages: Usage) -> bool:
    """Whether a result counts each prompt twice.

    1.0.60 and others of its time add up what the API says at a message's start and at its end; today's API tells the
    prompt in both; of the answer only the first tokens are in both, so that it is not doubled.
    """
    prompts = (total.prompt_tokens, total.cached_tokens, total.cache_write_tokens)
    once = (messages.prompt_tokens, messages.cached_tokens, messages.cache_write_tokens)
    answer = (messages.completion_tokens or 0, total.completion_tokens or 0)
    return (
        bool(messages.prompt_tokens)
        and prompts == tuple(None if n is None else 2 * n for n in once)
        and answer[0] <= answer[1] < 2 * answer[0]
    )


def _beyond(total: Usage, last: Usage) -> Usage:
    """A result with no message since the last one repeats its counts, or goes on from them if none went down."""
    new = {name: getattr(total, name) for name in _COUNTS}
    old = {name: getattr(last, name) for name in _COUNTS}
    if any(new[n] is not None and old[n] is not None and new[n] < old[n] for n in _COUNTS):
        return total
    return Usage(model=total.model, **{n: None if v is None else v - (old[n] or 0) for n, v in new.items()})


def _decoded(parts: list[dict[str, Any] | bytes]) -> dict[str, Any]:
    """One message's counts: a later line's replace those before it, field by field."""
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= decode_json(part) if isinstance(part, bytes) else part
    return merged


def _sum(messages: dict[str, list[dict[str, Any] | bytes]], model: str | None, older: Usage | None) -> Usage | None:
    counts = _Sums()
    if older is not None:
        counts.add(older)
    try:
        counts.add_told(_decode_all(b"[%b]" % b",".join([_as_told(parts) for parts in messages.values()])))
    except (TypeError, msgspec.DecodeError, RecursionError):
        for parts in messages.values():
            usage = read_usage(_decoded(parts))
            if usage is not None:
                counts.add(usage)
    return counts.usage(model) if counts.any else None


def _as_told(parts: list[dict[str, Any] | bytes]) -> bytes:
    """One message's counts as one object; TypeError if they cannot be put together as they stand."""
    if len(parts) == 1:
        raw = parts[0]
    elif len(parts) == 2 and type(parts[0]) is bytes and type(parts[1]) is bytes:
        # Of a field that stands there twice the later one counts, as it should.
        raw = b"%b,%b" % (parts[0][:-1], parts[1][1:])
    else:
        raise TypeError
    if type(raw) is not bytes:
        raise TypeError
    return raw


class _Sums:
    """What nobody told stays None."""

    def __init__(self) -> None:
        self.any = False
        self._counts: list[int | None] = [None] * len(_COUNTS)

    def add(self, usage: Usage) -> None:
        self.any = True
        self._more([getattr(usage, name) for name in _COUNTS])

    def _more(self, counts: list[int | None]) -> None:
        self._counts = [old if new is None else new + (old or 0) for old, new in zip(self._counts, counts, strict=True)]

    def add_told(self, messages: list[_Told]) -> None:
        """Many at once, as `read_usage` would read each of them."""
        told = [m for m in messages if m.input_tokens is not None or m.output_tokens is not None]
        if not told:
            return
        self.any = True
        prompts = [m.input_tokens for m in told]
        for at, m in enumerate(told):
            fresh, total = m.input_tokens, m.total_tokens
            read, written = m.cache_read_input_tokens, m.cache_creation_input_tokens
            if fresh is not None and (read or written) and total != fresh + (m.output_tokens or 0):
                prompts[at] = fresh + (read or 0) + (written or 0)
        details = [m.output_tokens_details for m in told]
        self._more(
            [
                _total(prompts),
                _total([m.output_tokens for m in told]),
                _total([m.cache_read_input_tokens for m in told]),
                _total([m.cache_creation_input_tokens for m in told]),
                _total([d.thinking_tokens for d in details if d is not None]),
                _total([m.total_tokens for m in told]),
            ]
        )

    def usage(self, model: str | None) -> Usage:
        return Usage(model=model, **dict(zip(_COUNTS, self._counts, strict=True)))


def _total(counts: list[int | None]) -> int | None:
    given = [count for count in counts if count is not None]
    return sum(given) if given else None
