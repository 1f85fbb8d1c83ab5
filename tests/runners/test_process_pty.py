"""A command on its own terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ralph.runners.process import EndKind

if TYPE_CHECKING:
    from pathlib import Path

    from runners.conftest import Runner


def test_the_command_sees_a_terminal(runner: Runner) -> None:
    ended = runner.run(sys.executable, "-c", "import os; print([os.isatty(n) for n in (0, 1, 2)])", pty=True)
    assert ended.status == 0
    assert runner.sink.out == b"[True, True, True]\n"


def test_without_a_pty_the_command_sees_no_terminal(runner: Runner) -> None:
    runner.run(sys.executable, "-c", "import os; print([os.isatty(n) for n in (0, 1, 2)])")
    assert runner.sink.out == b"[False, False, False]\n"


def test_the_terminal_is_the_controlling_one_and_has_a_size(runner: Runner) -> None:
    script = "import os; os.close(os.open('/dev/tty', os.O_RDWR)); print(*os.get_terminal_size(1))"
    assert runner.run(sys.executable, "-c", script, pty=True).status == 0
    columns, rows = map(int, runner.sink.out.split())
    assert columns >= 80
    assert rows >= 24


def test_the_working_directory_is_set(runner: Runner, tmp_path: Path) -> None:
    place = tmp_path / "deep er"
    place.mkdir()
    runner.bash("pwd", pty=True, cwd=str(place))
    assert runner.sink.out.decode().strip() == str(place)


def test_line_ends_are_unchanged(runner: Runner) -> None:
    assert runner.bash("printf 'a\\nb\\r\\nc'", pty=True).status == 0
    assert runner.sink.out == b"a\nb\r\nc"


def test_a_prompt_on_stdin_arrives_whole_and_is_not_echoed(runner: Runner) -> None:
    assert runner.run("wc", "-c", stdin=b"p" * 300_000, pty=True).status == 0
    assert runner.sink.out.split() == [b"300000"]


def test_a_burst_before_the_exit_is_complete(runner: Runner) -> None:
    script = "import os,sys; sys.stdout.buffer.write(b'z' * 2_000_000); sys.stdout.flush(); os._exit(0)"
    assert runner.run(sys.executable, "-c", script, pty=True).status == 0
    assert len(runner.sink.out) == 2_000_000


def test_deadlines_apply(runner: Runner) -> None:
    assert runner.bash("trap '' HUP TERM; echo up; sleep 600", pty=True, idle=0.3).kind is EndKind.IDLE
    assert runner.sink.out == b"up\n"


def test_a_command_that_waits_for_input_is_ended(runner: Runner) -> None:
    """Nobody answers a question on this terminal, so the idle deadline ends the command."""
    assert runner.bash("read answer; echo got", pty=True, idle=0.3).kind is EndKind.IDLE


def test_closing_the_terminal_before_the_exit_causes_no_hangup(runner: Runner) -> None:
    """Coreutils do this: they close stdout and stderr, then exit."""
    script = "import os, time; print('said', flush=True); os.close(1); os.close(2); time.sleep(0.5); os._exit(7)"
    ended = runner.run(sys.executable, "-c", script, stdin=b"prompt", pty=True)
    assert (ended.kind, ended.status, runner.sink.out) == (EndKind.EXITED, 7, b"said\n")
