"""Running one command: how it ends, what it gets and what it prints."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from processes import alive, eventually, read_pid
from ralph.runners.process import PIPE_SIZE, Command, Deadlines, EndKind
from runners.conftest import CollectingSink

if TYPE_CHECKING:
    from pathlib import Path

    from runners.conftest import Runner


# -- how it ends


def test_the_exit_code_is_reported(runner: Runner) -> None:
    ended = runner.bash("exit 7")
    assert (ended.kind, ended.status) == (EndKind.EXITED, 7)
    assert ended.reason == "exited with code 7"


def test_a_signal_is_reported_by_name(runner: Runner) -> None:
    ended = runner.bash("kill -SEGV $$")
    assert (ended.kind, ended.status) == (EndKind.EXITED, -signal.SIGSEGV)
    assert "SIGSEGV" in ended.reason


def test_a_missing_program_is_reported(runner: Runner) -> None:
    ended = runner.run("no-such-program-here")
    assert ended.kind is EndKind.NOT_STARTED
    assert "no-such-program-here" in ended.reason
    assert "not found" in ended.reason


def test_a_missing_path_is_reported(runner: Runner) -> None:
    ended = runner.run("./missing/tool")
    assert ended.kind is EndKind.NOT_STARTED
    assert "'./missing/tool' was not found" in ended.reason


def test_a_file_that_is_not_executable_is_reported(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    ended = runner.run("./tool")
    assert ended.kind is EndKind.NOT_STARTED
    assert "permission denied" in ended.reason


def test_a_file_that_is_not_a_program_is_reported(runner: Runner, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_bytes(b"\x7fnothing that runs")
    tool.chmod(0o755)
    ended = runner.run("./tool")
    assert ended.kind is EndKind.NOT_STARTED
    assert "not a program" in ended.reason


def test_a_missing_interpreter_is_not_reported_as_a_missing_script(runner: Runner, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/no/such/interpreter\n")
    tool.chmod(0o755)
    ended = runner.run(str(tool))
    assert ended.kind is EndKind.NOT_STARTED
    assert "interpreter" in ended.reason


def test_programs_are_searched_in_the_path_of_the_child(runner: Runner, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "only-here"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    ended = runner.run("only-here", env={"PATH": f"/nowhere:{tool.parent}:/usr/bin:/bin"})
    assert ended.status == 0
    assert runner.sink.out == b"found\n"


def test_a_deleted_working_directory_is_reported(runner: Runner, tmp_path: Path) -> None:
    ended = runner.run("true", cwd=str(tmp_path / "gone"))
    assert ended.kind is EndKind.NOT_STARTED
    assert ended.reason == f"the working directory is gone: {tmp_path / 'gone'}"


def test_a_missing_interpreter_of_a_script_in_the_path_is_reported(runner: Runner, tmp_path: Path) -> None:
    tool = tmp_path / "only-here"
    tool.write_text("#!/no/such/interpreter\n")
    tool.chmod(0o755)
    ended = runner.run("only-here", env={"PATH": str(tmp_path)})
    assert "interpreter" in ended.reason


def test_a_working_directory_that_is_a_file_is_reported(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = runner.run("true", cwd=str(tmp_path / "file"))
    assert ended.kind is EndKind.NOT_STARTED
    assert "working directory" in ended.reason


def test_a_command_line_that_is_too_long_is_reported(runner: Runner) -> None:
    ended = runner.run("echo", "x" * 3_000_000)
    assert ended.kind is EndKind.NOT_STARTED
    assert "too long" in ended.reason
    assert "3,000,000" in ended.reason


def test_the_next_command_runs_after_one_that_could_not_start(runner: Runner) -> None:
    runner.run("no-such-program-here")
    assert runner.bash("echo next").status == 0
    assert runner.sink.out == b"next\n"


# -- deadlines


def test_an_idle_command_is_ended(runner: Runner) -> None:
    ended = runner.bash("echo hello; sleep 600", idle=0.3)
    assert ended.kind is EndKind.IDLE
    assert ended.reason == "no output for 0.3 s"
    assert runner.sink.out == b"hello\n"
    assert ended.seconds >= 0.3


def test_output_on_either_stream_is_not_silence(runner: Runner) -> None:
    ended = runner.bash("for i in 1 2 3 4 5 6 7 8; do sleep 0.2; echo x >&2; done", idle=1.2)
    assert (ended.kind, ended.status) == (EndKind.EXITED, 0)
    assert ended.seconds > 1.2


def test_the_wall_deadline_ends_a_command_that_keeps_printing(runner: Runner) -> None:
    ended = runner.bash("while :; do echo x; sleep 0.05; done", idle=30, wall=0.4)
    assert ended.kind is EndKind.WALL
    assert "0.4 s" in ended.reason


def test_a_command_without_early_output_is_ended(runner: Runner) -> None:
    ended = runner.bash("sleep 600", first_output=0.2, idle=60)
    assert ended.kind is EndKind.IDLE
    assert ended.reason == "no output in its first 0.2 s"


def test_early_output_lifts_the_first_output_deadline(runner: Runner) -> None:
    ended = runner.bash("echo hi; sleep 0.8", first_output=0.5, idle=60)
    assert (ended.kind, ended.status) == (EndKind.EXITED, 0)


def test_a_command_that_stays_after_its_final_message_is_ended(runner: Runner) -> None:
    sink = CollectingSink(done_when=b"RESULT")
    ended = runner.bash("echo RESULT; sleep 600", linger=0.2, sink=sink)
    assert ended.kind is EndKind.LINGERED
    assert sink.out == b"RESULT\n"


def test_the_sink_learns_when_the_command_itself_has_exited(runner: Runner) -> None:
    """What processes that it left print later is passed on too, but after that."""
    sink = CollectingSink()
    stray = "(while kill -0 $$ 2>/dev/null; do sleep 0.01; done; sleep 0.05; echo later) &"
    runner.bash(f"{stray} seq 1 300000; echo last", sink=sink)
    assert sink.own is not None
    assert sink.own.endswith(b"300000\nlast\n")
    assert sink.out == sink.own + b"later\n"


def test_the_sink_learns_that_a_command_is_about_to_be_ended(runner: Runner) -> None:
    sink = CollectingSink(done_when=b"RESULT")
    runner.bash("trap 'echo bye; exit' TERM; echo RESULT; while :; do sleep 0.05; done", linger=0.2, sink=sink)
    assert (sink.own, bytes(sink.out)) == (b"RESULT\n", b"RESULT\nbye\n")


def test_the_sink_can_end_a_command_with_a_reason(runner: Runner) -> None:
    sink = CollectingSink(reason_after_output="that is enough")
    ended = runner.bash("echo x; sleep 600", sink=sink)
    assert (ended.kind, ended.reason) == (EndKind.STOPPED, "that is enough")


def test_a_command_that_ignores_term_is_killed_after_the_grace_period(runner: Runner) -> None:
    ended = runner.bash("trap '' TERM; echo up; while :; do sleep 0.1; done", idle=0.5, grace=0.3)
    assert (ended.kind, ended.status) == (EndKind.IDLE, -signal.SIGKILL)


def test_output_after_term_is_kept(runner: Runner) -> None:
    ended = runner.bash("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done", idle=0.5, grace=30)
    assert (ended.kind, ended.status) == (EndKind.IDLE, 3)
    assert runner.sink.out == b"up\nbye\n"


def test_a_stopped_process_is_ended(runner: Runner) -> None:
    ended = runner.bash("kill -STOP $$", idle=0.3, grace=30)
    assert (ended.kind, ended.status) == (EndKind.IDLE, -signal.SIGTERM)


# -- what it gets


def test_the_prompt_arrives_on_stdin_which_is_then_closed(runner: Runner) -> None:
    ended = runner.run("cat", stdin=b"do the work\n")
    assert ended.status == 0
    assert runner.sink.out == b"do the work\n"


def test_without_a_prompt_stdin_is_empty(runner: Runner) -> None:
    assert runner.run("cat").status == 0
    assert runner.sink.out == b""


def test_a_large_prompt_arrives_whole(runner: Runner) -> None:
    ended = runner.run("wc", "-c", stdin=b"p" * 3_000_000)
    assert ended.status == 0
    assert runner.sink.out.split() == [b"3000000"]


def test_a_child_that_never_reads_its_prompt_does_not_block(runner: Runner) -> None:
    ended = runner.bash("echo ready; sleep 0.2; echo done", stdin=b"p" * 3_000_000)
    assert ended.status == 0
    assert runner.sink.out == b"ready\ndone\n"


def test_a_child_that_closes_its_stdin_does_not_block(runner: Runner) -> None:
    ended = runner.bash("exec <&-; echo ready; sleep 0.2; echo done", stdin=b"p" * 3_000_000)
    assert ended.status == 0
    assert runner.sink.out == b"ready\ndone\n"


def test_environment_and_working_directory_are_set(runner: Runner, tmp_path: Path) -> None:
    place = tmp_path / "a folder"
    place.mkdir()
    env = {"PATH": os.environ["PATH"], "ONLY": "this \udcff"}
    assert runner.bash('pwd; printf %s "$ONLY" | od -An -tx1', cwd=str(place), env=env).status == 0
    shown, bytes_ = runner.sink.out.decode().splitlines()
    assert shown == str(place)
    assert bytes.fromhex(bytes_) == b"this \xff"


def test_the_child_inherits_only_three_descriptors(runner: Runner) -> None:
    script = "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1])"
    assert runner.run(sys.executable, "-c", script, stdin=b"x").status == 0
    assert runner.sink.out == b"[0, 1, 2]\n"


def test_a_command_can_get_a_fourth_descriptor(runner: Runner, tmp_path: Path) -> None:
    heard: list[bytes] = []
    script = "echo out; echo aside >&3; echo err >&2; exec 3>&-; echo more"
    command = Command(["bash", "-c", script], dict(os.environ), str(tmp_path), aside=heard.append)
    for _ in range(3):  # the descriptors in the keeper have other numbers each time
        assert runner.supervisor.run(command, runner.sink, Deadlines(wall=20)).status == 0
    assert b"".join(heard) == b"aside\n" * 3
    assert bytes(runner.sink.out) == b"out\nmore\n" * 3
    refused = Command(["no-such-program"], dict(os.environ), str(tmp_path), aside=heard.append)
    assert runner.supervisor.run(refused, runner.sink, Deadlines(wall=20)).kind is EndKind.NOT_STARTED
    assert b"".join(heard) == b"aside\n" * 3


def test_output_on_the_fourth_descriptor_is_not_silence(runner: Runner, tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5; do echo x >&3; sleep 0.2; done"
    command = Command(["bash", "-c", script], dict(os.environ), str(tmp_path), aside=lambda _: None)
    assert runner.supervisor.run(command, runner.sink, Deadlines(idle=0.6, wall=20)).kind is EndKind.EXITED


def test_the_child_gets_default_signal_handling(runner: Runner) -> None:
    """No signal is ignored or blocked: a `yes | head` in the agent must end."""
    assert runner.run("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status").status == 0
    # Signals above 31 are real-time signals; 32 and 33 belong to the C library and cannot be reset.
    ours = (1 << 31) - 1
    values = {line.split(":")[0]: int(line.split()[1], 16) & ours for line in runner.sink.out.decode().splitlines()}
    assert values == {"SigBlk": 0, "SigIgn": 0}


def test_the_child_leads_its_own_session(runner: Runner) -> None:
    assert runner.run("sh", "-c", "echo $$; cut -d' ' -f6 /proc/$$/stat").status == 0
    pid, session = runner.sink.out.split()
    assert pid == session


# -- what it prints


def test_stdout_and_stderr_are_kept_apart(runner: Runner) -> None:
    assert runner.bash("echo out; echo err >&2; echo out2").status == 0
    assert (runner.sink.out, runner.sink.err) == (b"out\nout2\n", b"err\n")


def test_every_byte_is_unchanged(runner: Runner, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4000
    (tmp_path / "data").write_bytes(data)
    assert runner.run("cat", "data").status == 0
    assert runner.sink.out == data


def test_a_burst_before_the_exit_is_complete(runner: Runner) -> None:
    script = "import os,sys; sys.stdout.buffer.write(b'z' * 10_000_000); sys.stdout.flush(); os._exit(0)"
    assert runner.run(sys.executable, "-c", script).status == 0
    assert len(runner.sink.out) == 10_000_000


def test_a_pipe_holds_a_mebibyte(runner: Runner) -> None:
    """Some CLIs write without blocking and exit: whatever fits into the pipe is kept."""
    script = (
        "import os; os.set_blocking(1, False); data = b'z' * 1_000_000\n"
        "n = os.write(1, data); os.write(2, str(n).encode()); os._exit(0)"
    )
    assert runner.run(sys.executable, "-c", script).status == 0
    assert PIPE_SIZE == 1 << 20
    assert (runner.sink.err, len(runner.sink.out)) == (b"1000000", 1_000_000)


def test_a_child_that_closes_its_output_is_waited_for(runner: Runner, tmp_path: Path) -> None:
    ended = runner.bash("echo x; exec >&- 2>&-; sleep 0.4; echo done > later; exit 4")
    assert (ended.kind, ended.status) == (EndKind.EXITED, 4)
    assert (tmp_path / "later").read_text() == "done\n"


def test_a_child_that_closes_its_output_still_has_deadlines(runner: Runner) -> None:
    assert runner.bash("exec >&- 2>&-; sleep 600", idle=0.3).kind is EndKind.IDLE


# -- a stop


def test_a_stop_ends_the_command_with_term(runner: Runner) -> None:
    sink = CollectingSink(on_output=lambda: None if runner.stop.kind else os.kill(os.getpid(), signal.SIGINT))
    ended = runner.bash(
        "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done", sink=sink, grace=60, idle=50
    )
    assert (ended.kind, ended.reason) == (EndKind.STOPPED, "interrupted")
    assert sink.out == b"up\nbye\n"


def test_a_second_stop_skips_the_grace_period(runner: Runner) -> None:
    sink = CollectingSink(on_output=lambda: os.kill(os.getpid(), signal.SIGINT))
    started = time.monotonic()
    # It prints when TERM arrives, which triggers the second signal; then it continues.
    ended = runner.bash("trap 'echo no' TERM; echo up; while :; do sleep 0.05; done", sink=sink, grace=60)
    assert (ended.kind, ended.status) == (EndKind.STOPPED, -signal.SIGKILL)
    assert time.monotonic() - started < 50  # the grace period alone is 60


def test_a_late_kill_does_not_end_the_next_command(runner: Runner) -> None:
    """A kill that reaches the keeper after the end of a command must not affect the next one."""
    assert runner.bash("true").status == 0
    keeper = runner.supervisor._keeper
    assert keeper is not None
    keeper.channel.send({"op": "kill"})
    ended = runner.bash("sleep 0.3; echo whole; exit 9")
    assert (ended.status, runner.sink.out) == (9, b"whole\n")


# -- many runs


@pytest.mark.parametrize("pty", [False, True])
def test_descriptors_do_not_grow_over_many_runs(runner: Runner, pty: bool) -> None:
    def open_now() -> tuple[int, int]:
        keeper = runner.supervisor._keeper
        assert keeper is not None
        return len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{keeper.pid}/fd"))

    runner.bash("true", pty=pty)
    before = open_now()
    for n in range(12):
        match n % 3:
            case 0:
                runner.bash("echo x", stdin=b"prompt", pty=pty)
            case 1:
                runner.run("no-such-program-here", pty=pty)
            case _:
                runner.bash("(sleep 600 &) ; exit 1", pty=pty, grace=0.05)
    assert open_now() == before


def test_an_exception_in_the_sink_leaves_no_process(runner: Runner, tmp_path: Path) -> None:
    class FullDiskError(Exception):
        pass

    def fail() -> None:
        raise FullDiskError

    with pytest.raises(FullDiskError):
        runner.bash("echo $$ > pid; echo x; sleep 600", sink=CollectingSink(on_output=fail))
    pid = read_pid(tmp_path / "pid")
    runner.supervisor.close()
    assert eventually(lambda: not alive(pid))
