"""Requests are files: whole or not there, in order, private."""

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
    box = Requests(RunPaths(tmp_path))
    box.make()
    return box


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
def test_asking_again_never_asks_for_less(before: Stop | None, now: bool, after: Stop) -> None:
    assert escalated(before, now=now) is after


def test_a_pause_is_asked_for_and_ended(requests: Requests) -> None:
    assert requests.pause() is None
    requests.ask_pause(now=False)
    assert requests.pause() is Pause.AFTER
    requests.ask_pause(now=True)
    requests.ask_pause(now=False)
    assert requests.pause() is Pause.NOW
    assert requests.end_pause()
    assert requests.pause() is None
    assert not requests.end_pause()


def test_notes_keep_their_order_beyond_the_width_of_their_numbers(requests: Requests, tmp_path: Path) -> None:
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


def test_for_the_next_process_only_notes_are_left(requests: Requests) -> None:
    requests.ask_stop(now=True)
    requests.ask_pause(now=True)
    requests.add_note("keep me")
    requests.make()
    assert (requests.stop(), requests.pause(), [n.text for n in requests.notes()]) == (None, None, ["keep me"])


@pytest.mark.parametrize("content", [b"", b"sto", b"\xff\xfe", b"now\n", b"x" * 100_000])
def test_what_we_would_not_write_is_no_request(requests: Requests, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "control" / "stop").write_bytes(content)
    assert requests.stop() is None


def test_what_is_being_written_is_no_note(requests: Requests, tmp_path: Path) -> None:
    (tmp_path / "control" / "notes" / "half.tmp").write_text("x")
    (tmp_path / "control" / "notes" / "README.md").write_text("x")
    assert requests.notes() == []


def test_nobody_need_hear_the_bell(requests: Requests, tmp_path: Path) -> None:
    requests.ring()
    os.mkfifo(tmp_path / "control" / "bell")
    requests.ring()
    requests.ask_stop(now=False)
    assert requests.stop() is Stop.FINISH


def test_a_folder_that_is_gone_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"):
        Requests(RunPaths(tmp_path / "missing")).ask_stop(now=False)
