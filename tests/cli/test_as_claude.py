"""`ralph as-claude`, from the point of view of a tool that drives Claude."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from processes import eventually, nothing_left_behind

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


def given(folder: Path) -> list[str]:
    """How the agent was called."""
    return (folder / "args").read_text().splitlines()


def test_effort_and_instructions_reach_the_agent(codex: Callable[..., Path], tmp_path: Path) -> None:
    folder = codex(writes(*TRANSCRIPT))
    (tmp_path / "more.md").write_text("Use tabs.")
    flags = ("--effort", "max", "--append-system-prompt", "Be brief.", "--append-system-prompt-file", "more.md")
    code, _, errors = call(tmp_path, "--agent", "codex", *flags, "-p", "Fix it")
    assert (code, errors) == (0, "")
    arguments = given(folder)
    assert arguments[arguments.index("-c") + 1] == "model_reasoning_effort=xhigh"
    assert (folder / "stdin").read_text() == "Be brief.\n\nUse tabs.\n\nFix it"


@pytest.mark.parametrize(
    ("flags", "session"), [(("--resume", "t-0"), ["resume", "t-0", "-"]), (("-c",), ["resume", "--last", "-"])]
)
def test_a_session_is_resumed_and_keeps_the_other_flags(
    codex: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    session: list[str],
) -> None:
    folder = codex(writes(*TRANSCRIPT))
    monkeypatch.setenv("CODEX_SANDBOX", "read-only")
    code, lines, _ = call(tmp_path, "--agent", "codex", *flags, "--effort", "low", "-p", "Fix it")
    assert code == 0
    assert given(folder)[-3:] == session
    assert given(folder)[2:4] == ["--sandbox", "read-only"]
    assert "model_reasoning_effort=low" in given(folder)
    assert "usage" not in lines[-1]  # Codex reports that of the whole session


@pytest.mark.parametrize("flags", [("--resume", "s-1"), ("--continue",), ("--resume",)])
def test_a_session_that_cannot_be_resumed_is_an_error(tmp_path: Path, flags: tuple[str, ...]) -> None:
    code, lines, errors = call(tmp_path, "--agent", "demo", "-p", "x", *flags)
    assert code == 64
    assert "session" in errors
    assert lines[-1]["is_error"] is True


def test_flags_that_the_agent_does_not_have_are_named(codex: Callable[..., Path], tmp_path: Path) -> None:
    codex(writes(*TRANSCRIPT))
    flags = ("--max-turns", "5", "--allowedTools", "Read", "Write", "--verbose", "-p", "Fix it")
    code, _, errors = call(tmp_path, "--agent", "codex", *flags)
    assert code == 0
    assert "OpenAI Codex does not support, so ignored: --max-turns 5, --allowedTools Read Write\n" in errors


def test_a_prompt_that_became_the_value_of_a_flag_is_explained(tmp_path: Path) -> None:
    code, _, errors = call(tmp_path, "--agent", "demo", "-p", "--allowedTools", "Read", "Fix it")
    assert code == 64
    assert "--allowedTools takes all words up to the next flag" in errors


def test_claude_gets_its_own_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo 2.1.325 && exit\n'
        f"printf '%s\\n' \"$@\" > {program.parent}/args; echo '{{}}'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    flags = ("--effort", "high", "--append-system-prompt", "Be brief.", "--max-turns", "5", "--continue")
    _, _, errors = call(tmp_path, "--agent", "claude", *flags, "--allowedTools", "Read", "Write", "-p", "x")
    assert "ignored" not in errors
    text = " ".join(given(program.parent))
    assert "--effort high --max-turns 5 --allowedTools Read Write --append-system-prompt Be brief." in text
    assert "--continue" in text
    assert "--dangerously-skip-permissions" not in text  # the caller restricts the tools instead


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("You've hit your usage limit. Visit https://x.example or try again in 2 hours 3 minutes.",
         r"You've hit your limit · resets \d{1,2}(:\d\d)?[ap]m \(UTC\)"),
        ("You've hit your usage limit. Visit https://x.example or try again in 5 days.",
         r"You've hit your limit · resets [A-Z][a-z]{2} \d{1,2}(, \d{4})?, \d{1,2}(:\d\d)?[ap]m \(UTC\)"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "You've hit your limit"),
        ("unexpected status 503 Service Unavailable: busy", "API Error: 503 .*busy"),
        ("unexpected status 500 Internal Server Error", "API Error: 500 .*"),
        ("We're currently experiencing high demand", "API Error: 529 .*high demand"),
        ("unexpected status 401 Unauthorized: no key", "Not logged in · OpenAI Codex: .*no key"),
        ("unexpected status 402 Payment Required: pay", "Credit balance is too low · .*pay"),
        ("error sending request for url (http://127.0.0.1:1/): Connection refused (os error 111)",
         "API Error: Can't reach the API server — .*Connection refused.*"),
        ("your input exceeds the context window of this model", "Prompt is too long · .*"),
    ],
)  # fmt: skip
def test_errors_of_the_provider_have_claudes_words(
    codex: Callable[..., Path], tmp_path: Path, message: str, words: str
) -> None:
    codex(writes({"type": "turn.failed", "error": {"message": message}}, code=1))
    code, lines, _ = call(tmp_path, "--agent", "codex", "-p", "x")
    assert code == 1
    *_, shown, last = lines
    # ralphex and others search the text of messages. They skip the result.
    assert (shown["type"], shown["message"]["model"]) == ("assistant", "<synthetic>")
    assert re.fullmatch(words, shown["message"]["content"][0]["text"])
    assert last["result"] == shown["message"]["content"][0]["text"]
    assert (last["subtype"], last["is_error"]) == ("success", True)
    assert message in last["errors"][0]


def test_an_installed_program_runs_without_a_shell_or_arguments(
    codex: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ralphex does it: it executes claude_command as it is, with the prompt on stdin and its default arguments."""
    folder = codex(writes(*TRANSCRIPT))
    program = tmp_path / "a b" / "codex-as-claude"
    command = [sys.executable, "-m", "ralph", "as-claude", "--agent", "codex", "--install", str(program)]
    done = subprocess.run([*command, "--effort", "high"], capture_output=True, text=True, timeout=60, check=True)
    assert str(program) in done.stdout
    assert program.stat().st_mode & 0o777 == 0o755
    ran = subprocess.run(
        [program, "--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "--print"],
        input=b"Fix it",
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["result"] == "fixed the bug"
    assert (folder / "stdin").read_text() == "Fix it"
    assert "model_reasoning_effort=high" in given(folder)
    # a second time it replaces its own file, but never another one
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    program.write_text("#!/bin/sh\necho mine\n")
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 64
    assert "exists" in refused.stderr
    assert program.read_text().endswith("mine\n")


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
