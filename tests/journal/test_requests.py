"""Requests are files: written atomically, read in order."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from ralph.errors import RunError
from ralph.journal.layout import RunPaths
from ralph.journal.requests import Pause, Requests, Stop, escalated

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def requests(tmp_path: Path) -> Requests:
    requests = Requests(RunPaths(tmp_path))
    requests.prepare()
    return requests


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (None, False, Stop.FINISH),
        (None, True, Stop.NOW),
        (Stop.FINISH, False, Stop.FINISH),
        (Stop.FINISH, True, Stop.NOW),
        (Stop.NOW, False, Stop.NOW),
        (Stop.NOW, True, Stop.AT_ONCE),
        (Stop.AT_ONCE, False, Stop.AT_ONCE),
        (Stop.AT_ONCE, True, Stop.AT_ONCE),
    ],
)
def test_a_second_stop_request_never_weakens_the_first(before: Stop | None, now: bool, after: Stop) -> None:
    assert escalated(before, now=now) is after


def test_a_pause_is_requested_and_ended(requests: Requests) -> None:
    assert requests.pause() is None
    requests.ask_pause(now=False)
    assert requests.pause() is Pause.AFTER
    requests.ask_pause(now=True)
    requests.ask_pause(now=False)
    assert requests.pause() is Pause.NOW
    assert requests.end_pause()
    assert requests.pause() is None
    assert not requests.end_pause()


def test_notes_keep_their_order_when_their_numbers_grow_longer(requests: Requests, tmp_path: Path) -> None:
    (tmp_path / "control" / "notes" / "9999-aa.md").write_text("before")
    for text in ("one", "two"):
        requests.add_note(text)
    assert [note.text for note in requests.notes()] == ["before", "one", "two"]


def test_many_writers_lose_nothing(requests: Requests) -> None:
    def write(who: int) -> None:
        for number in range(20):
            requests.add_note(f"{who} {number}")

    writers = [threading.Thread(target=write, args=(who,)) for who in range(5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = [tuple(map(int, note.text.split())) for note in requests.notes()]
    assert len(set(found)) == 100
    for who in range(5):
        assert [n for w, n in found if w == who] == list(range(20))


def test_only_notes_survive_for_the_next_process(requests: Requests) -> None:
    requests.ask_stop(now=True)
    requests.ask_pause(now=True)
    requests.add_note("keep me")
    requests.prepare()
    assert (requests.stop(), requests.pause(), [n.text for n in requests.notes()]) == (None, None, ["keep me"])


@pytest.mark.parametrize("content", [b"", b"sto", b"\xff\xfe", b"now\n", b"x" * 100_000])
def test_unknown_content_is_not_a_request(requests: Requests, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "control" / "stop").write_bytes(content)
    assert requests.stop() is None


def test_a_file_that_is_being_written_is_not_a_note(requests: Requests, tmp_path: Path) -> None:
    (tmp_path / "control" / "notes" / "half.tmp").write_text("x")
    (tmp_path / "control" / "notes" / "README.md").write_text("x")
    assert requests.notes() == []


def test_requests_work_when_nobody_reads_the_fifo(requests: Requests, tmp_path: Path) -> None:
    requests.ring()
    os.mkfifo(tmp_path / "control" / "bell")
    requests.ring()
    requests.ask_stop(now=False)
    assert requests.stop() is Stop.FINISH


def test_a_deleted_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"):
        Requests(RunPaths(tmp_path / "missing")).ask_stop(now=False)
