"""`--interactive` on a terminal of its own: go on, stop, stop asking, Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self

import pytest

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = "Go on?"
LOGIN = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"


class Terminal:
    """ralph on a PTY, as its controlling terminal, so that Ctrl-C is a signal."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOGIN, sys.executable, "-m", "ralph", "run", "-i", "--ui", "plain", *arguments],
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)
        os.close(self.master)

    def read(self, until: str, times: int = 1, timeout: float = 20) -> None:
        deadline = time.monotonic() + timeout
        while self.text.count(until) < times:
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{until!r} did not come: {self.text}"
            try:
                self.text += os.read(self.master, 65536).decode("utf-8", "replace")
            except OSError:
                break

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        self.read("never printed", timeout=20)
        return self.process.wait(20)


def test_enter_goes_on(repo: Path) -> None:
    with Terminal(repo, "2", "--agent-cmd", "echo turn-$RALPH_ITERATION") as terminal:
        terminal.read(QUESTION)
        assert "turn-2" not in terminal.text
        terminal.type("\n")
        assert terminal.end() == 2
        assert "turn-2" in terminal.text
        assert terminal.text.count(QUESTION) == 1  # nothing to ask after the last one


@pytest.mark.parametrize("answer", ["s\n", "stop\n", "\x04"])
def test_stop_ends_the_run(repo: Path, answer: str) -> None:
    with Terminal(repo, "5", "--agent-cmd", "echo turn-$RALPH_ITERATION") as terminal:
        terminal.read(QUESTION)
        terminal.type(answer)
        assert terminal.end() == 130
        assert "you chose to stop" in terminal.text
        assert "turn-2" not in terminal.text


def test_always_asks_no_more(repo: Path) -> None:
    with Terminal(repo, "4", "--agent-cmd", "echo turn-$RALPH_ITERATION") as terminal:
        terminal.read(QUESTION)
        terminal.type("a\n")
        assert terminal.end() == 2
        assert "turn-4" in terminal.text
        assert terminal.text.count(QUESTION) == 1


def test_an_answer_that_is_none_asks_again(repo: Path) -> None:
    with Terminal(repo, "5", "--agent-cmd", "echo hi") as terminal:
        terminal.read(QUESTION)
        terminal.type("perhaps\n")
        terminal.read(QUESTION, times=2)
        terminal.type("s\n")
        assert terminal.end() == 130


def test_ctrl_c_at_the_question_is_an_interruption(repo: Path) -> None:
    with Terminal(repo, "5", "--agent-cmd", "echo hi") as terminal:
        terminal.read(QUESTION)
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "interrupted" in terminal.text
        assert "you chose to stop" not in terminal.text
        assert "Traceback" not in terminal.text


def test_what_was_typed_earlier_is_no_answer(repo: Path) -> None:
    with Terminal(repo, "5", "--agent-cmd", "echo working; sleep 1; echo turn-$RALPH_ITERATION") as terminal:
        terminal.read("working")
        terminal.type("\n\n\n")
        terminal.read(QUESTION)
        time.sleep(0.5)
        terminal.type("s\n")
        assert terminal.end() == 130
        assert "turn-2" not in terminal.text
