"""From bytes to events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents import adapters as registry
from ralph.judging.observe import Observation
from ralph.judging.output import OutputReader, from_terminal
from ralph.judging.signals import Markers
from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent
from ralph.transcripts.safe import SafeAdapter


def reader(observation: Observation | None = None) -> OutputReader:
    return OutputReader(
        SafeAdapter(registry.create("plain")),
        observation or Observation(Markers()),
        aside=lambda line: [Text(Tag.USER, line)],
    )


def test_each_stream_has_its_own_lines_and_its_own_tail() -> None:
    output = reader()
    events = [*output.stdout(b"o"), *output.stderr(b"e"), *output.aside(b"a")]
    assert events == []
    assert output.stdout(b"ut\nlast o") == [Text(Tag.AI, "out")]
    assert output.stderr(b"rr\nlast e") == [Text(Tag.SYS, "err")]
    assert output.aside(b"side\nlast a") == [Text(Tag.USER, "aside")]
    assert output.end() == [Text(Tag.AI, "last o"), Text(Tag.SYS, "last e"), Text(Tag.USER, "last a")]


def test_a_tail_comes_once() -> None:
    output = reader()
    output.stderr(b"tail")
    assert output.end_stderr() == [Text(Tag.SYS, "tail")]
    assert output.end() == []


def test_the_observation_sees_every_event_and_messages_to_topics_follow_their_words() -> None:
    seen = Observation(Markers())
    output = reader(seen)
    words, message = output.stdout(b'<event topic="review">please</event>\n')
    assert isinstance(words, Text)
    assert isinstance(message, Meta)
    assert message.meta["topic"] == "review"
    added: list[TranscriptEvent] = [Text(Tag.AI, "<promise>COMPLETE</promise>")]
    assert output.add(added) == added
    assert seen.spoke
    assert seen.message.claim(structured=True).signal == "complete"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2K\x1b[1Gtext", "text"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Btext\x1b=", "text"),
        ("\x1b[?25l\x1b[?2004htext", "text"),
        ("10%\r50%\r100%", "100%"),
        ("100%\r", "100%"),
        ("text\r\r", "text"),
        ("ab\b\bxy", "xy"),
        ("text\x1b", "text"),
        ("\x1bPdevice\x1b\\text", "text"),
        ("", ""),
    ],
)
def test_what_a_terminal_would_show(line: str, shown: str) -> None:
    assert from_terminal(line) == shown


@given(st.text(st.sampled_from("ab\x1b[];0m\r\b\x07\\?Pé ")))
def test_no_control_character_is_left(line: str) -> None:
    assert not set(from_terminal(line)) & set("\r\b")
