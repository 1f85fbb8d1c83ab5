"""`python -m ralph.testing.model` as a process: it prints its address, and never outlives its use."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest

from processes import alive, eventually

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "ralph.testing.model"]


def test_it_prints_its_address_answers_and_ends_when_stdin_is_closed(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    command = [*COMMAND, "--scenario", "error429", "--log", str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        url = server.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/v1/models", timeout=10) as response:
            assert response.status == 200
        server.stdin.close()
        assert server.wait(10) == 0
    assert json.loads(log.read_text())["path"] == "/v1/models"


def test_it_ends_after_its_time_limit() -> None:
    done = subprocess.run(
        [*COMMAND, "--for", "0.3"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout.startswith("http://127.0.0.1:")


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    url = tmp_path / "url"
    script = f"{' '.join(COMMAND)} </dev/null >{url} 2>&1 & echo $!; until [ -s {url} ]; do sleep 0.05; done; sleep 0.3"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert eventually(lambda: not alive(int(done.stdout)), 10)


@pytest.mark.parametrize("wrong", [["--host", "0.0.0.0"], ["--port", "70000"], ["--log", "/no/such/folder/x"]])
def test_invalid_arguments_are_reported_in_one_line(wrong: list[str]) -> None:
    done = subprocess.run(
        [*COMMAND, *wrong], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_the_scenarios_are_listed() -> None:
    done = subprocess.run([*COMMAND, "--list"], capture_output=True, text=True, timeout=20, check=True)
    assert {line.split()[0] for line in done.stdout.splitlines()} >= {"success", "failtool", "error429", "cut", "hang"}
