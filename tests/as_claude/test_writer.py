"""Events as lines of Claude's stream-json."""

from __future__ import annotations

from ralph.as_claude.writer import ClaudeWriter, usage
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    Usage,
)


def test_the_message_after_the_last_tool_is_the_result() -> None:
    writer = ClaudeWriter()
    writer.feed([Text(Tag.AI, "I look"), ToolStart(ToolCall("1", "ls")), ToolOutput(ToolRef("1"), "files")])
    writer.feed(
        [ToolEnd(ToolResult("1", ToolStatus.OK)), Text(Tag.THINK, "hm"), Text(Tag.AI, "two"), Text(Tag.AI, "lines")]
    )
    assert writer.message == "two\nlines"


def test_unknown_counts_are_absent() -> None:
    assert usage(Usage(completion_tokens=3)) == {"output_tokens": 3}
    assert usage(Usage(prompt_tokens=10, cached_tokens=4, cache_write_tokens=1, completion_tokens=0)) == {
        "input_tokens": 5,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 1,
        "output_tokens": 0,
    }
