"""Rendered lines are tagged, short, and harmless to a terminal."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.system.terminal import MAX_SHOWN, safe
from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent, decode
from ralph.transcripts.meta import Kind
from ralph.ui.render import Renderer

#: What a terminal may act on: C0 and C1 controls, DEL, and characters that change the direction of text.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def event(**fields: object) -> TranscriptEvent:
    return decode(json.dumps(fields))


def lines(*events: TranscriptEvent) -> list[tuple[str, str]]:
    renderer = Renderer()
    return [line for e in events for line in renderer.lines(e)]


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2J\x1b[H",  # clear the screen
        "\x1b]0;title\x07",
        "\x1b]52;c;cm0gLXJm\x07",  # write to the clipboard
        "\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\",
        "\x9b31m",  # CSI in one character
        "back\x08\x08\x08\x08over",
        "over\rwritten",
        "\u202egnp.exe",
        "\x00\x7f",
    ],
)
def test_control_characters_become_visible(hostile: str) -> None:
    shown = safe(hostile)
    assert not CONTROL.search(shown)
    assert len(shown) >= len(hostile)  # made visible, not dropped


@given(st.text())
def test_no_text_controls_a_terminal(text: str) -> None:
    assert not CONTROL.search(safe(text))


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"]), max_size=100))
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert safe(text) == text


def test_a_long_line_is_cut_with_a_remark() -> None:
    shown = safe("x" * 1_000_000)
    assert len(shown) < MAX_SHOWN + 100
    assert "1,000,000 characters" in shown


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)
_NAMES = """n max outcome why next plan actions report seconds progress command tail note text message class run agent
version cwd limits prompt_chars prompt_from end reason"""
_names = st.sampled_from(_NAMES.split())


@given(st.sampled_from(list(Kind)), st.dictionaries(_names, _json, max_size=8))
def test_no_field_of_a_meta_event_controls_a_terminal_or_raises(kind: Kind, fields: dict[str, object]) -> None:
    for label, text in lines(Meta({"kind": kind.value, **fields})):
        assert not CONTROL.search(label + text)


@given(st.text(), st.text(), st.dictionaries(st.text(), st.text(), max_size=3))
def test_no_field_of_a_tool_controls_a_terminal(name: str, output: str, tool_input: dict[str, str]) -> None:
    events = [
        event(type="tool_start", tool={"id": "1", "name": name, "input": tool_input}),
        event(type="tool_output", tool={"id": "1"}, text=output),
        event(type="tool_end", tool={"id": "1", "status": "fail"}),
    ]
    for label, text in lines(*events):
        assert not CONTROL.search(label + text)


@pytest.mark.parametrize("tag", ["AI", "THINK", "TOOL", "SYS", "PROMPT", "USER"])
def test_every_line_of_text_has_its_tag(tag: str) -> None:
    assert lines(Text(Tag(tag), "one\ntwo\r\nthree\n")) == [(tag, "one"), (tag, "two"), (tag, "three")]


def test_a_tool_call_is_shown_with_its_main_argument() -> None:
    shown = lines(
        event(type="tool_start", tool={"id": "1", "name": "shell", "input": {"cmd": "ls\n-l", "cwd": "/x"}}),
        event(type="tool_output", tool={"id": "1"}, text="a\nb\n"),
        event(type="tool_end", tool={"id": "1", "status": "ok", "duration_ms": 218}),
    )
    assert shown == [
        ("TOOL", "shell ls ⏎ -l"),
        ("TOOL", "  │ a"),
        ("TOOL", "  │ b"),
        ("TOOL", "  ✓ ok in 0.2 s"),
    ]


def test_with_several_open_tools_each_end_names_its_tool() -> None:
    shown = lines(
        event(type="tool_start", tool={"id": "1", "name": "shell"}),
        event(type="tool_start", tool={"id": "2", "name": "read"}),
        event(type="tool_end", tool={"id": "1", "status": "fail", "duration_ms": 5}),
        event(type="tool_end", tool={"id": "2", "status": "ok"}),
    )
    assert [text for _, text in shown[2:]] == ["  ✗ failed · shell", "  ✓ ok"]


def test_long_tool_output_is_cut_with_a_remark() -> None:
    shown = lines(
        event(type="tool_start", tool={"id": "1", "name": "shell"}),
        event(type="tool_output", tool={"id": "1"}, text="\n".join(map(str, range(100)))),
        event(type="tool_end", tool={"id": "1", "status": "fail"}),
    )
    assert len(shown) == 1 + 12 + 1
    assert "88 more lines" in shown[-1][1]
    assert "✗ failed" in shown[-1][1]


@pytest.mark.parametrize(("size", "shown"), [(1, "1 character"), (0, "0 characters"), (1234, "1,234 characters")])
def test_the_size_of_a_prompt_has_the_right_plural(size: int, shown: str) -> None:
    started = Meta({"kind": "iteration_start", "n": 1, "prompt_chars": size, "prompt_from": "PROMPT.md"})
    assert lines(started)[-1] == ("PROMPT", f"{shown} from PROMPT.md")


def test_one_hidden_line_of_output_and_of_a_note_is_singular() -> None:
    shown = lines(
        event(type="tool_start", tool={"id": "1", "name": "shell"}),
        event(type="tool_output", tool={"id": "1"}, text="\n".join(map(str, range(13)))),
        event(type="tool_end", tool={"id": "1", "status": "ok"}),
        Meta({"kind": "steer", "state": "arrived", "text": "one\ntwo"}),
    )
    assert "(1 more line of output in the journal)" in shown[-2][1]
    assert shown[-1] == ("STEER", "note for the next prompt: one … (1 more line)")


def test_the_summary_is_aligned() -> None:
    fields = {
        "kind": "run_end",
        "end": "complete",
        "exit_code": 0,
        "summary": {"Why": "done", "Iterations": "3", "Changed": "2 files\n  a\n  b"},
    }
    body = lines(Meta(fields))[2:]
    assert [label for label, _ in body] == ["Why       ", "Iterations", "Changed   ", " " * 10, " " * 10]
