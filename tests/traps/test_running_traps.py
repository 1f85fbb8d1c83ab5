"""The traps of real agents that only a running process shows, each with a program that does the same.

The programs have the real names and stand first in PATH, so that the real specs start them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loop.conftest import Ran
from processes import eventually, marked, nothing_left_behind, read_pid
from ralph.agents import registry

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    Start = Callable[..., Ran]

MARK = "<promise>COMPLETE</promise>"


def say(*lines: dict[str, Any]) -> str:
    """A shell command that prints objects, one a line."""
    return "\n".join(f"printf '%s\\n' {shlex.quote(json.dumps(line, separators=(',', ':')))}" for line in lines)


def claude(text: str = MARK, **result: Any) -> str:
    """What Claude Code prints in a good run."""
    words = {
        "type": "assistant",
        "session_id": "s-1",
        "message": {"id": "m", "content": [{"type": "text", "text": text}]},
    }
    end = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s-1", "result": text, **result}
    return say({"type": "system", "subtype": "init", "session_id": "s-1", "model": "opus"}, words, end)


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with nothing_left_behind(monkeypatch) as value:
        yield value


@pytest.fixture
def start(
    ralph: Callable[..., subprocess.CompletedProcess[str]],
    repo: Path,
    mark: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Start:
    """`start("claude", "script", "flag", …, version="2.1.325", linger=0.5)`: a run with the spec of that name.

    Other keywords change numbers in the spec, as a user's own file in its place would: seconds for minutes.
    """

    def go(name: str, script: str, *flags: str, version: str = "9.9.9", **changes: float) -> Ran:
        folder = tmp_path_factory.mktemp("bin")
        program = folder / registry.get(name).commands[0]
        program.write_text(f'#!/bin/bash\n[ "$1" = --version ] && {{ echo {version}; exit; }}\n{script}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        if changes:
            own = Path(os.environ["HOME"]) / ".config" / "ralph" / "agents" / f"{name}.toml"
            own.parent.mkdir(parents=True, exist_ok=True)
            kept = [
                s for s in registry.builtin_file(name).read_text().split("\n") if s.partition(" = ")[0] not in changes
            ]
            own.write_text("\n".join([*(f"{key} = {value}" for key, value in changes.items()), *kept]))
        done = ralph("run", "--agent", name, "--grace", "0.5", *flags)
        assert "Traceback" not in done.stderr, done.stderr
        assert (repo / ".ralph" / "latest").exists(), done.stderr
        return Ran(done, repo)

    return go


def test_output_cut_at_the_pipes_end_is_kept_by_a_large_pipe(start: Start, tmp_path: Path) -> None:
    """What an agent writes without waiting before it exits at once is lost where the pipe cannot hold it (64 KiB).

    Its stdout does not block, as Node's does not when it exits.
    """
    whole = tmp_path / "whole"
    code = f"import os; os.set_blocking(1, False); os.write(1, open({str(whole)!r}, 'rb').read()); os._exit(0)"
    script = f"({claude('x' * 100_000)}\n{claude()}) > {whole}\nexec {sys.executable} -c {shlex.quote(code)}"
    ran = start("qwen", script, "1")
    assert whole.stat().st_size > 200_000
    assert (ran.code, ran.outcomes) == (0, ["ok"])


def test_a_launcher_that_swallows_term(start: Start, mark: str) -> None:
    """Gemini's, by default: it ignores TERM and waits for its child, which goes on."""
    script = "trap '' TERM INT HUP; (trap '' TERM; while :; do sleep 0.1; done) & wait; wait"
    ran = start("gemini", script, "1", "--idle-timeout", "0.5")
    assert ran.outcomes == ["timeout_idle"]
    assert marked(mark) == {}


