"""The screen in a real terminal emulator."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Capture = Callable[[], str]

pytestmark = pytest.mark.needs("tmux")


class Tmux:
    """A terminal of 100 columns and 30 lines, in a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._base = ["tmux", "-S", str(folder / "tmux.socket"), "-f", os.devnull]
        self._folder = folder

    def call(self, *arguments: str) -> str:
        done = subprocess.run([*self._base, *arguments], capture_output=True, text=True, timeout=20, check=True)
        return done.stdout

    def start(self, cwd: Path, command: str) -> None:
        self.call("new-session", "-d", "-x", "100", "-y", "30", "-c", str(cwd), command)

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.call("capture-pane", "-p").splitlines() if line.strip()]

    def until(self, found: Callable[[list[str]], bool], timeout: float = 20) -> list[str]:
        deadline = time.monotonic() + timeout
        while not found(lines := self.lines()):
            assert time.monotonic() < deadline, lines
            time.sleep(0.05)
        return lines


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    terminal = Tmux(tmp_path_factory.mktemp("t"))
    yield terminal
    subprocess.run([*terminal._base, "kill-server"], capture_output=True, timeout=20, check=False)


def ralph_line(*arguments: str) -> str:
    return shlex.join([sys.executable, "-m", "ralph", *arguments]) + "; echo code=$?; sleep 60"


def test_the_status_line_is_updated_and_leaves_no_trace(tmux: Tmux, repo: Path) -> None:
    event = '{"type":"tool_start","tool":{"id":"1","name":"shell"}}'
    usage = '{"type":"usage","usage":{"prompt_tokens":1000,"completion_tokens":234,"cost_usd":0.5}}'
    command = (
        f"echo hello; echo '@@RALPH@@ {usage}'; echo '@@RALPH@@ {event}'; "
        "while [ ! -e go ]; do sleep 0.05; done; echo '<promise>COMPLETE</promise>'"
    )
    tmux.start(repo, ralph_line("run", "7", "--transcript", "rtf1", "--agent-cmd", command))
    first = tmux.until(lambda lines: any("last output" in line and "shell" in line for line in lines))
    status = first[-1]
    for part in ("iteration 1/7", "1,234 tokens", "$0.50", "1 tool (now shell)", "last output"):
        assert part in status
    assert sum("last output" in line for line in first) == 1
    second = tmux.until(lambda lines: lines[-1] != status)  # it is updated
    assert second[:-1] == first[:-1]  # and nothing else changes
    (repo / "go").touch()
    last = tmux.until(lambda lines: any("code=" in line for line in lines))
    assert "code=0" in last
    assert not any("last output" in line for line in last)
    assert "AI      hello" in last


def test_the_status_line_counts_the_tokens_of_each_message(tmux: Tmux, repo: Path) -> None:
    def message(number: int) -> str:
        used = {"input_tokens": 1000 * number, "output_tokens": 5}
        content = [{"type": "text", "text": f"message {number}"}]
        line = {
            "type": "assistant",
            "session_id": "s",
            "message": {"id": f"m{number}", "content": content, "usage": used},
        }
        return f"echo {shlex.quote(json.dumps(line))}"

    wait = "while [ ! -e go ]; do sleep 0.05; done"
    command = f"{message(1)}; {wait}; {message(2)}; {message(2)}; exec sleep 60"
    tmux.start(repo, ralph_line("run", "7", "--transcript", "claude", "--agent-cmd", command))
    tmux.until(lambda lines: any("≥ 1,005 tokens" in line for line in lines))
    (repo / "go").touch()
    tmux.until(lambda lines: any("≥ 3,010 tokens" in line for line in lines))


def test_hostile_output_does_not_touch_the_terminal(tmux: Tmux, repo: Path) -> None:
    command = r"echo before; printf '\033[2J\033[H\033]2;pwned\007after\n\033[?1049h\n'"
    tmux.start(repo, ralph_line("run", "1", "--agent-cmd", command))
    lines = tmux.until(lambda lines: any("code=" in line for line in lines))
    assert "AI      before" in lines
    assert any("after" in line for line in lines)
    assert tmux.call("display-message", "-p", "#{pane_title}").strip() != "pwned"
    assert tmux.call("display-message", "-p", "#{alternate_on}").strip() == "0"


def test_a_narrow_terminal_keeps_the_status_on_one_line(tmux: Tmux, repo: Path) -> None:
    tmux.call(
        "new-session",
        "-d",
        "-x",
        "30",
        "-y",
        "40",
        "-c",
        str(repo),
        "COLUMNS=200 " + ralph_line("run", "1", "--agent-cmd", "echo hi; sleep 2"),
    )
    lines = tmux.until(lambda lines: any("iteration 1/1" in line and "…" in line for line in lines))
    time.sleep(0.7)
    lines = tmux.lines()
    assert sum(line.startswith("iteration 1/1") for line in lines) == 1
    assert len(lines[-1]) < 30


def test_a_wait_is_counted_down_in_the_status_line(tmux: Tmux, repo: Path) -> None:
    limit = '@@RALPH@@ {"type":"meta","meta":{"kind":"rate_limit","retry_after":2}}'
    error = '@@RALPH@@ {"type":"meta","meta":{"kind":"error","message":"slow down","class":"rate_limited"}}'
    command = f"if [ $RALPH_ITERATION = 1 ]; then echo '{limit}'; echo '{error}'; exit 1; fi; echo begun; sleep 1"
    tmux.start(repo, ralph_line("run", "1", "--transcript", "rtf1", "--agent-cmd", command))
    first = tmux.until(lambda lines: lines[-1:] != [] and lines[-1].startswith("waiting "))
    assert first[-1].endswith("· rate_limited: slow down")
    second = tmux.until(lambda lines: lines[-1] != first[-1])
    assert second[-1].startswith("waiting ")
    assert second[:-1] == first[:-1]
    last = tmux.until(lambda lines: any("begun" in line for line in lines))
    assert not any(line.startswith("waiting ") for line in last)
