"""The tokens of a run, of which no line tells the sum."""

from __future__ import annotations

from ralph.transcripts._claude_usage import RunUsage


def test_many_messages_are_added_up_on_the_way_and_none_is_lost() -> None:
    usage = RunUsage()
    for number in range(2500):
        counts = {"input_tokens": 1, "output_tokens": 2}
        usage.message({"id": f"m{number}", "usage": counts})
        usage.message({"id": f"m{number}", "usage": counts})
    assert len(usage._messages) <= 1000
    total = usage.result({}, "m")
    assert total is not None
    assert (total.prompt_tokens, total.completion_tokens) == (2500, 5000)
