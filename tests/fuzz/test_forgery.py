"""Text of others completes nothing, the agent's own text does, and an adapter that confuses them is found."""

from __future__ import annotations

import random

import pytest
from fuzz.checks import ViolationError
from fuzz.places import OWN

import ralph.judging.replay
from fuzz import forgery
from ralph.transcripts.events import Tag, Text, ToolEnd, ToolOutput, TranscriptEvent
from ralph.transcripts.safe import SafeAdapter

#: Most mistakes are found after a few tries.
_BUDGET = 500


class MistakenAdapter(SafeAdapter):
    """Takes all text of one kind for the agent's own."""

    kind: str

    def feed_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        events = [self._mistaken(event) for event in super().feed_lines(lines)]
        return [event for event in events if self.kind != "output" or not isinstance(event, ToolEnd)]

    def _mistaken(self, event: TranscriptEvent) -> TranscriptEvent:
        match self.kind, event:
            case ("output", ToolOutput(text=text)) | ("thoughts", Text(tag=Tag.THINK, text=text)):
                return Text(Tag.AI, text)
            case ("prompts", Text(tag=Tag.PROMPT, text=text)):
                return Text(Tag.AI, text)
        return event


@pytest.mark.parametrize("name", OWN)
def test_the_agents_own_text_completes(name: str) -> None:
    """Otherwise it would prove nothing that the text of others does not complete."""
    rng = random.Random(1)
    tries = (forgery.with_marker(forgery.all_sites()[name].own, rng)[1] for _ in range(_BUDGET))
    assert any(forgery.verdict(name, lines, 0)["completed"] for lines in tries)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("claude", "thoughts"), ("claude", "output"), ("codex", "thoughts"), ("codex", "output"), ("codex", "prompts"),
        ("copilot", "thoughts"), ("copilot", "prompts"), ("gemini", "output"), ("gemini", "prompts"),
        ("opencode", "thoughts"), ("opencode", "output"), ("pi", "output"), ("qwen", "thoughts"), ("qwen", "output"),
        ("kimi", "thoughts"), ("goose", "thoughts"), ("droid", "thoughts"), ("cline", "thoughts"),
    ],
)  # fmt: skip
def test_text_of_others_taken_for_the_agents_is_found(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MistakenAdapter, "kind", kind, raising=False)
    monkeypatch.setattr(ralph.judging.replay, "SafeAdapter", MistakenAdapter)
    with pytest.raises(ViolationError, match="not the agent's own"):
        _search(name, random.Random(1))


def _search(name: str, rng: random.Random) -> None:
    for _ in range(_BUDGET):
        forgery.search(name, rng)
