"""ralph's own stdin, stdout and stderr."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from faults.case import fault

if TYPE_CHECKING:
    from faults.place import Place

#: More than a pipe can hold.
_TALKS = "for n in range(20000): say(f'line {n} ' + 'x' * 80)\nsay('<promise>COMPLETE</promise>')"


@fault("the reader of its stdout goes away (| head -1)", "143 terminated · interrupted; reported")
def reader_gone(at: Place) -> None:
    with subprocess.Popen(["head", "-1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as head:
        running = at.run(at.agent(_TALKS + "\ntime.sleep(300)"), stdout=head.stdin)
        assert head.stdin is not None
        head.stdin.close()
        code = running.ended()
    at.see(code)
    at.reported("its output cannot be written")


@fault("the reader of its stdout stops reading", "0 complete · ok; not blocked")
def reader_stops(at: Place) -> None:
    _unread(at, "plain")


@fault("… of --ui json", "0 complete · ok; not blocked", short=False, bound=120)
def reader_stops_json(at: Place) -> None:
    _unread(at, "json")


def _unread(at: Place, ui: str) -> None:
    read, write = os.pipe()
    running = at.run(at.agent(_TALKS), "--ui", ui, stdout=write)
    os.close(write)
    code = running.ended(60)
    at.see(code)
    at.check("not blocked", True)
    os.close(read)


@fault("… and resumes later", "0 complete · ok; gap reported; summary shown")
def reader_pauses(at: Place) -> None:
    read, write = os.pipe()
    agent = _TALKS.partition("say('<p")[0] + "ready(); time.sleep(9); say('<promise>COMPLETE</promise>')"
    running = at.run(at.agent(agent), stdout=write)
    os.close(write)
    at.ready()
    time.sleep(1.0)
    with open(read, "rb") as reader:
        shown = reader.read()
    at.see(running.ended())
    at.check("gap reported", b"while the output was not read" in shown, shown[-200:])
    at.check("summary shown", b"Journal" in shown, shown[-200:])


@fault("… and Ctrl-C", "130 interrupted · interrupted; in time")
def reader_stops_interrupted(at: Place) -> None:
    read, write = os.pipe()
    running = at.run(at.agent("ready()\nwhile True: say('x' * 100)"), stdout=write)
    os.close(write)
    at.ready()
    time.sleep(1.5)
    began = time.monotonic()
    running.send(signal.SIGINT)
    code = running.ended(30)
    took = time.monotonic() - began
    at.see(code)
    at.check("in time", took < 10, f"{took:.1f} s")
    os.close(read)


@fault("a slow reader", "0 complete · ok; every line")
def slow_reader(at: Place) -> None:
    read, write = os.pipe()
    running = at.run(at.agent(_TALKS.replace("20000", "3000")), stdout=write)
    os.close(write)
    shown = bytearray()
    with open(read, "rb", buffering=0) as reader:
        while chunk := reader.read(4096):
            shown += chunk
            time.sleep(0.02)
    at.see(running.ended())
    lines = shown.count(b"xxx\n")
    at.check("every line", lines == 3000, lines)


@fault("a terminal that is stopped (Ctrl-S)", "0 complete · ok; not blocked")
def stopped_terminal(at: Place) -> None:
    master, slave = pty.openpty()
    at.env["TERM"] = "xterm"
    command = at.agent(_TALKS)
    running = at.start("run", "--agent-cmd", command, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    code = running.ended(60)
    at.see(code)
    at.check("not blocked", True)
    os.close(master)


@fault("its stdout is a full device", "143 terminated · none; reported")
def full_device(at: Place) -> None:
    with open("/dev/full", "wb") as full:
        code = at.run(at.agent("work()"), stdout=full).ended()
    at.see(code)
    at.reported("No space left")


@fault("stdin is closed", "0 complete · ok")
def no_stdin(at: Place) -> None:
    _closed(at, 0)


@fault("stdout is closed", "0 complete · ok")
def no_stdout(at: Place) -> None:
    _closed(at, 1)


@fault("stdin, stdout and stderr are closed", "0 complete · ok")
def no_streams(at: Place) -> None:
    _closed(at, 0, 1, 2)


def _closed(at: Place, *fds: int) -> None:
    def close() -> None:
        for fd in fds:
            os.close(fd)

    agent = at.agent("say('one')\nif ITERATION == 2: say('<promise>COMPLETE</promise>')")
    record = at.see(at.run(agent, preexec_fn=close).ended())
    at.observed = [said.replace("ok×2", "ok") for said in at.observed]
    if record.root is not None and b"\xe2\x94\x81" in (record.root / "events.jsonl").read_bytes():
        at.wrong.append("the screen was written into the journal")
