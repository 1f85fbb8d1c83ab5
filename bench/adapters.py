"""(f) Transcript adapters: how many bytes of each format they read per second."""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from bench.measure import MB
from bench.sessions import SESSIONS, Session
from bench.table import Row
from ralph.agents import adapters
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.transcripts.events import TranscriptEvent

#: In MB/s. Agents print kilobytes per second; this keeps twenty loops on one machine cheap.
_FLOOR = 20.0
#: For Codex's text output, whose lines have to be read in context.
_TEXT_FLOOR = 8.0
#: Lines that are timed together: few, so that at least one round is undisturbed by other processes.
_CHUNK = 500


def measure(*, quick: bool, only: str = "") -> list[Row]:
    """All sessions, or those whose names contain `only`, as in `codex, text`."""
    size, rounds = (1 * MB, 5) if quick else (6 * MB, 9)
    rows = []
    for session in SESSIONS:
        name = f"{session.adapter}, {session.form}"
        if only in name:
            sys.stderr.write(f"  {name}\n")
            rows.append(_row(session, session.lines(size), rounds))
    return rows


def _row(session: Session, lines: list[str], rounds: int) -> Row:
    megabytes = sum(len(line.encode()) + 1 for line in lines) / MB
    gc.collect()
    gc.set_threshold(50_000)  # as in a run
    gc.freeze()  # otherwise each garbage collection would scan the test data
    starts = range(0, len(lines), _CHUNK)
    ours, bare = [float("inf")] * len(starts), [float("inf")] * len(starts)
    for _ in range(rounds):
        feed = _feeder(session)
        for number, start in enumerate(starts):
            part = lines[start : start + _CHUNK]
            ours[number] = min(ours[number], _seconds(feed, part))
            if session.json:
                bare[number] = min(bare[number], _seconds(_decode, part))
    gc.unfreeze()
    # The fastest round of each chunk: other processes can only make it slower.
    speed = megabytes / sum(ours)
    floor = _TEXT_FLOOR if (session.adapter, session.json) == ("codex", False) else _FLOOR
    note = f"{len(lines):,} lines of {megabytes * MB / len(lines):.0f} bytes"
    if session.json:
        note += f"; decoding alone {megabytes / sum(bare):.0f} MB/s"
    return Row(
        "f", f"{session.adapter}, {session.form}", f"{speed:.0f} MB/s", f"≥ {floor:.0f} MB/s", speed >= floor, note
    )


def _feeder(session: Session) -> Callable[[list[str]], list[TranscriptEvent]]:
    """Feeds lines as a run does: many at once, through the safe adapter."""
    adapter = SafeAdapter(adapters.create(session.adapter))
    return adapter.feed_stderr_lines if session.stderr else adapter.feed_lines


def _seconds(work: Callable[[list[str]], object], lines: list[str]) -> float:
    before = time.perf_counter()
    work(lines)
    return time.perf_counter() - before


def _decode(lines: list[str]) -> None:
    for line in lines:
        msgspec.json.decode(line)
