"""A recording judged as if it had just been run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as registry
from ralph.judging.judge import judge
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.judging.topics import TopicReader
from ralph.runners.process import Ended, EndKind, describe_status
from ralph.transcripts.events import Meta, TranscriptEvent, encode
from ralph.transcripts.framing import LineFramer
from ralph.transcripts.meta import Kind
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ralph.judging.judge import Verdict

_CHUNK = 1 << 20


def replay(
    out: bytes, err: bytes, transcript: str, exit_code: int, prompt: str | None, promise: str | None
) -> Iterator[tuple[list[TranscriptEvent], bytes]]:
    """Events in batches, each with its JSON lines; the verdict is the last one.

    A recording does not say how the two streams were interleaved: stderr comes first, as most of what CLIs print
    there they print at the start.
    """
    adapter = SafeAdapter(registry.create(transcript, prompt=prompt))
    seen = Observation(Markers.configured(promise))
    topics = TopicReader()
    for data, feed in ((err, adapter.feed_stderr_lines), (out, adapter.feed_lines)):
        framer = LineFramer()
        for start in range(0, len(data), _CHUNK):
            batch = feed(framer.feed(data[start : start + _CHUNK]))
            seen.feed(batch)
            batch = topics.extend(batch)
            yield batch, _lines(batch)
        rest = feed(framer.flush())
        seen.feed(rest)
        rest = topics.extend(rest)
        yield rest, _lines(rest)
    last = adapter.flush()
    seen.feed(last)
    last = topics.extend(last)
    yield last, _lines(last)
    ended = Ended(EndKind.EXITED, describe_status(exit_code), exit_code)
    final: list[TranscriptEvent] = [verdict_event(judge(ended, seen, structured=adapter.structured), seen)]
    yield final, _lines(final)


def verdict_event(verdict: Verdict, seen: Observation) -> Meta:
    return Meta(
        {
            "kind": Kind.VERDICT.value,
            "outcome": verdict.outcome.value,
            "completed": verdict.completed,
            "replan": verdict.replan,
            "why": verdict.completion_why if verdict.outcome.value == "ok" else verdict.why,
            "session_id": seen.session_id,
            "resets_at": seen.resets_at,
            "retry_after": seen.retry_after,
            "usage": msgspec.to_builtins(seen.usage),
            "tools": msgspec.to_builtins(seen.tools),
        }
    )


def _lines(events: list[TranscriptEvent]) -> bytes:
    return b"".join(encode(e) + b"\n" for e in events)
