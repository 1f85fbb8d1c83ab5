"""The acceptance criteria of the orchestrator convention, quoted in each test, with fake CLIs in PATH.

Where our design differs, the test says so and tests what ralph does.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_tools import DONE, Tools

from ralph.config.layers import resolve
from ralph.errors import UsageError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

FIXTURES = Path(__file__).parent.parent / "fixtures" / "orchestrator"


def claude(text: str = DONE) -> str:
    """What Claude writes in print mode."""
    message = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": text}]}}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    return f"cat <<'EOF'\n{json.dumps(message)}\n{json.dumps(result)}\nEOF"


def config(folder: Path, text: str) -> None:
    (folder / "ralph.yml").write_text(text)


def outcomes(folder: Path) -> list[Any]:
    lines = (folder / ".ralph" / "latest" / "events.jsonl").read_bytes().splitlines()
    metas = [json.loads(line).get("meta", {}) for line in lines]
    return [meta["outcome"] for meta in metas if meta.get("kind") == "iteration_end"]


# -- Auto-Detection


def test_auto_selects_the_first_available_and_enabled_backend(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given `backend: "auto"` in config
    When Ralph starts
    Then it checks backends in priority order and selects the first available enabled backend
    """
    config(repo, 'cli:\n  backend: "auto"\n')
    order = ["amp", "codex", "gemini", "kiro-cli", "claude"]  # in ascending order of precedence
    for name in order:
        tools.add(name)
        done = ralph("run", "--dry-run", env=tools.env)
        agent = next(line.split()[1] for line in done.stdout.splitlines() if line.split()[:1] == ["agent"])
        assert agent == name.removesuffix("-cli"), done
    tools.add("claude", answer=1)  # found in PATH means that its command returns exit code 0
    assert "agent         kiro " in ralph("run", "--dry-run", env=tools.env).stdout


