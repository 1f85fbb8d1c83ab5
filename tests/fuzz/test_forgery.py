"""Words of others complete nothing, the agent's own do, and an adapter that takes the ones for the other is found."""

from __future__ import annotations

import random

import pytest
from fuzz.checks import ViolationError
from fuzz.places import OWN

import ralph.judging.replay
from fuzz import forgery
from ralph.transcripts.events import Tag, Text, ToolEnd, ToolOutput, TranscriptEvent
from ralph.transcripts.safe import SafeAdapter

#: Most are found after a few tries.
_BUDGET = 500


class Mistaken(SafeAdapter):
    """Takes for the agent's words whatever an adapter reads of one kind."""

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
def test_the_agents_own_words_complete(name: str) -> None:
    """Otherwise it would prove nothing that those of others do not."""
    rng = random.Random(1)
    tries = (forgery.with_marker(forgery.known()[name].own, rng)[1] for _ in range(_BUDGET))
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
def test_words_of_others_taken_for_the_agents_are_found(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mistaken, "kind", kind, raising=False)
    monkeypatch.setattr(ralph.judging.replay, "SafeAdapter", Mistaken)
    with pytest.raises(ViolationError, match="not its own words"):
        _search(name, random.Random(1))


def _search(name: str, rng: random.Random) -> None:
    for _ in range(_BUDGET):
        forgery.search(name, rng)
