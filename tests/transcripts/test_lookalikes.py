"""JSON in an agent's text is text, even if it looks like an event of the agent's own JSON format."""

from __future__ import annotations

import json

import pytest

from ralph.agents import adapters as registry
from ralph.judging.replay import replay
from ralph.transcripts.events import Meta

AGENTS = sorted(set(registry.names()) - {"rtf1"})
MARKER = "<promise>COMPLETE</promise>"
LOOKALIKE = json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "not an event"})


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("glued", ["", "Now the file."])
def test_a_result_in_the_text_is_text(agent: str, glued: str) -> None:
    text = f"This is what it prints:\n{LOOKALIKE}{glued}\nThat was all.\n\n{MARKER}\n"
    *_, (last, _) = replay(text.encode(), b"", agent, 0, None, None)
    assert isinstance(last[0], Meta)
    assert last[0].meta["outcome"] == "ok"
    assert last[0].meta["completed"], last[0].meta["why"]