def test_the_launcher_that_swallows_term_is_not_started_at_all(start: Start, repo: Path) -> None:
    start("gemini", 'echo "$GEMINI_CLI_NO_RELAUNCH" > relaunch', "1")
    assert (repo / "relaunch").read_text() == "true\n"
    start("qwen", 'echo "$QWEN_CODE_NO_RELAUNCH" > relaunch', "1")
    assert (repo / "relaunch").read_text() == "true\n"


def test_a_launcher_that_dies_and_orphans_the_real_process(start: Start, repo: Path, mark: str) -> None:
    """Qwen's and Copilot's: the loader is gone at the first TERM, the real process lives on in a session of its own."""
    script = f"setsid bash -c 'trap \"\" TERM; echo $$ > {repo}/pid; while :; do sleep 0.1; done' & sleep 600"
    ran = start("copilot", script, "1", "--idle-timeout", "0.5")
    assert ran.outcomes == ["timeout_idle"]
    orphan = read_pid(repo / "pid")
    assert eventually(lambda: not Path(f"/proc/{orphan}").exists())
    assert marked(mark) == {}


def test_a_tool_in_its_own_process_group_outlives_its_agent(start: Start, mark: str) -> None:
    """Opencode, Gemini, Goose: the agent dies by TERM, the shell of its tool does not."""
    ran = start("opencode", "setsid sleep 600 & sleep 600", "1", idle_timeout=0.5)
    assert ran.outcomes == ["timeout_idle"]
    assert marked(mark) == {}


def test_a_left_over_daemon(start: Start, mark: str) -> None:
    """Cline's hub, which stays after each run: ended, and said."""
    words = {"ts": "t", "type": "agent_event", "event": {"type": "content_end", "contentType": "text", "text": MARK}}
    end = {"ts": "t", "type": "run_result", "finishReason": "completed", "text": MARK}
    hub = "(setsid bash -c 'exec -a cline-hub-daemon sleep 600' >/dev/null 2>&1 </dev/null &)"
    ran = start("cline", f"{hub}\nsleep 0.2\n{say(words, end)}", "1")
    assert (ran.code, ran.outcomes) == (0, ["ok"])
    assert any("left processes behind" in note["text"] for note in ran.metas("notice"))
    assert marked(mark) == {}


def test_a_login_prompt_that_waits_for_ever_without_a_word(start: Start) -> None:
    """Kiro and Cursor open a browser, or poll for a device code."""
    ran = start("kiro", "sleep 600", "1", first_output_timeout=0.5)
    assert ran.outcomes == ["timeout_idle"]
    assert "no output in its first 0.5 s" in ran.iterations[0]["why"]


def test_a_login_prompt_that_waits_for_ever_after_an_address(start: Start) -> None:
    """Amp prints where to log in, on stdout, and waits for the code: that is no answer, and nobody will give it."""
    prompt = (
        "No API key found. Starting login flow...\\nIf your browser does not open automatically, visit:\\n\\n"
        "https://ampcode.com/auth/cli-login?authToken=0\\n\\nWhen prompted, paste your code here: "
    )
    ran = start("amp", f"printf '{prompt}'; sleep 600", linger=0.5)
    assert (ran.code, ran.outcomes) == (5, ["auth"])
    assert "not logged in" in ran.end["reason"]


def test_every_agent_that_waits_for_a_login_has_a_deadline() -> None:
    for name in ("amp", "cursor", "kiro"):
        deadline = registry.get(name).first_output_timeout
        assert deadline is not None
        assert deadline <= 300


def test_retries_of_minutes_that_end_in_silence_are_what_was_retried(start: Start, tmp_path: Path) -> None:
    """And are tried again by ralph, after a pause."""
    retry = {"type": "system", "subtype": "api_retry", "session_id": "s-1", "error": "rate_limit", "error_status": 429}
    first = {"type": "system", "subtype": "init", "session_id": "s-1"}
    tried = tmp_path / "tried"
    script = f"if [ -e {tried} ]; then\n{claude()}\nexit\nfi\ntouch {tried}\n{say(first, retry)}\nsleep 600"
    ran = start("claude", script, "3", "--idle-timeout", "1.5")
    assert ran.outcomes == ["rate_limited", "ok"]
    assert "retrying: 429 rate_limit" in ran.out


