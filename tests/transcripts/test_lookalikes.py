"""An agent that writes JSON in a text format, of the kind that its own JSON format is made of, only writes words."""

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
def test_a_result_among_the_words_is_words(agent: str, glued: str) -> None:
    text = f"This is what it prints:\n{LOOKALIKE}{glued}\nThat was all.\n\n{MARKER}\n"
    *_, (last, _) = replay(text.encode(), b"", agent, 0, None, None)
    assert isinstance(last[0], Meta)
    assert last[0].meta["outcome"] == "ok"
    assert last[0].meta["completed"], last[0].meta["why"]
