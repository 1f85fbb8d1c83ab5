"""The ralph.yml files of the orchestrator's users: each key means what it means there, or a warning names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fake_tools import DONE, Tools

from ralph.config.layers import Resolved, resolve

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


def read(folder: Path, text: str) -> Resolved:
    (folder / "ralph.yml").write_text(text)
    return resolve(folder, {}, environ={})


#: Lines of the tool's own presets and documentation, and the setting that each must become.
SETTINGS = [
    ("cli:\n  backend: kiro", "agent", "kiro"),
    ("cli:\n  backend: custom\n  command: my-ai", "command", "my-ai"),
    ("cli:\n  backend: custom\n  command: a\n  prompt_mode: stdin", "prompt_mode", "stdin"),
    ("cli:\n  backend: custom\n  command: a\n  prompt_flag: --ask", "prompt_flag", "--ask"),
    ("cli:\n  backend: custom\n  command: a\n  args: [x, y]", "args", ("x", "y")),
    ("event_loop:\n  prompt: go", "prompt", "go"),
    ("event_loop:\n  prompt_file: TASK.md", "prompt_file", "TASK.md"),
    ("event_loop:\n  completion_promise: DONE", "completion_promise", "DONE"),
    ("event_loop:\n  max_iterations: 7", "max_iterations", 7),
    ("event_loop:\n  max_runtime_seconds: 70", "max_runtime", 70.0),
    ("event_loop:\n  max_runtime: 70", "max_runtime", 70.0),
    ("event_loop:\n  max_cost_usd: 7.5", "max_cost", 7.5),
    ("event_loop:\n  max_cost: 7.5", "max_cost", 7.5),
    ("event_loop:\n  max_consecutive_failures: 3", "max_failures", 3),
    ("event_loop:\n  cooldown_delay_seconds: 2", "sleep", 2.0),
    ("event_loop:\n  idle_timeout_secs: 1800", "idle_timeout", 1800.0),
    ("event_loop:\n  completion_gates:\n    - command: make test", "verify", ("make test",)),
    ("backpressure:\n  gates:\n    - {name: test, command: make test}", "verify", ("make test",)),
    ("agent: gemini", "agent", "gemini"),
    ("agent_priority: [codex, claude]", "agent_priority", ("codex", "claude")),
    ("prompt_file: TASK.md", "prompt_file", "TASK.md"),
    ("prompt_text: go", "prompt", "go"),
    ("completion_promise: DONE", "completion_promise", "DONE"),
    ("max_iterations: 7", "max_iterations", 7),
    ("max_runtime: 70", "max_runtime", 70.0),
    ("max_cost: 7.5", "max_cost", 7.5),
    ("max_tokens: 1000000", "max_tokens", 1000000),
    ("retry_delay: 2", "retry_delay", 2.0),
]


@pytest.mark.parametrize(("text", "name", "value"), SETTINGS)
def test_a_key_becomes_the_setting_with_its_meaning(tmp_path: Path, text: str, name: str, value: Any) -> None:
    resolved = read(tmp_path, text)
    assert getattr(resolved.settings, name) == value
    assert resolved.origins[name].startswith("ralph.yml:")
    assert resolved.warnings == []


#: Lines for features that ralph does not have.
WITHOUT_EFFECT = {
    "core": "core:\n  scratchpad: .agent/scratchpad.md\n  specs_dir: ./specs/\n  guardrails: [a, b]",
    "hats": "hats:\n  builder:\n    name: Builder\n    triggers: [build.task]\n    publishes: [build.done]",
    "events": "events:\n  build.done:\n    description: x",
    "memories": "memories:\n  enabled: true\n  inject: auto\n  budget: 2000\n  filter: {types: [], recent: 0}",
    "tasks": "tasks:\n  enabled: true",
    "skills": "skills:\n  enabled: true\n  dirs: [.claude/skills]",
    "hooks": "hooks:\n  enabled: true\n  events:\n    pre.loop.complete:\n      - {name: a, command: [./a.sh]}",
    "features": "features:\n  parallel: false\n  preflight: {enabled: true, strict: false, skip: []}",
    "RObot": "RObot:\n  enabled: true\n  timeout_seconds: 120\n  telegram: {bot_token: x}",
    "tui": "tui:\n  prefix_key: ctrl-a",
    "verbose": "verbose: false",
    "cli.default_mode": "cli:\n  default_mode: autonomous",
    "cli.idle_timeout_secs": "cli:\n  idle_timeout_secs: 30",
    "event_loop.starting_event": "event_loop:\n  starting_event: work.start",
    "event_loop.starting_hat": "event_loop:\n  starting_hat: builder",
    "event_loop.required_events": "event_loop:\n  required_events: [review.done]",
    "event_loop.cancellation_promise": "event_loop:\n  cancellation_promise: loop.cancel",
    "event_loop.persistent": "event_loop:\n  persistent: true",
    "event_loop.enforce_hat_scope": "event_loop:\n  enforce_hat_scope: true",
    "event_loop.context_window_tokens": "event_loop:\n  context_window_tokens: 200000",
    "event_loop.checkpoint_interval": "event_loop:\n  checkpoint_interval: 5",
    "event_loop.mutation_score_warn_threshold": "event_loop:\n  mutation_score_warn_threshold: 70",
    "event_loop.execution_mode": "event_loop:\n  execution_mode: isolated",
    "event_loop.verbose": "event_loop:\n  verbose: true",
    "backpressure.mode": "backpressure:\n  mode: strict",
    "checkpoint_interval": "checkpoint_interval: 5",
    "archive_prompts": "archive_prompts: true",
    "agent_args": "agent_args: [--fast]",
    "adapters.claude.max_retries": "adapters:\n  claude: {enabled: true, max_retries: 3}",
    "adapters.claude.tool_permissions": "adapters:\n  claude: {tool_permissions: {allow_all: true}}",
}


@pytest.mark.parametrize("key", WITHOUT_EFFECT)
def test_a_key_without_effect_is_named_and_stops_nothing(tmp_path: Path, key: str) -> None:
    (warning,) = read(tmp_path, WITHOUT_EFFECT[key]).warnings
    assert warning.startswith(f"ralph.yml: known, but not acted on yet: {key}")
    tells = key in ("core", "hats", "memories", "tasks", "skills")
    assert warning.endswith("; the agent gets only your prompt") is tells


# -- adapters


@pytest.mark.parametrize(
    ("text", "flags", "deadline"),
    [
        ("adapters:\n  claude: {timeout: 300}", [], "5m without output (adapters.claude.timeout)"),
        ("adapters:\n  claude-code: {timeout: 300}", [], "5m without output (adapters.claude.timeout)"),
        ("adapters:\n  gemini: {timeout: 300}", [], "15m without output (default)"),
        ("idle_timeout: 1h\nadapters:\n  claude: {timeout: 300}", [], "5m without output (adapters.claude.timeout)"),
        ("adapters:\n  claude: {timeout: 300}", ["--idle-timeout", "7m"], "7m without output (--idle-timeout)"),
    ],
)
def test_the_timeout_of_an_adapter_limits_silence(
    ralph: Ralph, repo: Path, tools: Tools, text: str, flags: list[str], deadline: str
) -> None:
    tools.add("claude")
    (repo / "ralph.yml").write_text(f"agent: claude\n{text}\n")
    done = ralph("run", "--dry-run", *flags, env=tools.env)
    (row,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["deadlines"]]
    assert deadline in row
    assert "2h per iteration (default)" in row


def test_the_timeout_of_a_custom_agent_is_applied_and_not_called_ignored(
    ralph: Ralph, repo: Path, tools: Tools
) -> None:
    tools.add("my-ai")
    (repo / "ralph.yml").write_text("agent: custom\ncommand: my-ai\nadapters:\n  custom: {timeout: 60}\n")
    done = ralph("run", "--dry-run", env=tools.env)
    assert "1m without output (adapters.custom.timeout)" in done.stdout
    assert "warning" not in done.stdout


# -- .agent/events.jsonl


def test_an_events_file_of_the_tool_itself_is_kept_and_named_once(ralph: Ralph, repo: Path, tools: Tools) -> None:
    tools.add("my-ai", "sleep 0.1")
    (repo / "ralph.yml").write_text("agent: custom\ncommand: my-ai\n")
    (repo / ".agent").mkdir()
    (repo / ".agent" / "events.jsonl").write_text("old\n")
    note = ".agent/events.jsonl is not ralph's and stays as it is; the events of this run are in .ralph/latest/events"
    assert ralph("run", "2", env=tools.env).stdout.count(note) == 1
    assert (repo / ".agent" / "events.jsonl").read_text() == "old\n"
    (repo / ".agent" / "events.jsonl").rename(repo / "old.jsonl")
    assert note not in ralph("run", "1", env=tools.env).stdout
    assert (repo / ".agent" / "events.jsonl").resolve() == (repo / ".ralph" / "latest" / "events.jsonl").resolve()


# -- gates

GATES = """\
agent: custom
command: my-ai
verify: test -d .
backpressure:
  gates:
    - name: tests
      command: test ! -e broken
      on_fail: "Repair the tests first."
      timeout: 30
    - name: lint
      command: touch must-not-run
      required: false
    - name: retry
      command: test ! -e broken
      on_fail: retry
    - name: nothing
