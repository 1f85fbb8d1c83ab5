"""`ralph replay`: recorded output judged again."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

RTF1 = (
    '@@RALPH@@ {"type":"text","tag":"THINK","text":"Plan: look"}\n'
    '@@RALPH@@ {"type":"tool_start","tool":{"id":"t1","name":"shell","input":{"cmd":"ls"}}}\n'
    '@@RALPH@@ {"type":"tool_end","tool":{"id":"t1","status":"ok","duration_ms":218}}\n'
    '@@RALPH@@ {"type":"usage","usage":{"prompt_tokens":1234,"completion_tokens":567,"total_tokens":1801}}\n'
    "<promise>COMPLETE</promise>\n"
)


def verdict(text: str) -> dict[str, Any]:
    last = json.loads(text.splitlines()[-1])
    assert last["type"] == "meta"
    assert last["meta"]["kind"] == "verdict"
    fields: dict[str, Any] = last["meta"]
    return fields


def test_events_and_the_verdict_as_json(ralph: Ralph, repo: Path) -> None:
    (repo / "out").write_text(RTF1)
    result = ralph("replay", "out", "--transcript", "rtf1", "--json")
    types = [json.loads(line)["type"] for line in result.stdout.splitlines()]
    assert types == ["text", "tool_start", "tool_end", "usage", "text", "meta"]
    final = verdict(result.stdout)
    assert (final["outcome"], final["completed"]) == ("ok", True)
    assert final["tools"] == {"started": 1, "ok": 1, "fail": 0, "unknown": 0}
    assert final["usage"]["total_tokens"] == 1801
    assert final.keys() >= {"why", "session_id"}


def test_the_exit_code_decides_the_outcome(ralph: Ralph, repo: Path) -> None:
    (repo / "out").write_text("hello\n")
    assert (
        verdict(ralph("replay", "out", "--transcript", "plain", "--exit-code", "3", "--json").stdout)["outcome"]
        == "failed"
    )
    assert (
        verdict(ralph("replay", "out", "--transcript", "plain", "--exit-code", "-9", "--json").stdout)["outcome"]
        == "crashed"
    )
    (repo / "out").write_text("")
    assert verdict(ralph("replay", "out", "--transcript", "plain", "--json").stdout)["outcome"] == "empty"


def test_without_json_the_screen_shows_the_events(ralph: Ralph, repo: Path) -> None:
    (repo / "out").write_text(RTF1)
    (repo / "err").write_text("a warning\n")
    text = ralph("replay", "out", "--transcript", "rtf1", "--stderr", "err").stdout
    for line in ("SYS     a warning", "THINK   Plan: look", "TOOL    shell ls", "AI      <promise>COMPLETE</promise>"):
        assert line in text.splitlines()


def test_replay_reads_stdin_and_accepts_another_marker(repo: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ralph",
            "replay",
            "-",
            "--transcript",
            "plain",
            "--completion-promise",
            "FERTIG",
            "--json",
        ],
        input="FERTIG\n",
        cwd=repo,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert verdict(done.stdout)["completed"] is True


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["nope", "--transcript", "plain"], "no file nope"),
        ([".", "--transcript", "plain"], "directory"),
        (["PROMPT.md", "--transcript", "rtf"], "'rtf1'"),
        (["PROMPT.md"], "--transcript"),
        (["PROMPT.md", "--transcript", "plain", "--exit-code", "x"], "exit-code"),
    ],
)
def test_mistakes_are_explained(ralph: Ralph, arguments: list[str], part: str) -> None:
    result = ralph("replay", *arguments)
    assert result.returncode == 64
    assert part in result.stderr
    assert "Traceback" not in result.stderr
