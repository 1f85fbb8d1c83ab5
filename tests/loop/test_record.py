"""From bytes to disk, then to events, then to the journal and the screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ralph.agents import adapters as registry
from ralph.journal.writer import Appender
from ralph.judging.observe import Observation
from ralph.judging.output import OutputReader
from ralph.judging.signals import Markers
from ralph.loop.limits import Limits
from ralph.loop.record import Budget, Recorder
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent, encode
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from pathlib import Path


class Recording:
    def __init__(
        self, folder: Path, transcript: str = "plain", *, pty: bool = False, budget: Budget | None = None
    ) -> None:
        self.events: list[TranscriptEvent] = []
        self.out, self.err = folder / "out", folder / "err"
        seen = Observation(Markers())
        self.recorder = Recorder(
            OutputReader(SafeAdapter(registry.create(transcript)), seen, pty=pty),
            seen,
            (Appender(self.out), Appender(self.err)),
            self.events.extend,
            plain=transcript == "plain",
            budget=budget,
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


def test_an_agent_is_finished_after_its_result(tmp_path: Path) -> None:
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
def test_an_agent_that_asks_for_a_login_is_finished(tmp_path: Path, event: TranscriptEvent, finished: bool) -> None:
    recording = Recording(tmp_path, "rtf1")
    recording.recorder.stdout(b"@@RALPH@@ " + encode(event) + b"\n")
    assert recording.recorder.finished() is finished


def test_terminal_output_is_cleaned_but_the_raw_file_is_not(tmp_path: Path) -> None:
    recording = Recording(tmp_path, pty=True)
    recording.recorder.stdout(b"\x1b[32mgreen\x1b[0m\r\n")
    recording.recorder.finish()
    assert recording.events == [Text(Tag.AI, "green")]
    assert recording.out.read_bytes() == b"\x1b[32mgreen\x1b[0m\r\n"


def test_the_run_time_limit_ends_an_agent_on_time(tmp_path: Path) -> None:
    now = time.monotonic()
    recorder = Recording(tmp_path, budget=Budget(Limits(runtime=60.0), run_started=now - 60)).recorder
    assert "run time" in str(recorder.stop_reason())


def test_a_spent_token_budget_leaves_time_for_a_last_word(tmp_path: Path) -> None:
    now = time.monotonic()
    budget = Budget(Limits(runtime=60.0, tokens=100), Usage(total_tokens=10), now - 59)
    recorder = Recording(tmp_path, "rtf1", budget=budget).recorder
    assert (recorder.stop_reason(), recorder.deadline()) == (None, now + 1)
    recorder.stdout(b"@@RALPH@@ " + encode(UsageEvent(Usage(total_tokens=90))) + b"\n")
    assert recorder.stop_reason() is None
    assert recorder.deadline() == now + 1  # the run time limit comes before the end of that time


def test_without_a_limit_nothing_ends_an_agent_but_an_interruption(tmp_path: Path) -> None:
    recorder = Recording(tmp_path, "rtf1").recorder
    recorder.stdout(b"@@RALPH@@ " + encode(UsageEvent(Usage(total_tokens=10**9))) + b"\n")
    assert (recorder.stop_reason(), recorder.deadline()) == (None, None)