"""


def test_gates_are_checks_of_the_repository_that_need_approval(ralph: Ralph, repo: Path, tools: Tools) -> None:
    tools.add("my-ai", f"if [ -e broken ]; then rm broken; else touch broken; fi; echo {DONE}")
    (repo / "ralph.yml").write_text(GATES)
    refused = ralph("run", "3", env=tools.env | {"RALPH_TRUST": ""})
    assert refused.returncode == 64
    assert "verify     test ! -e broken (ralph.yml:3, ralph.yml:5)" in refused.stderr
    done = ralph("run", "3", "--trust", env=tools.env | {"RALPH_TRUST": ""})
    assert done.returncode == 0, done
    assert (repo / ".ralph/latest/iterations/0002").is_dir()  # the first claim was refused
    assert not (repo / "must-not-run").exists()
    for text in (
        "'lint' is not run, because it need not pass (required: false)",
        "'nothing' is not run, because it has no command",
        "on_fail is not used (tests); after a failure, the next prompt shows what the command printed",
        "timeout is not used (tests); verify_timeout limits every check",
    ):
        assert f"ralph.yml:5: backpressure.gates: {text}" in done.stdout


@pytest.mark.parametrize(
    ("gates", "commands"),
    [
        ("[make lint, make test]", ("make lint", "make test")),
        ("{lint: make lint, test: {command: make test}}", ("make lint", "make test")),
        ("[{command: [sh, -c, 'exit 0']}]", ("sh -c 'exit 0'",)),
        ("[{command: a, optional: true}, {command: b, on_fail: warn}, {command: c, enabled: false}]", ()),
        ("[{name: a, command: x}, {name: a, command: y, optional: true}]", ("x",)),
        ("[]", ()),
        ("3", ()),
        ("", ()),
    ],
)
def test_the_forms_of_gates(tmp_path: Path, gates: str, commands: tuple[str, ...]) -> None:
    assert read(tmp_path, f"backpressure:\n  gates: {gates}\n").settings.verify == commands


def test_backpressure_without_gates_stops_nothing(tmp_path: Path) -> None:
    (warning,) = read(tmp_path, "backpressure: strict\n").warnings
    assert warning == "ralph.yml:1: backpressure: expected gates, not 'strict'; it is ignored"
