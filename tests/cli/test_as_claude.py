"""`ralph as-claude`, from the point of view of a tool that drives Claude."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from processes import eventually, nothing_left_behind
from ralph.as_claude.flags import Asked, Format, parse
from ralph.as_claude.writer import ClaudeWriter, usage
from ralph.errors import UsageError
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BROKE = "the model broke"
MESSAGE = {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "fixed the bug"}}
COMMAND = {"id": "i2", "type": "command_execution", "command": "cat plan", "status": "in_progress"}
RAN = COMMAND | {"aggregated_output": "say <<<RALPHEX:COMPLETED>>>\n", "exit_code": 0, "status": "completed"}
TURN = {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 7}}
TRANSCRIPT = [
    {"type": "thread.started", "thread_id": "t-1"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "i0", "type": "reasoning", "text": "let me think"}},
    {"type": "item.started", "item": COMMAND},
    {"type": "item.completed", "item": RAN},
    MESSAGE,
    TURN,
]


@pytest.fixture
def codex(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a fake codex in PATH that records how it was called and then runs `body`."""
    folder = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name in ("CODEX_MODEL", "CODEX_SANDBOX", "CODEX_VERBOSE"):
        monkeypatch.delenv(name, raising=False)

    def install(body: str) -> Path:
        program = folder / "codex"
        program.write_text(
            "#!/usr/bin/env bash\n"
            '[ "$1" = --version ] && { echo codex-cli 0.166.0; exit; }\n'
            f"printf '%s\\n' \"$@\" > {folder}/args; cat > {folder}/stdin\n{body}\n"
        )
        program.chmod(0o755)
        return folder

    return install


def writes(*events: dict[str, Any], code: int = 0) -> str:
    lines = "\n".join(json.dumps(e) for e in events)
    return f"cat <<'LINES'\n{lines}\nLINES\nexit {code}"


