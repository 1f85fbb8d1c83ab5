"""Every recording through its adapter: verdict, completion, tools, usage as the script behind it made them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from typing import TYPE_CHECKING

from recording import Recording, case_for, find

from ralph.judging.replay import replay
from ralph.transcripts.events import Meta, Tag, Text, ToolOutput, ToolStart

if TYPE_CHECKING:
    import pytest

FIXTURES = Path(__file__).parent.parent / "fixtures"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "recording" in metafunc.fixturenames:
        root = Path(metafunc.config.getoption("--captures") or FIXTURES)
        metafunc.parametrize("recording", find(root), ids=lambda r: r.id)


def test_a_recording_gives_what_was_made_to_happen(recording: Recording) -> None:
    case = case_for(recording)
    assert case is not None, f"no expectation for {recording.id}: write one in tests/recordings/expect"
    batches = replay(recording.stdout(), recording.stderr(), recording.agent, recording.exit_code(case), None, None)
    events = [event for batch, _ in batches for event in batch]
    verdict = events[-1].meta  # type: ignore[union-attr]

    allowed = [case.outcome] if isinstance(case.outcome, str) else case.outcome
    assert verdict["outcome"] in allowed, verdict["why"]
    assert verdict["completed"] is case.completed, verdict["why"]
    if case.tools is not None:
        for name in ("started", "ok", "fail", "unknown"):
            wanted = getattr(case.tools, name)
            assert wanted is None or verdict["tools"][name] == wanted, (name, verdict["tools"])
    if case.session is not None:
        assert bool(verdict["session_id"]) is case.session
    for name, value in (case.usage or {}).items():
        assert verdict["usage"].get(name) == value, (name, verdict["usage"])
    if case.no_usage:
        assert verdict["usage"] == {}
    assert not case.resets or verdict["resets_at"] or verdict["retry_after"]

    words = "\n".join(e.text for e in events if isinstance(e, Text) and e.tag is Tag.AI)
    thoughts = "\n".join(e.text for e in events if isinstance(e, Text) and e.tag is Tag.THINK)
    output = "\n".join(e.text for e in events if isinstance(e, ToolOutput))
    for text, where in ((case.says, words), (case.thinks, thoughts), (case.tool_says, output)):
        for part in text:
            assert part in where
    for part in case.never_says:
        assert part not in words
    started = {e.tool.name for e in events if isinstance(e, ToolStart)}
    assert set(case.tool_names) <= started
    kinds = {e.meta.get("kind") for e in events if isinstance(e, Meta)}
    assert set(case.kinds) <= kinds


def test_nothing_is_said_twice(recording: Recording) -> None:
    """Deltas and the full message that follows them, or a final copy of all, are the same words once."""
    case = case_for(recording)
    assert case is not None
    batches = replay(recording.stdout(), recording.stderr(), recording.agent, recording.exit_code(case), None, None)
    marker = "<promise>COMPLETE</promise>"
    lines = [
        line.strip()
        for batch, _ in batches
        for e in batch
        if isinstance(e, Text) and e.tag is Tag.AI
        for line in e.text.split("\n")
    ]
    assert lines.count(marker) <= case.markers
