"""(e) The time from when an agent writes a line until a reader of ralph's output can read it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

from bench.measure import LIMIT_REACHED, custom_agent, environment, percentile, ralph, workspace
from bench.table import Row

if TYPE_CHECKING:
    from pathlib import Path

_AIM_MS = 20.0
_EVERY = 0.004
_STAMP = re.compile(rb"sent at (\d+)\.")

# CLOCK_MONOTONIC is one clock for all processes, so the difference needs no correction.
_AGENT = """
import sys, time
for _ in range({count}):
    line = '@@RALPH@@ {{"type":"text","tag":"AI","text":"sent at %d."}}' % time.monotonic_ns()
    print(line, flush=True)
    time.sleep({every})
"""


def measure(*, quick: bool) -> list[Row]:
    count = 500 if quick else 3000
    with workspace() as root:
        script = root / "agent.py"
        script.write_text(_AGENT.format(count=count, every=_EVERY))
        custom_agent(root / "repo", sys.executable, [str(script)])
        return [
            _row("a pipe, --ui plain,", _through_pipe(root), count),
            _row("a terminal, --ui rich,", _through_terminal(root), count),
        ]


def _row(where: str, delays: list[float], count: int) -> Row:
    if len(delays) != count:
        raise RuntimeError(f"{count} lines were printed and {len(delays)} were shown")
    p50, p99 = percentile(delays, 0.5) * 1000, percentile(delays, 0.99) * 1000
    note = f"p50 {p50:.2f} ms, most {max(delays) * 1000:.1f} ms; {count} lines, one every {_EVERY * 1000:.0f} ms"
    return Row("e", f"a line to {where} p99", f"{p99:.2f} ms", f"< {_AIM_MS:.0f} ms", p99 < _AIM_MS, note)


def _through_pipe(root: Path) -> list[float]:
    with subprocess.Popen(_command("plain"), cwd=root / "repo", env=environment(root), stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        delays = _read(ours.stdout.fileno())
    return _checked(delays, ours.returncode)


def _through_terminal(root: Path) -> list[float]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    env = environment(root) | {"TERM": "xterm-256color"}
    with subprocess.Popen(
        _command("rich"), cwd=root / "repo", env=env, stdin=slave, stdout=slave, stderr=slave
    ) as ours:
        os.close(slave)
        delays = _read(master)
    os.close(master)
    return _checked(delays, ours.returncode)


def _command(ui: str) -> list[str]:
    return ralph("run", "1", "--transcript", "rtf1", "--ui", ui)


def _checked(delays: list[float], code: int) -> list[float]:
    if code != LIMIT_REACHED:
        raise RuntimeError(f"ralph ended with {code}")
    return delays


def _read(fd: int) -> list[float]:
    """How old each line was when it could be read. Repetitions in the report at the end do not count."""
    delays: list[float] = []
    seen: set[bytes] = set()
    held = b""
    while True:
        try:
            chunk = os.read(fd, 1 << 16)
        except OSError:  # EIO: all writers of a PTY are gone
            chunk = b""
        now = time.monotonic_ns()
        if not chunk:
            return delays
        whole, _, held = (held + chunk).rpartition(b"\n")
        for stamp in _STAMP.findall(whole):
            if stamp not in seen:
                seen.add(stamp)
                delays.append((now - int(stamp)) / 1e9)
