"""The commands in docs/how-to/test-without-a-key.md work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from roster import ROSTER, chosen

from processes import nothing_left_behind
from ralph.testing.model.scenarios import CONTENT, FILE

pytestmark = pytest.mark.realcli

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "how-to" / "test-without-a-key.md"


def test_the_commands_by_hand_run_a_real_agent(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (claude,) = (a for a in ROSTER if a.folder == "claude")
    if claude not in chosen(os.environ.get("REALCLI_AGENTS")):
        pytest.skip("this test is only for claude")
    commands = DOCUMENT.read_text().split("```sh\n")[1].split("```")[0]
    path = f"{Path(sys.executable).parent}{os.pathsep}{claude.path}"
    with nothing_left_behind(monkeypatch):
        done = subprocess.run(
            ["bash", "-ec", commands],
            cwd=repo,
            env=os.environ | {"PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (repo / FILE).read_text() == CONTENT
    requests = [json.loads(line) for line in (repo / "requests.jsonl").read_text().splitlines()]
    assert any("Do the work." in r["prompt"] for r in requests)
