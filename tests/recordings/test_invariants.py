"""What holds for every transcript, whatever the agent did."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from typing import TYPE_CHECKING

import msgspec
from recording import Recording, find

from ralph.judging.replay import replay
from ralph.transcripts.events import Meta, ToolEnd, ToolOutput, ToolStart, TranscriptEvent, UsageEvent
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    import pytest

FIXTURES = Path(__file__).parent.parent / "fixtures"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    root = Path(metafunc.config.getoption("--captures") or FIXTURES)
    metafunc.parametrize("recording", find(root), ids=lambda r: r.id)


def test_the_events_of_a_recording_are_consistent(recording: Recording) -> None:
    batches = replay(recording.stdout(), recording.stderr(), recording.agent, 0, None, None)
    events = [event for batch, _ in batches for event in batch]
    check_tools(events)
    check_numbers(events)
    assert [e.meta["message"] for e in events if is_failure(e)] == []


def check_tools(events: list[TranscriptEvent]) -> None:
    """Each call starts once and ends at most once, after its start. Its output comes in between."""
    started: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for event in events:
        match event:
            case ToolStart(tool=tool):
                started[tool.id] += 1
                assert started[tool.id] == 1, f"{tool.id} starts twice"
                assert tool.name, event
            case ToolOutput(tool=reference):
                assert started[reference.id], f"{reference.id} prints before it starts"
                assert not ended[reference.id], f"{reference.id} prints after its end"
            case ToolEnd(tool=result):
                assert started[result.id], f"{result.id} ends before it starts"
                ended[result.id] += 1
                assert ended[result.id] == 1, f"{result.id} ends twice"


def check_numbers(events: list[TranscriptEvent]) -> None:
    for event in events:
        match event:
            case UsageEvent(usage=usage):
                numbers = [n for n in msgspec.structs.astuple(usage) if isinstance(n, int | float)]
                assert all(n >= 0 for n in numbers), usage
            case ToolEnd(tool=result):
                assert result.duration_ms is None or result.duration_ms >= 0, result


def is_failure(event: TranscriptEvent) -> bool:
    """Whether an adapter raised an exception."""
    failed = isinstance(event, Meta) and event.meta.get("kind") == Kind.PARSE_ERROR
    return failed and event.meta["message"].startswith("adapter ")  # type: ignore[union-attr]
