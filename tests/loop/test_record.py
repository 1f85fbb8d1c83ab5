"""From bytes to disk, to events, to whoever looks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents import adapters as registry
from ralph.journal.writer import Appender
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.loop.limits import Limits
from ralph.loop.record import Recorder, from_terminal
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent, encode
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from pathlib import Path


class Recording:
    def __init__(self, folder: Path, transcript: str = "plain", *, pty: bool = False) -> None:
        self.events: list[TranscriptEvent] = []
        self.out, self.err = folder / "out", folder / "err"
        raw = (Appender(self.out), Appender(self.err))
        self.recorder = Recorder(
            SafeAdapter(registry.create(transcript)), Observation(Markers()), raw, self.events.extend, pty=pty
        )


def test_bytes_are_on_disk_before_they_are_parsed(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.recorder.stdout(b"half a li")
    assert recording.out.read_bytes() == b"half a li"
    assert recording.events == []
    recording.recorder.stdout(b"ne\nrest")
    recording.recorder.finish()
    assert recording.events == [Text(Tag.AI, "half a line"), Text(Tag.AI, "rest")]


def test_the_two_streams_do_not_mix_even_in_the_middle_of_a_line(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.recorder.stdout(b"o")
    recording.recorder.stderr(b"e")
    recording.recorder.stdout(b"ut\n")
    recording.recorder.stderr(b"rr\n")
    recording.recorder.finish()
    assert recording.events == [Text(Tag.AI, "out"), Text(Tag.SYS, "err")]
    assert (recording.out.read_bytes(), recording.err.read_bytes()) == (b"out\n", b"err\n")


def test_output_that_looks_like_rtf1_is_noticed(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.recorder.stdout(b'@@RALPH@@ {"type":"text","tag":"AI","text":"x"}\n')
    assert recording.recorder.looks_like_rtf1


def test_finished_is_after_the_agents_own_last_word(tmp_path: Path) -> None:
    recording = Recording(tmp_path, "rtf1")
    assert not recording.recorder.finished()
    recording.recorder.stdout(b"@@RALPH@@ " + encode(meta.result(ok=True)) + b"\n")
    assert recording.recorder.finished()


@pytest.mark.parametrize(
    ("event", "finished"),
    [
        (meta.error("log in", meta.ErrorClass.AUTH), True),  # it waits for a person, and there is none
        (meta.error("log in", meta.ErrorClass.AUTH, fatal=False), False),
        (meta.error("try again", meta.ErrorClass.OVERLOADED), False),
    ],
)
def test_a_login_that_is_asked_for_is_a_last_word(tmp_path: Path, event: TranscriptEvent, finished: bool) -> None:
    recording = Recording(tmp_path, "rtf1")
    recording.recorder.stdout(b"@@RALPH@@ " + encode(event) + b"\n")
    assert recording.recorder.finished() is finished


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
def test_no_escape_is_left_whatever_comes(line: str) -> None:
    assert not set(from_terminal(line)) & set("\r\b")


def test_on_a_terminal_lines_are_cleaned_and_the_raw_file_is_not(tmp_path: Path) -> None:
    recording = Recording(tmp_path, pty=True)
    recording.recorder.stdout(b"\x1b[32mgreen\x1b[0m\r\n")
    recording.recorder.finish()
    assert recording.events == [Text(Tag.AI, "green")]
    assert recording.out.read_bytes() == b"\x1b[32mgreen\x1b[0m\r\n"


def test_the_run_time_is_over_to_the_moment_while_a_spent_budget_leaves_room_for_a_last_word(tmp_path: Path) -> None:
    recorder = Recording(tmp_path, "rtf1").recorder
    now = time.monotonic()
    recorder.budget = (Limits(runtime=60.0, tokens=100), Usage(total_tokens=10), now - 59)
    assert (recorder.stop_reason(), recorder.deadline()) == (None, now + 1)
    recorder.stdout(b"@@RALPH@@ " + encode(UsageEvent(Usage(total_tokens=90))) + b"\n")
    assert recorder.stop_reason() is None
    assert recorder.deadline() == now + 1  # the run time is over before the spare time of the tokens is
    recorder.budget = (Limits(runtime=60.0, tokens=100), Usage(total_tokens=10), now - 60)
    assert "run time" in str(recorder.stop_reason())