@pytest.mark.parametrize(
    "name", ["opencode", "claude", "codex", "gemini", "qwen", "copilot", "pi", "goose", "droid", "amp"]
)
def test_a_prompt_rewritten_when_given_as_an_argument(start: Start, repo: Path, name: str) -> None:
    """Opencode quotes an argument anew before the model sees it. By stdin every byte arrives, 300 KB as well."""
    prompt = "Say \"yes\"; keep $HOME, `ls`, 'quotes' and a\\b\n" + "x" * 300_000 + "\n"
    (repo / "PROMPT.md").write_text(prompt)
    start(name, f"cat > {repo}/seen; printf '%s\\n' \"$@\" > {repo}/argv", "1")
    assert (repo / "seen").read_text() == prompt
    assert "xxxx" not in (repo / "argv").read_text()


@pytest.mark.parametrize("name", ["cline", "cursor"])
def test_a_prompt_too_long_for_an_argument(
    ralph: Callable[..., subprocess.CompletedProcess[str]], start: Start, repo: Path, name: str
) -> None:
    """The kernel takes no argument over 128 KiB, and these agents take the prompt in no other way."""
    start(name, "true", "1")  # puts the program into PATH
    (repo / "PROMPT.md").write_text("x" * 300_000)
    done = ralph("run", "1", "--agent", name)
    assert done.returncode == 64
    assert "300,000 bytes" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_echoed_prompt_that_quotes_the_marker(start: Start, repo: Path) -> None:
    """Pi, Goose, Droid and Cursor print the prompt on stdout, too: these are not the agent's words."""
    prompt = f"When all is done, print this on a line of its own:\n{MARK}\n"
    (repo / "PROMPT.md").write_text(prompt)
    about = {"session_id": "s-1", "id": "m"}
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s-1"},
        {"type": "message", "role": "user", "text": prompt, **about},
        {"type": "message", "role": "assistant", "text": "Not yet.", **about},
        {"type": "completion", "finalText": "Not yet.", "session_id": "s-1"},
    ]
    ran = start("droid", say(*lines), "1")
    assert (ran.code, ran.outcomes) == (2, ["ok"])


@pytest.mark.parametrize("name", ["claude", "cline"])
def test_stdin_that_must_be_closed(start: Start, repo: Path, name: str) -> None:
    """An open, silent stdin lets opencode hang for ever, also with the prompt as an argument, as cline's is."""
    start(name, f"timeout 5 cat > /dev/null; echo $? > {repo}/ended", "1")
    assert (repo / "ended").read_text() == "0\n"


def test_ids_that_appear_only_in_the_last_line_are_not_needed(start: Start, repo: Path) -> None:
    """Copilot is killed before it names its session; the next iteration goes on with it all the same."""
    words = {"type": "assistant.message", "data": {"messageId": "m", "content": "working"}}
    script = (
        f"printf '%s ' \"$@\" >> {repo}/argv; echo >> {repo}/argv\n{say(words)}\n[ $RALPH_ITERATION = 1 ] && kill -9 $$"
    )
    start("copilot", script, "2", "--continue-session")
    first, second = (shlex.split(line) for line in (repo / "argv").read_text().splitlines())
    named = first[first.index("--session-id") + 1]
    assert len(named) == 36
    assert second[second.index("--session-id") + 1] == named


def told_tokens(name: str, tokens: str) -> str:
    """One iteration of a session; the number of its tokens is the shell's to say."""
    usage = {"input_tokens": "TOKENS", "output_tokens": 0}
    if name == "qwen":
        script = claude("working", usage=usage)
    else:
        words = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "working"}}
        script = say({"type": "thread.started", "thread_id": "t"}, words, {"type": "turn.completed", "usage": usage})
    return script.replace('"TOKENS"', f"'{tokens}'")


