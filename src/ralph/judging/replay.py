"""Judges a recording as if it had just been run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as registry
from ralph.judging.judge import judge
from ralph.judging.observe import Observation
from ralph.judging.output import OutputReader
from ralph.judging.signals import Markers
from ralph.runners.process import Ended, EndKind, describe_status
from ralph.transcripts.events import Meta, TranscriptEvent, encode
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

    A recording does not say how the two streams were interleaved. stderr comes first, because CLIs print most of it
    at the start.
    """
    adapter = SafeAdapter(registry.create(transcript, prompt=prompt))
    seen = Observation(Markers.configured(promise), prompt=prompt)
    reader = OutputReader(adapter, seen)
    for batch in _batches(reader, out, err):
        yield batch, _lines(batch)
    ended = Ended(EndKind.EXITED, describe_status(exit_code), exit_code)
    final: list[TranscriptEvent] = [verdict_event(judge(ended, seen, structured=adapter.structured), seen)]
    yield final, _lines(final)


def _batches(reader: OutputReader, out: bytes, err: bytes) -> Iterator[list[TranscriptEvent]]:
    for start in range(0, len(err), _CHUNK):
        yield reader.stderr(err[start : start + _CHUNK])
    yield reader.end_stderr()
    for start in range(0, len(out), _CHUNK):
        yield reader.stdout(out[start : start + _CHUNK])
    yield reader.end()


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
