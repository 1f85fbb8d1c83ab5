"""Writing to a real pipe or terminal that nobody reads."""

from __future__ import annotations

import os
import pty
import threading
import time
from typing import TYPE_CHECKING

import pytest

from ralph.ui.outlet import Outlet

if TYPE_CHECKING:
    from pathlib import Path

LINES = b"".join(b"line %06d %s\n" % (n, b"x" * 80) for n in range(5000))


def gap(lines: int) -> str:
    return f"[{lines} skipped]\n"


def read_all(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()


def test_a_pipe_that_nobody_reads_blocks_no_longer_than_the_patience() -> None:
    read, write = os.pipe()
    outlet = Outlet(write, gap, patience=0.3)
    began = time.monotonic()
    outlet.write(LINES)
    first = time.monotonic() - began
    for _ in range(100):
        outlet.write(LINES)
    assert 0.25 < first < 5
    assert time.monotonic() - began < first + 2
    os.close(read)
    os.close(write)


def test_a_reader_that_continues_sees_how_many_lines_were_skipped() -> None:
    read, write = os.pipe()
    outlet = Outlet(write, gap, patience=0.1)
    outlet.write(LINES)
    outlet.write(b"not seen\n", counts=False)
    outlet.write(b"not seen either\n")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(read_all(read)))
    reader.start()
    time.sleep(0.3)
    outlet.write(b"seen again\n")
    os.close(write)
    reader.join(10)
    lines = got[0].splitlines()
    before = lines.index(b"seen again") - 1
    assert lines[:before] == LINES.splitlines()[:before]
    assert lines[before:] == [b"[%d skipped]" % (5000 - before + 1), b"seen again"]


def test_a_slow_reader_gets_every_byte() -> None:
    read, write = os.pipe()
    outlet = Outlet(write, gap, patience=0.5)
    got = bytearray()

    def slowly() -> None:
        while chunk := os.read(read, 20_000):
            got.extend(chunk)
            time.sleep(0.02)

    reader = threading.Thread(target=slowly)
    reader.start()
    outlet.write(LINES)
    os.close(write)
    reader.join(20)
    os.close(read)
    assert bytes(got) == LINES


def test_a_stopped_terminal_blocks_no_longer_than_the_patience() -> None:
    master, slave = pty.openpty()
    outlet = Outlet(slave, gap, patience=0.3)
    began = time.monotonic()
    outlet.write(LINES)
    assert 0.25 < time.monotonic() - began < 5
    assert os.get_blocking(slave)  # the shell uses it, too
    os.close(master)
    os.close(slave)


def test_a_file_gets_every_byte(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        Outlet(file.fileno(), gap, patience=0.0).write(LINES)
    assert (tmp_path / "file").read_bytes() == LINES


def test_a_closed_pipe_is_an_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        Outlet(write, gap).write(LINES)
    os.close(write)


def test_without_patience_no_line_is_skipped() -> None:
    """`ralph show | less` can wait for as long as it takes."""
    read, write = os.pipe()
    writer = threading.Thread(target=lambda: (Outlet(write, gap, patience=None).write(LINES), os.close(write)))
    writer.start()
    time.sleep(0.5)
    assert writer.is_alive()
    assert read_all(read) == LINES
    writer.join(10)
