"""Unusual prompts, and prompt files that vanish."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

from faults.case import fault

if TYPE_CHECKING:
    from pathlib import Path

    from faults.place import Place

_KEEPS = "data = sys.stdin.buffer.read(); open(os.environ['FAULT_SIDE'] + '/prompt', 'wb').write(data); say('read')"
_LONG = "".join(f"{n:06d} naïve – 日本 line of a long prompt\n" for n in range(7000))


@fault("a prompt of 0 bytes", "64, nothing run; reported")
def empty(at: Place) -> None:
    (at.repo / "PROMPT.md").write_bytes(b"")
    at.see(at.run(at.agent(_KEEPS), "1").ended())
    at.reported("is empty")


@fault("a prompt of 300 KB on stdin", "2 limit · ok; every byte")
def long_stdin(at: Place) -> None:
    (at.repo / "PROMPT.md").write_text(_LONG)
    at.see(at.run(at.agent(_KEEPS), "1").ended())
    at.check("every byte", (at.side / "prompt").read_text() == _LONG)


@fault("… as a file that the command names", "2 limit · ok; every byte")
def long_file(at: Place) -> None:
    (at.repo / "PROMPT.md").write_text(_LONG)
    command = at.agent(
        "open(os.environ['FAULT_SIDE'] + '/prompt', 'wb').write(open(sys.argv[1], 'rb').read()); say('read')"
    )
    at.see(at.run(f"{command} {{prompt}}", "1").ended())
    at.check("every byte", (at.side / "prompt").read_text() == _LONG)


@fault("… as an argument, longer than any system allows", "64, nothing run; reported")
def long_argument(at: Place) -> None:
    (at.repo / "PROMPT.md").write_text(_LONG)
    _custom(at, "arg")
    at.see(at.start("run", "--ui", "plain", "1").ended())
    at.reported(f"{len(_LONG.encode()):,} bytes", "prompt_mode: stdin")


@fault("a prompt that starts with a dash, as an argument", "2 limit · ok; not read as a flag")
def dash(at: Place) -> None:
    (at.repo / "PROMPT.md").write_text("--version of nothing\n- and a list\n")
    _custom(at, "arg")
    at.see(at.start("run", "--ui", "plain", "1").ended())
    got = (at.side / "argument").read_text()
    at.check(
        "not read as a flag", not got.startswith("-") and got.endswith("--version of nothing\n- and a list\n"), got
    )


@fault("a prompt that starts with a dash, on stdin", "2 limit · ok; every byte")
def dash_stdin(at: Place) -> None:
    (at.repo / "PROMPT.md").write_text("-- do it\n")
    at.see(at.run(at.agent(_KEEPS), "1").ended())
    at.check("every byte", (at.side / "prompt").read_text() == "-- do it\n")


@fault("a prompt that is not UTF-8", "2 limit · ok; every byte")
def not_utf8(at: Place) -> None:
    data = b"caf\xe9 \xff\xfe \xf0\x9f\n"
    (at.repo / "PROMPT.md").write_bytes(data)
    at.see(at.run(at.agent(_KEEPS), "1").ended())
    at.check("every byte", (at.side / "prompt").read_bytes() == data)


@fault("the prompt file vanishes between iterations", "2 limit · ok×2; reported; same prompt sent")
def vanishes(at: Place) -> None:
    at.see(at.run(at.agent(f"{_KEEPS}\nif ITERATION == 1: os.remove('PROMPT.md')"), "2").ended())
    at.reported("PROMPT.md is gone")
    at.check("same prompt sent", (at.side / "prompt").read_text() == "Do the next thing on the list.\n")


@fault("the prompt file becomes a folder", "1 failed · ok; reported")
def unreadable(at: Place) -> None:
    at.see(at.run(at.agent("say('here'); os.remove('PROMPT.md'); os.mkdir('PROMPT.md')"), "3").ended())
    at.reported("iteration 2 cannot start", "PROMPT.md cannot be read")


@fault("an editor saves the prompt file during the run", "2 limit · ok×2")
def being_saved(at: Place) -> None:
    running = at.run(at.agent("say('here'); ready()\nif ITERATION == 1: os.rename('PROMPT.md', 'PROMPT.md~')"), "2")
    at.until((at.repo / "PROMPT.md~").exists, "the save")
    at.ready()
    time.sleep(0.5)
    (at.repo / "PROMPT.md~").rename(at.repo / "PROMPT.md")
    at.see(running.ended())


def _custom(at: Place, mode: str) -> None:
    shutil.copy(_recorder(at), at.repo / "recorder.py")
    (at.repo / "ralph.yml").write_text(
        f"agent: custom\ncommand: {sys.executable}\nargs: [-ISB, recorder.py]\nprompt_mode: {mode}\n"
    )


def _recorder(at: Place) -> Path:
    at.agent("open(os.environ['FAULT_SIDE'] + '/argument', 'w').write(sys.argv[-1]); say('read')", "recorder")
    return at.root / "recorder.py"