def test_auto_skips_a_disabled_backend(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given `backend: "auto"` and `adapters.claude.enabled: false`
    When Claude is installed
    Then Claude is skipped and the next available backend is selected
    """
    config(repo, 'cli:\n  backend: "auto"\nadapters:\n  claude:\n    enabled: false\n')
    tools.add("claude", claude())
    tools.add("amp")
    ralph("run", "1", env=tools.env)
    assert tools.used() == {"amp"}


def test_auto_without_any_backend_lists_all_with_links(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given no backends are installed
    When Ralph starts with `backend: "auto"`
    Then a clear error message lists all checked backends with installation links
    """
    config(repo, 'cli:\n  backend: "auto"\n')
    done = ralph("run", env=tools.env)
    assert done.returncode == 64
    lines = done.stderr.splitlines()
    for name in ("claude", "kiro", "gemini", "codex", "amp"):
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert "https://" in line


# -- Explicit Backend Selection


def test_a_named_backend_is_used_even_if_others_are_installed(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given `backend: "gemini"` in config
    When Ralph starts
    Then Gemini is used regardless of auto-detection priority
    """
    config(repo, 'cli:\n  backend: "gemini"\n')
    tools.add("claude", claude())
    tools.add("gemini")
    ralph("run", "1", env=tools.env)
    assert tools.used() == {"gemini"}


def test_a_named_backend_that_is_missing_is_an_error(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given `backend: "gemini"` but Gemini is not installed
    When Ralph starts
    Then an error indicates Gemini was requested but not found
    """
    config(repo, 'cli:\n  backend: "gemini"\n')
    tools.add("claude", claude())
    done = ralph("run", env=tools.env)
    assert done.returncode == 64
    assert "agent 'gemini' (Gemini CLI) was asked for, but 'gemini' is not in PATH" in done.stderr
    assert tools.used() == set()


def test_a_command_replaces_only_the_binary_of_a_named_backend(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """A named backend with `command` set overrides just the binary."""
    tools.add("claude-nightly", claude(), version="2.1.0 (Claude Code)")
    config(repo, "cli:\n  backend: claude\n  command: claude-nightly\n")
    assert ralph("run", "1", env=tools.env).returncode == 0
    assert "--dangerously-skip-permissions" in tools.argv("claude-nightly")
    assert "stream-json" in tools.argv("claude-nightly")


def test_an_unknown_backend_is_an_error_that_lists_the_known_ones(ralph: Ralph, repo: Path) -> None:
    config(repo, "max_iterations: many\ncli:\n  backend: cluade\nadapters:\n  claude:\n    timeout: soon\n")
    done = ralph("run")
    assert done.returncode == 64
    for part in ("ralph.yml:1: max_iterations", "ralph.yml:3: cli.backend", "'cluade' (did you mean 'claude'?)",
                 "ralph.yml:6: adapters.claude.timeout"):  # fmt: skip
        assert part in done.stderr
    for name in ("claude", "kiro", "gemini", "codex", "amp", "custom"):
        assert name in done.stderr


# -- Custom Backend


def test_a_custom_backend_gets_the_prompt_on_stdin(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given `backend: "custom"` with `command: "my-ai"` and `prompt_mode: "stdin"`
    When Ralph executes an iteration
    Then the prompt is written to `my-ai` stdin
    """
    tools.add("my-ai")
    config(repo, 'cli:\n  backend: "custom"\n  command: "my-ai"\n  prompt_mode: "stdin"\n')
    assert ralph("run", "1", env=tools.env).returncode == 0
    assert tools.stdin("my-ai") == (repo / "PROMPT.md").read_text()
    assert tools.argv("my-ai") == [""] or tools.argv("my-ai") == []


def test_the_arguments_of_a_custom_backend_come_before_the_prompt(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given `backend: "custom"` with `args: ["--headless", "--json"]`
    When Ralph builds the command
    Then the args are included before the prompt
    """
    tools.add("my-ai")
    config(repo, 'cli:\n  backend: custom\n  command: my-ai\n  args: ["--headless", "--json"]\n')
    ralph("run", "1", "-p", "test", env=tools.env)
    assert tools.argv("my-ai") == ["--headless", "--json", "test"]


def test_a_custom_backend_without_a_command_is_an_error(ralph: Ralph, repo: Path) -> None:
    """Given `backend: "custom"` without `command` specified
    When Ralph starts
    Then an error indicates custom backend requires a command
    """
    config(repo, "cli:\n  backend: custom\n")
    done = ralph("run")
    assert done.returncode == 64
    assert "'custom' (ralph.yml:2), which needs a command" in done.stderr


# -- Prompt Delivery


@pytest.mark.parametrize(
    ("more", "argv"), [('\n  prompt_flag: "-p"', ["--fast", "-p", "test"]), ("", ["--fast", "test"])]
)
def test_the_prompt_as_an_argument(ralph: Ralph, repo: Path, tools: Tools, more: str, argv: list[str]) -> None:
    """Given a backend with `prompt_mode: "arg"` and `prompt_flag: "-p"` / and no `prompt_flag` (positional)
    When executing with prompt "test"
    Then the command is invoked as `<cmd> <args> -p "test"` / as `<cmd> <args> "test"` (appended without flag)
    """
    tools.add("my-ai")
    config(repo, f'cli:\n  backend: custom\n  command: my-ai\n  args: ["--fast"]\n  prompt_mode: "arg"{more}\n')
    ralph("run", "1", "-p", "test", env=tools.env)
    assert tools.argv("my-ai") == argv


def test_the_prompt_on_stdin(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given a backend with `prompt_mode: "stdin"`
    When executing with prompt "test"
    Then "test" is written to the process stdin
    """
    tools.add("my-ai")
    config(repo, "cli:\n  backend: custom\n  command: my-ai\n  prompt_mode: stdin\n")
    ralph("run", "1", "-p", "test", env=tools.env)
    assert tools.stdin("my-ai") == "test"


# -- Adapter Timeout


@pytest.mark.parametrize(
    ("beat", "outcome"), [("sleep 30", "timeout_idle"), ("for n in {1..10}; do echo on it; sleep 0.3; done", "ok")]
)
def test_an_adapter_that_is_silent_for_too_long_is_stopped(
    ralph: Ralph, repo: Path, tools: Tools, beat: str, outcome: str
) -> None:
    """Given `adapters.claude.timeout: 60`
    When Claude runs for more than 60 seconds
    Then Ralph sends SIGTERM and marks the iteration as timed out

    (with 2 seconds; its own tool restarts the clock with each line of output, and so do we)
    """
    body = f"trap 'touch {tools.seen}/got-term; exit 1' TERM\n({beat}) & wait\n{claude()}"
    tools.add("claude", body)
    config(repo, "cli:\n  backend: claude\nadapters:\n  claude:\n    timeout: 2\n  gemini:\n    timeout: 1\n")
    started = time.monotonic()
    done = ralph("run", "1", env=tools.env)
    assert time.monotonic() - started < 20
    assert (tools.seen / "got-term").exists() is (outcome != "ok")
    assert outcomes(repo) == [outcome], done


# -- Working Directory


@pytest.mark.parametrize("parent", [False, True])
def test_the_agent_works_in_the_directory_where_ralph_was_started(
    ralph: Ralph, repo: Path, tools: Tools, parent: bool
) -> None:
    """Given user runs `ralph run` from `/home/user/project/src` [with config at `/home/user/project/ralph.yml`]
    When Ralph spawns the agent
    Then the agent's working directory is `/home/user/project/src` (not `/home/user/project`)
    """
    source = repo / "src"
    source.mkdir()
    config(repo if parent else source, "cli:\n  backend: claude\n")
    tools.add("claude", claude())
    assert ralph("run", "1", "-p", "x", cwd=source, env=tools.env).returncode == 0
    assert tools.pwd("claude") == str(source)


def test_a_directory_that_does_not_exist_is_an_error(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given user runs `ralph run` from a directory that doesn't exist (race condition, deleted during startup)
    When Ralph attempts to spawn the agent
    Then an error is returned indicating the working directory is inaccessible
    """
    gone = repo / "gone"
    gone.mkdir()
    tools.add("claude", claude(), version=f"2.1.0 $(rm -rf {gone})")  # it vanishes while the agent is being probed
    config(repo, "cli:\n  backend: claude\n")
    done = ralph("run", "1", "-p", "x", "--cwd", "gone", env=tools.env)
    assert done.returncode in (1, 64)
    assert "gone" in done.stdout + done.stderr
    assert "working directory" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert tools.used() == set()


def test_on_a_pty_the_agent_works_in_that_directory_too(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given TUI mode with PTY spawning
    When Ralph builds the command
    Then the working directory is explicitly set on the PTY `CommandBuilder` (not relying on inheritance)

    (we have no such builder; the test checks where the agent runs)
    """
    (repo / "src").mkdir()
    tools.add("claude", claude())
    config(repo, "cli:\n  backend: claude\n  pty: true\n")
    ralph("run", "1", "-p", "x", "--cwd", "src", env=tools.env)
    assert tools.pwd("claude") == str(repo / "src")


# -- TUI Mode Compatibility


@pytest.mark.parametrize(("pty", "seen"), [(False, "pipe"), (True, "terminal")])
def test_claude_runs_on_pipes_and_on_a_pty_if_requested(
    ralph: Ralph, repo: Path, tools: Tools, pty: bool, seen: str
) -> None:
    """Given `backend: "claude"` in autonomous mode
    When Ralph executes an iteration
    Then Ralph spawns Claude in a PTY (required due to Claude's TTY dependency)

    Our design differs: measured, Claude's print mode needs no terminal. So it runs on pipes, where its stream is
    neither wrapped nor mixed with stderr, and on a PTY only if the user requests it.
    """
    body = f"kind=pipe; [ -t 1 ] && kind=terminal; echo $kind > {tools.seen}/kind\n{claude()}"
    tools.add("claude", body)
    config(repo, "cli:\n  backend: claude\n" + ("  pty: true\n" if pty else ""))
    assert ralph("run", "1", env=tools.env).returncode == 0
    assert (tools.seen / "kind").read_text().strip() == seen


def test_a_simple_custom_backend_works_on_a_pty(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Given TUI mode (`--tui`) and `backend: "custom"`
    When the custom backend doesn't render TUI output
    Then execution still works (PTY is transparent to simple CLI tools)
    """
    tools.add("my-ai")
    config(repo, "cli:\n  backend: custom\n  command: my-ai\n")
    assert ralph("run", "1", "--pty", "-p", "test", env=tools.env).returncode == 0
    assert tools.argv("my-ai") == ["test"]


# -- Error Handling


def test_a_failing_backend_is_a_failed_iteration_whose_output_is_kept(ralph: Ralph, repo: Path, tools: Tools) -> None:
    """Backend exits non-zero: iteration marked failed, output captured for debugging"""
    tools.add("my-ai", "echo half; echo why >&2; exit 3")
    config(repo, "cli:\n  backend: custom\n  command: my-ai\n")
    ralph("run", "1", env=tools.env)
    assert outcomes(repo) == ["failed"]
    folder = repo / ".ralph" / "latest" / "iterations" / "0001"
    assert (folder / "stdout.raw").read_text() == "half\n"
    assert (folder / "stderr.raw").read_text() == "why\n"


# -- realistic files


def test_a_file_of_the_first_version(ralph: Ralph, repo: Path, tools: Tools) -> None:
    config(repo, (FIXTURES / "first-version.yml").read_text())
    tools.add("gemini")
    tools.add("claude", claude("ALL_DONE"))
    done = ralph("run", env=tools.env)
    assert done.returncode == 0, done
    assert tools.used() == {"claude"}  # gemini has precedence, but is disabled
    (idle,) = [line for line in done.stdout.splitlines() if "not acted on yet" in line]
    for key in ("checkpoint_interval", "context_threshold", "verbose", "adapters.claude.max_retries",
                "adapters.gemini.env"):  # fmt: skip
        assert key in idle
    assert "there is no agent 'q'" in done.stdout
    assert "unknown key" not in done.stdout


def test_a_file_with_hats_and_everything_else(ralph: Ralph, repo: Path, tools: Tools) -> None:
    config(repo, (FIXTURES / "hats.yml").read_text())
    (repo / "Makefile").write_text("test:\n\ttouch tested\n")
    tools.add("claude", claude(f'<event topic="piece.ready" target="builder">the parser</event>\n{DONE}'))
    done = ralph("run", env=tools.env)
    assert done.returncode == 0, done
    (idle,) = [line for line in done.stdout.splitlines() if "not acted on yet" in line]
    for key in ("core", "hats", "events", "memories", "tasks", "skills", "hooks", "features", "RObot", "tui",
                "cli.idle_timeout_secs", "event_loop.starting_event",
                "event_loop.required_events"):  # fmt: skip
        assert key in idle
    assert "unknown key" not in done.stdout
    assert (repo / "tested").exists()
    assert "piece.ready to builder: the parser" in done.stdout


def test_a_flat_key_overrides_the_nested_one(tmp_path: Path) -> None:
    nested = resolve_text(tmp_path, (FIXTURES / "hats.yml").read_text())
    assert (nested.max_iterations, nested.max_runtime, nested.max_cost) == (150, 28800, 12.5)
    assert (nested.max_failures, nested.sleep, nested.completion_promise) == (3, 2, DONE)
    both = resolve_text(tmp_path, (FIXTURES / "hats.yml").read_text() + "max_iterations: 7\nagent: codex\n")
    assert (both.max_iterations, both.agent) == (7, "codex")


def test_the_idle_timeout_for_interactive_use_does_not_apply_to_a_run(tmp_path: Path) -> None:
    settings = resolve_text(tmp_path, "cli:\n  idle_timeout_secs: 30\n")
    assert settings.idle_timeout == resolve_text(tmp_path, "").idle_timeout


def test_an_unknown_key_gets_a_suggestion(ralph: Ralph, repo: Path) -> None:
    config(repo, "agent: demo\nevent_loop:\n  max_iteration: 3\n  idle_timeouts: 1800\n")
    warnings = ralph("config").stderr
    assert "ralph.yml:3: unknown key 'event_loop.max_iteration' (did you mean 'event_loop.max_iterations'?)" in warnings
    assert "ralph.yml:4: unknown key 'event_loop.idle_timeouts'" in warnings


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = "event_loop:\n  max_iterations: -1\n  prompt_file: [a]\ncli:\n  prompt_mode: pipe\n  args: 3\n"
    with pytest.raises(UsageError) as caught:
        resolve_text(tmp_path, text)
    assert [f"ralph.yml:{line}:" in str(caught.value) for line in (2, 3, 5, 6)] == [True] * 4


def resolve_text(folder: Path, text: str) -> Any:
    config(folder, text)
    return resolve(folder, {}, environ={}).settings


def test_an_agents_name_cannot_be_a_path(ralph: Ralph, repo: Path, tools: Tools) -> None:
    (repo / "evil.toml").write_text('name = "evil"\ncommands = ["touch"]\n[[invocation]]\nargs = ["ran"]\n')
    for name in ("../evil", "../../evil", str(repo / "evil"), "./evil.toml"):
        config(repo, f"agent: {json.dumps(name)}\n")
        done = ralph("run", env=tools.env)
        assert done.returncode == 64
        assert "there is no agent" in done.stderr
    assert not (repo / "ran").exists()


def test_the_example_runs_as_described_in_its_readme(ralph: Ralph, tmp_path_factory: pytest.TempPathFactory) -> None:
    work = tmp_path_factory.mktemp("example") / "work"
    shutil.copytree(Path(__file__).parents[2] / "examples" / "orchestrator", work)
    untrusted = {"RALPH_TRUST": ""}
    assert ralph("run", cwd=work, env=untrusted).returncode == 64
    assert "bin/pair" in ralph("run", "--dry-run", cwd=work, env=untrusted).stdout
    assert ralph("trust", cwd=work, env=untrusted).returncode == 0
    done = ralph("run", cwd=work, env=untrusted)
    assert done.returncode == 0, done
    assert (work / "poem.txt").read_text().count("\n") == 3
    assert [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("EVENT")] == [
        f"text.ready to reader: line {n}" for n in (1, 2, 3)
    ]
    (idle,) = [line for line in done.stdout.splitlines() if "not acted on yet" in line]
    assert all(key in idle for key in ("hats", "memories", "event_loop.starting_event"))
