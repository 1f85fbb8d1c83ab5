"""Memory of ids is bounded and keeps the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.agents import adapters as registry
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.transcripts import recent
from ralph.transcripts.events import Text, ToolCall, ToolEnd, ToolOutput, ToolRef, ToolResult, ToolStart, ToolStatus
from ralph.transcripts.recent import KEPT, Recent, RecentCalls, RecentKeys
from ralph.ui.render import Renderer

if TYPE_CHECKING:
    import pytest


def test_the_oldest_are_forgotten_and_all_are_counted() -> None:
    memory = Recent[str, int]()
    for number in range(3 * KEPT):
        memory[str(number)] = number
        assert len(memory) <= KEPT
        assert memory[str(number)] == number
    assert memory.added == 3 * KEPT
    assert list(memory) == [str(n) for n in range(3 * KEPT - len(memory), 3 * KEPT)]
    assert len(memory) >= KEPT // 2


def test_setting_a_known_key_again_forgets_nothing() -> None:
    memory = Recent[str, int]()
    for number in range(KEPT):
        memory[str(number)] = 0
    for number in range(KEPT):
        memory[str(number)] = 1
    assert memory.setdefault("0", 5) == 1
    assert len(memory) == memory.added == KEPT


def test_a_default_counts_as_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "KEPT", 4)
    memory = Recent[int, str]()
    for number in range(10):
        assert memory.setdefault(number, f"v{number}") == f"v{number}"
    assert memory.added == 10
    assert 2 <= len(memory) <= 4


def test_recent_keys_behave_like_a_set() -> None:
    keys = RecentKeys[str]()
    keys.add("a")
    keys.add("a")
    assert "a" in keys
    assert keys.added == 1
    keys.discard("a")
    keys.discard("never there")
    assert "a" not in keys


def test_generated_ids_stay_unique_after_old_ones_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "KEPT", 8)
    adapter = registry.create("gemini")
    adapter.feed('{"type":"init","session_id":"s","timestamp":"t"}')
    line = '{"type":"tool_use","timestamp":"t","tool_name":"ls","parameters":{}}'
    starts = [e for _ in range(50) for e in adapter.feed(line) if isinstance(e, ToolStart)]
    assert len({start.tool.id for start in starts}) == 50


def test_calls_that_never_end_do_not_pile_up_in_an_observation() -> None:
    seen = Observation(Markers())
    for number in range(2 * KEPT + 10):
        seen.feed([ToolStart(ToolCall(f"c{number}", f"tool{number}")), ToolStart(ToolCall(f"d{number}", "often"))])
    assert seen.tools.started == 2 * (2 * KEPT + 10)
    assert len(seen.open_tools) <= KEPT
    assert len(seen.tool_names) <= KEPT
    assert seen.tool_names.most_common(1) == [("often", 2 * KEPT + 10)]
    assert next(reversed(seen.open_tools.values())) == "often"


def test_output_of_unknown_calls_does_not_pile_up_in_the_renderer() -> None:
    screen = Renderer()
    for number in range(2 * KEPT):
        assert screen.lines(ToolOutput(ToolRef(f"c{number}"), "words")) == [("TOOL", "  │ words")]
    assert len(screen._tools) <= KEPT
    shown = screen.lines(ToolEnd(ToolResult(f"c{2 * KEPT - 1}", ToolStatus.OK, None, None)))
    assert shown == [("TOOL", "  ✓ ok")]


def test_text_of_a_stream_that_is_closed_to_make_room_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copilot's subagents write at the same time, each in a stream of its own."""
    monkeypatch.setattr(recent, "KEPT", 4)
    adapter = registry.create("copilot")
    line = '{"type":"assistant.message_delta","agentId":"a%d","data":{"messageId":"m%d","deltaContent":"word %d"}}'
    events = [event for n in range(30) for event in adapter.feed(line % (n, n, n))] + adapter.flush()
    assert [event.text for event in events if isinstance(event, Text)] == [f"word {n}" for n in range(30)]


def test_finished_calls_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "KEPT", 8)
    calls = RecentCalls()
    calls.begin("open", "shell")
    for number in range(100):
        calls.begin(f"call-{number}", "read")
        calls[f"call-{number}"] = None
        assert len(calls) <= 8
    assert (calls["open"], calls.oldest(), calls.added) == ("shell", "open", 101)
    assert "call-99" in calls
    assert "call-0" not in calls


def test_the_oldest_calls_that_never_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "KEPT", 8)
    calls = RecentCalls()
    for number in range(100):
        calls.begin(f"call-{number}", "read")
        assert len(calls) <= 8
    assert (calls.added, "call-99" in calls, "call-0" in calls) == (100, True, False)