def call(folder: Path, *arguments: str, **more: Any) -> tuple[int, list[dict[str, Any]], str]:
    done = subprocess.run(
        [sys.executable, "-m", "ralph", "as-claude", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **({"stdin": subprocess.DEVNULL} | more if "input" not in more else more),
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def words(lines: list[dict[str, Any]]) -> list[str]:
    return [line["delta"]["text"] for line in lines if line["type"] == "content_block_delta"]


def test_events_follow_the_contract(codex: Callable[..., Path], tmp_path: Path) -> None:
    codex(writes(*TRANSCRIPT))
    code, lines, _ = call(tmp_path, "--agent", "codex", "-p", "Fix it")
    assert code == 0
    assert lines[0] == {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "fixed the bug\n"}}
    assert [line["type"] for line in lines] == ["content_block_delta", "result"]
    last = lines[1]
    assert (last["is_error"], last["result"], last["session_id"]) == (False, "fixed the bug", "t-1")
    assert last["usage"] == {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 7}


def test_commands_are_shown_if_verbose_and_cannot_end_a_loop(
    codex: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex(writes(*TRANSCRIPT))
    monkeypatch.setenv("CODEX_VERBOSE", "1")
    _, lines, _ = call(tmp_path, "--agent", "codex", "-p", "Fix it")
    text = "".join(words(lines))
    assert "$ cat plan\n" in text
    assert "RALPHEX:COMPLETED" in text
    assert "<<<RALPHEX:" not in text


def test_the_prompt_is_a_flag_or_on_stdin_and_other_flags_are_ignored(
    codex: Callable[..., Path], tmp_path: Path
) -> None:
    folder = codex(writes(*TRANSCRIPT))
    flags = ("--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "--max-turns", "5")
    assert call(tmp_path, "--agent", "codex", *flags, "--made-up", "value", "-p", "Fix it")[0] == 0
    assert (folder / "stdin").read_text() == "Fix it"
    assert call(tmp_path, "--agent", "codex", *flags, "--print", input="from stdin\n")[0] == 0
    assert (folder / "stdin").read_text() == "from stdin\n"


@pytest.mark.parametrize(
    ("variables", "flags", "present", "absent"),
    [
        ({"CODEX_MODEL": "gpt-x"}, (), ["-m", "gpt-x", "--dangerously-bypass-approvals-and-sandbox"], "--sandbox"),
        ({"CODEX_MODEL": "gpt-x"}, ("--model", "gpt-y"), ["-m", "gpt-y"], "gpt-x"),
        ({"CODEX_MODEL": "gpt-x"}, ("--model", "opus"), ["-m", "gpt-x"], "opus"),
        ({}, ("--model", "gpt-y"), ["-m", "gpt-y"], "--sandbox"),
        ({}, ("--model", "opus"), ["exec"], "opus"),
        ({"CODEX_SANDBOX": "read-only"}, (), ["--sandbox", "read-only"], "--dangerously-bypass-approvals-and-sandbox"),
        ({"CODEX_SANDBOX": "danger-full-access"}, (), ["--dangerously-bypass-approvals-and-sandbox"], "--sandbox"),
    ],
)
def test_codex_variables_are_honoured(
    codex: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    flags: tuple[str, ...],
    present: list[str],
    absent: str,
) -> None:
    folder = codex(writes(*TRANSCRIPT))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert call(tmp_path, "--agent", "codex", *flags, "-p", "Fix it")[0] == 0
    given = (folder / "args").read_text().splitlines()
    start = given.index(present[0])
    assert given[start : start + 2] == present[:2] if len(present) > 1 else present[0] in given
    assert absent not in given


def test_settings_for_another_agent_are_ignored(codex: Callable[..., Path], tmp_path: Path) -> None:
    folder = codex(writes(*TRANSCRIPT))
    (tmp_path / "ralph.yml").write_text("agent: claude\nmodel: opus\ncommand: ./claude\ntranscript: claude\n")
    code, lines, _ = call(tmp_path, "--agent", "codex", "-p", "Fix it")
    assert code == 0
    assert words(lines) == ["fixed the bug\n"]
    assert "opus" not in (folder / "args").read_text()


def test_an_invalid_sandbox_is_refused(
    codex: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = codex(writes(*TRANSCRIPT))
    monkeypatch.setenv("CODEX_SANDBOX", "none")
    code, lines, errors = call(tmp_path, "--agent", "codex", "-p", "Fix it")
    assert code == 64
    assert "workspace-write" in errors
    assert lines[-1]["is_error"] is True
    assert not (folder / "args").exists()


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (writes(*TRANSCRIPT, code=7), 7, "exited with code 7"),
        (writes({"type": "turn.failed", "error": {"message": BROKE}}), 1, BROKE),
        ("exit 0", 1, "without an answer"),
        ("echo 'no such flag' >&2; exit 2", 2, "exited with code 2"),
        ("kill -9 $$", 137, "SIGKILL"),
    ],
)  # fmt: skip
def test_errors_are_reported_and_the_exit_code_is_kept(
    codex: Callable[..., Path], tmp_path: Path, body: str, code: int, reason: str
) -> None:
    codex(body)
    got, lines, errors = call(tmp_path, "--agent", "codex", "-p", "Fix it")
    assert got == code
    assert [line["type"] for line in lines].count("result") == 1
    assert lines[-1]["is_error"] is True
    assert reason in lines[-1]["result"]
    assert reason in errors
    if ">&2" in body:
        assert "no such flag" in errors


def test_a_rate_limit_is_recognised_by_our_own_host(codex: Callable[..., Path], repo: Path) -> None:
    limit = "unexpected status 429 Too Many Requests: slow down"
    codex(writes({"type": "error", "message": limit}, {"type": "turn.failed", "error": {"message": limit}}, code=1))
    command = f"{sys.executable} -m ralph as-claude --agent codex"
    subprocess.run(
        [sys.executable, "-m", "ralph", "run", "1", "--on-limit", "stop", "--claude-command", command],
        cwd=repo,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    events = (repo / ".ralph" / "latest" / "events.jsonl").read_text().splitlines()
    (end,) = [m for e in events if (m := json.loads(e).get("meta", {})).get("kind") == "iteration_end"]
    assert end["outcome"] == "rate_limited"


def test_text_is_written_while_the_agent_is_still_running(codex: Callable[..., Path], tmp_path: Path) -> None:
    codex(f"echo '{json.dumps(MESSAGE)}'; sleep 60")
    with subprocess.Popen(
        [sys.executable, "-m", "ralph", "as-claude", "--agent", "codex", "-p", "x"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as ralph:
        assert ralph.stdout is not None
        first = ralph.stdout.readline()
        ralph.terminate()
        rest = ralph.stdout.read()
    assert b"fixed the bug" in first
    assert ralph.returncode == 143
    assert json.loads(rest.splitlines()[-1])["is_error"] is True


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_when_it_is_killed(
    codex: Callable[..., Path], tmp_path: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = codex("setsid sleep 600 & touch $(dirname $0)/working; sleep 600")
    with nothing_left_behind(monkeypatch):
        ralph = subprocess.Popen(
            [sys.executable, "-m", "ralph", "as-claude", "--agent", "codex", "-p", "x"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert eventually((folder / "working").exists)
        ralph.send_signal(how)
        ralph.wait(30)


def test_it_ends_when_its_parent_process_is_gone(
    codex: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = codex("touch $(dirname $0)/working; sleep 600")
    with nothing_left_behind(monkeypatch):
        host = subprocess.Popen(
            ["bash", "-c", f"{sys.executable} -m ralph as-claude --agent codex -p x >/dev/null 2>&1; true"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
        )
        assert eventually((folder / "working").exists)
        host.kill()
        host.wait()


def test_an_unknown_agent_is_reported_in_claudes_format_too(tmp_path: Path) -> None:
    code, lines, errors = call(tmp_path, "--agent", "no-such-agent", "-p", "x")
    assert code == 64
    assert lines[-1]["is_error"] is True
    assert "no-such-agent" in errors


def test_a_missing_prompt_is_an_error(tmp_path: Path) -> None:
    code, lines, errors = call(tmp_path, "--agent", "demo", "--print")
    assert code == 64
    assert "-p" in errors
    assert lines[-1]["is_error"] is True


def test_the_output_formats_json_and_text(codex: Callable[..., Path], tmp_path: Path) -> None:
    codex(writes(*TRANSCRIPT))
    _, lines, _ = call(tmp_path, "--agent", "codex", "--output-format", "json", "-p", "x")
    assert [line["result"] for line in lines] == ["fixed the bug"]
    text = subprocess.run(
        [sys.executable, "-m", "ralph", "as-claude", "--agent=codex", "--output-format=text", "-p", "x"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert text.stdout == b"fixed the bug\n"


def test_a_claude_that_is_this_command_does_not_start_itself_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "claude"
    shim.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo 2.1.0 && exit\nexec {sys.executable} -m ralph as-claude "$@"\n'
    )
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    code, lines, errors = call(tmp_path, "--agent", "claude", "-p", "x")
    assert code == 64
    assert "itself" in errors
    assert lines[-1]["is_error"] is True


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        (["-p", "do it"], Asked("do it")),
        (["-p", "- a list"], Asked("- a list")),
        (["-p", "--help me please"], Asked("--help me please")),
        (["-p", "-x"], Asked("-x")),
        (["do it", "-p"], Asked("do it")),
        (["-p", "--verbose", "do it"], Asked("do it")),
        (["-p", "--output-format", "json", "do it"], Asked("do it", format=Format.JSON)),
        (["-p", "--verbose"], Asked()),
        (["--print"], Asked()),
        (["--allowedTools", "Bash,Edit", "--print"], Asked()),
        (["--made-up", "value", "--print"], Asked()),
        (["--made-up=value", "do it"], Asked("do it")),
        (["--model", "m", "--agent=codex", "-p", "do it"], Asked("do it", "codex", "m")),
        (["stray", "-p", "do it"], Asked("do it")),
        ([], Asked()),
    ],
)
def test_claudes_command_lines_are_parsed(line: list[str], asked: Asked) -> None:
    assert parse(line) == asked


def test_an_unknown_format_is_an_error() -> None:
    with pytest.raises(UsageError, match="stream-json"):
        parse(["--output-format", "stream", "-p", "x"])


def test_the_message_after_the_last_tool_is_the_result() -> None:
    writer = ClaudeWriter()
    writer.feed([Text(Tag.AI, "I look"), ToolStart(ToolCall("1", "ls")), ToolOutput(ToolRef("1"), "files")])
    writer.feed(
        [ToolEnd(ToolResult("1", ToolStatus.OK)), Text(Tag.THINK, "hm"), Text(Tag.AI, "two"), Text(Tag.AI, "lines")]
    )
    assert writer.message == "two\nlines"


def test_unknown_counts_are_absent() -> None:
    assert usage(Usage(completion_tokens=3)) == {"output_tokens": 3}
    assert usage(Usage(prompt_tokens=10, cached_tokens=4, cache_write_tokens=1, completion_tokens=0)) == {
        "input_tokens": 5,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 1,
        "output_tokens": 0,
    }
