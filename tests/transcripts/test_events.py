"""The six event types and their JSON, as RTF1 specifies them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.transcripts.events import (
    EventError,
    Meta,
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
    decode,
    decode_json,
    encode,
    encode_lines,
)

# The four examples of the specification, and one of each remaining type.
_EXAMPLES: list[tuple[str, TranscriptEvent]] = [
    ('{"type":"text","tag":"THINK","text":"Plan: inspect auth layer"}', Text(Tag.THINK, "Plan: inspect auth layer")),
    (
        '{"type":"tool_start","tool":{"id":"t1","name":"shell","input":{"cmd":"rg -n authz -S ."}}}',
        ToolStart(ToolCall("t1", "shell", {"cmd": "rg -n authz -S ."})),
    ),
    (
        '{"type":"tool_end","tool":{"id":"t1","status":"ok","duration_ms":218}}',
        ToolEnd(ToolResult("t1", ToolStatus.OK, 218)),
    ),
    (
        '{"type":"usage","usage":{"prompt_tokens":1234,"completion_tokens":567,"total_tokens":1801}}',
        UsageEvent(Usage(1234, 567, 1801)),
    ),
    ('{"type":"tool_output","tool":{"id":"t1"},"text":"x"}', ToolOutput(ToolRef("t1"), "x")),
    ('{"type":"meta","meta":{"anything":[1,{"a":null}]}}', Meta({"anything": [1, {"a": None}]})),
]


@pytest.mark.parametrize(("line", "event"), _EXAMPLES)
def test_the_json_of_an_event_is_its_rtf1_form(line: str, event: TranscriptEvent) -> None:
    assert decode(line) == event
    assert json.loads(encode(event)) == json.loads(line)


@pytest.mark.parametrize("tag", ["AI", "THINK", "SYS", "TOOL", "PROMPT", "USER"])
def test_the_six_tags(tag: str) -> None:
    assert decode(f'{{"type":"text","tag":"{tag}","text":"x"}}') == Text(Tag(tag), "x")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "null",
        "[]",
        '"text"',
        "{}",
        '{"type":"song"}',
        '{"type":"text","text":"x"}',
        '{"type":"text","tag":"ai","text":"x"}',
        '{"type":"text","tag":"AI","text":5}',
        '{"type":"text","tag":"AI"}',
        '{"type":"tool_start","tool":{"name":"x"}}',
        '{"type":"tool_start","tool":{"id":"1"}}',
        '{"type":"tool_start","tool":{"id":"1","name":"x","input":"text"}}',
        '{"type":"tool_end","tool":{"id":"1"}}',
        '{"type":"tool_end","tool":{"id":"1","status":"great"}}',
        '{"type":"tool_end","tool":{"id":"1","status":"ok","duration_ms":"long"}}',
        '{"type":"tool_output","tool":{"id":"1"}}',
        '{"type":"usage","usage":{"prompt_tokens":"many"}}',
        '{"type":"meta","meta":[]}',
        '{"type":"text","tag":"AI","text":"x"} trailing',
        "[" * 100_000,
        '{"type":"meta","meta":' * 50_000,
    ],
)
def test_an_invalid_event_is_refused_with_a_reason(line: str) -> None:
    with pytest.raises(EventError) as caught:
        decode(line)
    assert str(caught.value)


def test_unknown_fields_are_ignored() -> None:
    assert decode('{"type":"text","tag":"AI","text":"x","more":1}') == Text(Tag.AI, "x")


def test_half_a_character_becomes_the_replacement_character() -> None:
    assert decode('{"type":"text","tag":"AI","text":"a\\ud83d b"}') == Text(Tag.AI, "a\ufffd b")
    assert decode('{"type":"text","tag":"AI","text":"\\ud83d\\ude00"}') == Text(Tag.AI, "😀")
    assert json.loads(encode(Text(Tag.AI, "a\udfff")))["text"] == "a\ufffd"


def test_a_missing_number_is_absent_from_the_json() -> None:
    assert json.loads(encode(UsageEvent(Usage(prompt_tokens=0)))) == {"type": "usage", "usage": {"prompt_tokens": 0}}


@given(st.text(), st.sampled_from(list(Tag)))
def test_any_text_survives_and_stays_on_one_line(text: str, tag: Tag) -> None:
    line = encode(Text(tag, text))
    assert b"\n" not in line
    assert decode(line) == Text(tag, text)


_json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda c: st.lists(c, max_size=4) | st.dictionaries(st.text(), c, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), _json_values, max_size=5))
def test_any_meta_survives(fields: dict[str, Any]) -> None:
    assert decode(encode(Meta(fields))) == Meta(fields)


@given(st.binary(max_size=100) | st.text(max_size=100))
def test_no_input_raises_anything_else(line: str | bytes) -> None:
    try:
        decode(line)
    except EventError:
        pass
    try:
        decode_json(line)
    except (ValueError, RecursionError):
        pass


@pytest.mark.parametrize("leaf", ["x", "\ud800"], ids=["text", "half a character"])
@pytest.mark.parametrize("depth", [100, 600, 990, 1000, 3000, 20_000])
def test_deeply_nested_values_are_written_in_part(depth: int, leaf: str) -> None:
    """A tool's input may be any JSON, and the stack may have less room than when the input was read."""
    value: Any = leaf
    for number in range(depth):
        value = {"k": value} if number % 2 else [value]
    for event in (Meta({"kind": "unknown", "value": value}), ToolStart(ToolCall("t1", "shell", {"v": value}))):
        line = encode(event)
        assert encode_lines([event]) == line + b"\n"
        again = decode(line)
        assert type(again) is type(event)
        if isinstance(again, ToolStart):
            assert (again.tool.id, again.tool.name) == ("t1", "shell")
        assert line.startswith(
            b'{"type":"meta","meta":{"kind":"unknown"' if isinstance(event, Meta) else b'{"type":"tool_start"'
        )