@pytest.mark.parametrize(
    ("name", "version", "tokens"),
    [
        ("codex", "0.166.0", "$((300 * RALPH_ITERATION))"),
        ("codex", "0.50.0", "300"),  # before 0.78 it told each run's own
        ("qwen", "0.24.4", "$((300 * RALPH_ITERATION))"),
    ],
)
def test_usage_that_is_cumulative_after_a_resume(
    start: Start, ralph: Callable[..., subprocess.CompletedProcess[str]], name: str, version: str, tokens: str
) -> None:
    """300, then 600, then 900 tokens of one session are 900, and not 1,800; another ralph knows that, too."""
    ran = start(name, told_tokens(name, tokens), "3", "--continue-session", version=version)
    assert ran.outcomes == ["ok", "ok", "ok"]
    assert ran.end["usage"]["prompt_tokens"] == 900
    assert ralph("run", "4", "--resume").returncode == 2
    assert (len(ran.iterations), ran.end["usage"]["prompt_tokens"]) == (4, 1200)


def test_without_a_resume_every_iteration_counts_for_itself(start: Start) -> None:
    script = claude("working", usage={"input_tokens": 300, "output_tokens": 10}, total_cost_usd=0.5)
    ran = start("claude", script, "2")
    assert (ran.end["usage"]["prompt_tokens"], ran.end["usage"]["cost_usd"]) == (600, 1.0)


@pytest.mark.parametrize(
    ("version", "totals", "since"),
    [
        ("2.1.325", (0.5, 1.0, 1.5), {"model_usage_since_last_result": {"opus": {"costUSD": 0.5}}}),
        ("2.1.300", (0.5, 1.0, 1.5), {}),  # it does not say what this run added
        ("2.1.220", (0.5, 0.5, 0.5), {}),  # nor is it cumulative
    ],
)
def test_a_cost_that_is_cumulative_after_a_resume(
    start: Start, version: str, totals: tuple[float, ...], since: dict[str, Any]
) -> None:
    """Claude's total goes on from the session's, in some releases, and three times 0.5 is 1.5."""
    usage = {"input_tokens": 300, "output_tokens": 10}
    parts = [claude("working", usage=usage, total_cost_usd=total, **since) for total in totals]
    cases = "\n".join(f"{n})\n{part}\n;;" for n, part in enumerate(parts, 1))
    ran = start("claude", f"case $RALPH_ITERATION in\n{cases}\nesac", "3", "--continue-session", version=version)
    assert (ran.end["usage"]["cost_usd"], ran.end["usage"]["prompt_tokens"]) == (1.5, 900)


def test_an_agent_that_lives_on_after_its_result(start: Start, mark: str) -> None:
    """Claude's and Cursor's print modes sometimes do not exit: it said that it is done, so it is."""
    ran = start("claude", f"{claude()}\nsleep 600", linger=0.5)
    assert (ran.code, ran.outcomes) == (0, ["ok"])
    assert marked(mark) == {}


def test_what_it_says_when_it_is_ended_does_not_count(start: Start) -> None:
    """It has reported a result without the marker and lives on, so that ralph ends it, which is no failure."""
    script = f"bye() {{\n{claude()}\nexit 0\n}}\ntrap bye TERM\n{claude('Not done yet.')}\nwhile :; do sleep 0.05; done"
    ran = start("claude", script, "1", linger=0.5)
    assert (ran.code, ran.outcomes, ran.iterations[0]["completed"]) == (2, ["ok"], False)
    assert "COMPLETE" in (ran.root / "iterations" / "0001" / "stdout.raw").read_text()


def test_no_agent_may_live_on_for_ever_after_its_result() -> None:
    assert [spec.name for spec in registry.all_specs() if spec.linger is None or spec.linger > 60] == []
