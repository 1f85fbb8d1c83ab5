"""The very start of the command."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from processes import eventually

if TYPE_CHECKING:
    from pathlib import Path

DONE = "echo '<promise>COMPLETE</promise>'"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_place_for_the_journal(repo: Path, closed: str) -> None:
    """The kernel gives the number of a closed stream to the next file that is opened."""
    command = ["bash", "-c", f'exec "$0" "$@" {closed}', sys.executable, "-m", "ralph", "run", "--agent-cmd", DONE]
    done = subprocess.run(command, cwd=repo, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done
    lines = (repo / ".ralph" / "latest" / "events.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))


def test_a_terminal_that_goes_away_does_not_change_the_exit_code(repo: Path) -> None:
    master, slave = pty.openpty()
    agent = "trap 'exit 0' TERM; touch ready; while :; do echo x; sleep 0.1; done"
    going = subprocess.Popen(
        [sys.executable, "-m", "ralph", "run", "--agent-cmd", agent],
        cwd=repo,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    assert eventually((repo / "ready").exists)
    os.close(master)
    going.send_signal(signal.SIGHUP)
    assert going.wait(30) == 143
