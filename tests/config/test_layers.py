"""The effective value of each setting, where it came from, and messages about mistakes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ralph.config.layers import Resolved, resolve
from ralph.config.settings import FIELDS, OPTIONS, VARIABLES, is_duration, is_list
from ralph.errors import UsageError


def user_file() -> Path:
    path = Path(os.environ["HOME"]) / ".config" / "ralph" / "ralph.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def from_yaml(folder: Path, text: str, **flags: Any) -> Resolved:
    (folder / "ralph.yml").write_text(text)
    return resolve(folder, flags, environ={})


def mistakes(folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        from_yaml(folder, text)
    return str(caught.value)


def test_defaults(tmp_path: Path) -> None:
    settings = resolve(tmp_path, {}, environ={}).settings
    assert (settings.agent, settings.transcript, settings.max_iterations, settings.max_failures) == (
        "auto",
        "auto",
        100,
        5,
    )
    assert (settings.idle_timeout, settings.wall_timeout) == (15 * 60, 2 * 3600)
    assert (settings.max_runtime, settings.max_cost, settings.max_tokens, settings.confirmations) == (0, 0, 0, 1)


def test_flags_beat_environment_beats_project_beats_user_beats_default(tmp_path: Path) -> None:
    flags: dict[str, Any] = {}
    environ: dict[str, str] = {}
    seen = []

    def look() -> None:
        resolved = resolve(tmp_path, flags, environ=environ)
        seen.append((resolved.settings.max_iterations, resolved.origins["max_iterations"]))

    look()
    user_file().write_text("max_iterations: 9\n")  # a project may lower it
    look()
    (tmp_path / "ralph.yml").write_text("# mine\nmax_iterations: 2\n")
    look()
    environ["RALPH_MAX_ITERATIONS"] = "3"
    look()
    flags["max_iterations"] = "4"
    look()
    assert seen == [
        (100, "default"),
        (9, f"{user_file()}:1"),
        (2, "ralph.yml:2"),
        (3, "RALPH_MAX_ITERATIONS"),
        (4, "MAX_ITERATIONS"),
    ]


def _example(name: str) -> tuple[str, Any]:
    """A value as text, and the value it must be converted to."""
    kind = FIELDS[name].type
    if is_duration(name):
        return "7m", 420.0
    if name in ("agent", "agent_priority"):  # a file can only name known agents
        return "codex", "codex" if name == "agent" else ("codex",)
    if is_list(name):
        return "one", ("one",)
    if name in ("prompt_mode", "claude_prompt"):
        return "stdin", "stdin"
    if name == "on_limit":
        return "stop", "stop"
    if name == "signals":
        return "status", "status"
    if name == "ui":
        return "quiet", "quiet"
    if name == "codex_sandbox":
        return "read-only", "read-only"
    if kind is bool:
        return "true", True
    base = getattr(kind, "__origin__", kind)
    if base is int:
        return "7", 7
    if base is float:
        return "1.5", 1.5
    return "word", "word"


REACHABLE = [option.name for option in OPTIONS if option.name != "adapters"]


@pytest.mark.parametrize("name", REACHABLE)
def test_every_setting_can_be_set_by_its_variable(tmp_path: Path, name: str) -> None:
    text, value = _example(name)
    variable = f"RALPH_{name.upper()}"
    resolved = resolve(tmp_path, {}, environ={variable: text})
    assert getattr(resolved.settings, name) == value
    assert resolved.origins[name] == variable


@pytest.mark.parametrize(("name", "key"), [(o.name, k) for o in OPTIONS if o.name != "adapters" for k in o.all_keys])
def test_every_setting_can_be_set_by_each_of_its_keys(tmp_path: Path, name: str, key: str) -> None:
    text, value = _example(name)
    section, _, inner = key.rpartition(".")
    yaml = f"{section}:\n  {inner}: {text}\n" if section else f"{inner}: {text}\n"
    (tmp_path / "ralph.yml").write_text(yaml)
    resolved = resolve(tmp_path, {}, environ={}, may_loosen=frozenset({name}))
    assert getattr(resolved.settings, name) == value
    assert resolved.origins[name] == f"ralph.yml:{2 if section else 1}"


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("allowed_tools: Read Write Bash(git *)", "allowed_tools", ("Read", "Write", "Bash(git *)")),
        ("allowed_tools: Read, Write", "allowed_tools", ("Read", "Write")),
        ("env_deny: AWS_*, X", "env_deny", ("AWS_*", "X")),
        ("verify: make a, b", "verify", ("make a, b",)),
        ("allowed_paths: ['a, b']", "allowed_paths", ("a, b",)),
        ("mask_env: ''", "mask_env", ()),
    ],
)
def test_a_list_in_a_file_can_be_text_as_in_a_flag(tmp_path: Path, text: str, name: str, value: object) -> None:
    assert getattr(from_yaml(tmp_path, text).settings, name) == value


@pytest.mark.parametrize("name", [o.name for o in OPTIONS if o.flags])
def test_every_flag_is_stronger_than_file_and_environment(tmp_path: Path, name: str) -> None:
    text, value = _example(name)
    given = True if value is True else [text] if is_list(name) else text
    resolved = resolve(tmp_path, {name: given}, environ={f"RALPH_{name.upper()}": "2" if text == "7" else text})
    assert getattr(resolved.settings, name) == value
    assert resolved.origins[name].startswith("--")


def test_the_documented_flags_exist() -> None:
    flags = {flag for option in OPTIONS for flag in option.flags}
    named = (
        "-p --prompt -P --prompt-file --agent --agent-cmd --transcript --max-runtime --max-cost --max-tokens --sleep "
        "--cwd --model "
        "--completion-promise --verify --confirmations --allowed-paths --ui -i --interactive --pty --idle-timeout"
    )
    assert set(named.split()) <= flags


# -- a ralph.yml of the orchestrator convention


def test_an_orchestrators_cli_and_adapters_sections_are_understood(tmp_path: Path) -> None:
    adapters = "".join(
        f"  {name}:\n    enabled: true\n    timeout: 300\n" for name in ("claude", "gemini", "kiro", "codex", "amp")
    )
    resolved = from_yaml(
        tmp_path,
        "cli:\n"
        '  backend: "custom"\n'
        '  command: "my-ai-cli"\n'
        "  args:\n"
        '    - "--headless"\n'
        '    - "--no-confirm"\n'
        '  prompt_mode: "arg"\n'
        '  prompt_flag: "--prompt"\n'
        '  default_mode: "autonomous"\n'
        "  idle_timeout_secs: 30\n"
        "adapters:\n" + adapters,
    )
    settings = resolved.settings
    assert (settings.agent, settings.command, settings.args) == ("custom", "my-ai-cli", ("--headless", "--no-confirm"))
    assert (settings.prompt_mode, settings.prompt_flag) == ("arg", "--prompt")
    assert settings.adapters["kiro"].enabled
    assert settings.adapters["kiro"].timeout == 300
    assert resolved.warnings == ["ralph.yml: known, but not acted on yet: cli.default_mode, cli.idle_timeout_secs"]


def test_an_orchestrators_event_loop_section_is_understood(tmp_path: Path) -> None:
    settings = from_yaml(
        tmp_path,
        "event_loop:\n  prompt_file: TASK.md\n  completion_promise: DONE\n  max_iterations: 9\n"
        "  max_runtime_seconds: 14400\n  max_cost_usd: 2.5\n  max_consecutive_failures: 4\n"
        "  cooldown_delay_seconds: 3\n",
    ).settings
    assert (settings.prompt_file, settings.completion_promise, settings.max_iterations) == ("TASK.md", "DONE", 9)
    assert (settings.max_runtime, settings.max_cost, settings.max_failures, settings.sleep) == (14400, 2.5, 4, 3)


def test_a_flat_key_beats_a_nested_one_with_a_warning(tmp_path: Path) -> None:
    resolved = from_yaml(tmp_path, "event_loop:\n  max_iterations: 7\nmax_iterations: 5\n")
    assert resolved.settings.max_iterations == 5
    assert resolved.origins["max_iterations"] == "ralph.yml:3"
    assert any("ralph.yml:2: event_loop.max_iterations is not used" in w for w in resolved.warnings)


def test_keys_that_only_other_tools_support_share_one_warning(tmp_path: Path) -> None:
    resolved = from_yaml(tmp_path, "hats:\n  a: {b: 1}\n  c: 2\ncore: {x: 1}\nevent_loop:\n  persistent: true\n")
    assert len(resolved.warnings) == 1
    assert all(resolved.warnings[0].count(name) == 1 for name in ("hats", "core", "event_loop.persistent"))


@pytest.mark.parametrize(
    ("yaml", "line", "key", "meant"),
    [
        ("retry_dely: 3\n", 1, "retry_dely", "retry_delay"),
        ("cli:\n  backnd: claude\n", 2, "cli.backnd", "cli.backend"),
        ("event_lop:\n  prompt: x\n", 1, "event_lop", "event_loop"),
        ("adapters:\n  claude:\n    timout: 3\n", 3, "adapters.claude.timout", "timeout"),
    ],
)
def test_an_unknown_key_is_a_warning_with_its_line_and_the_nearest_key(
    tmp_path: Path, yaml: str, line: int, key: str, meant: str
) -> None:
    (warning,) = from_yaml(tmp_path, yaml).warnings
    assert warning.startswith(f"ralph.yml:{line}: unknown key '{key}'")
    assert f"'{meant}'" in warning


@pytest.mark.parametrize(
    ("yaml", "key", "meant"),
    [
        ("max_cots: 5\n", "max_cots", "max_cost"),
        ("max-cost: 5\n", "max-cost", "max_cost"),
        ("maxiterations: 5\n", "maxiterations", "max_iterations"),
        ("event_loop:\n  max_token: 5\n", "event_loop.max_token", "event_loop.max_tokens"),
        ("max_cost_usd: 5\n", "max_cost_usd", "max_cost"),
        ("event_loop:\n  max_costs: 5\n", "event_loop.max_costs", "event_loop.max_cost"),
        ("iterations: 5\n", "iterations", "max_iterations"),
        ("env_dny: [X]\n", "env_dny", "env_deny"),
        ("allowed_path: [src]\n", "allowed_path", "allowed_paths"),
    ],
)
def test_a_misspelled_guard_is_an_error(tmp_path: Path, yaml: str, key: str, meant: str) -> None:
    assert f"unknown key '{key}' (did you mean '{meant}'?): correct or remove it" in mistakes(tmp_path, yaml)
    with pytest.raises(UsageError, match=r"unknown variable RALPH_MAX_COTS \(did you mean 'RALPH_MAX_COST'\?\)"):
        resolve(tmp_path, {}, environ={"RALPH_MAX_COTS": "5"})


@pytest.mark.parametrize("key", ["version", "timeout", "max_retries", "retries", "name", "cost"])
def test_a_key_that_is_only_a_little_like_a_guard_is_a_warning(tmp_path: Path, key: str) -> None:
    (warning,) = from_yaml(tmp_path, f"{key}: 1\n").warnings
    assert f"unknown key '{key}'" in warning


def test_an_unknown_variable_is_a_warning_but_not_those_that_ralph_sets_itself(tmp_path: Path) -> None:
    known = dict.fromkeys(VARIABLES, "1")
    assert resolve(tmp_path, {}, environ=known | {"RALPH_EMPTY": ""}).warnings == []
    (warning,) = resolve(tmp_path, {}, environ=known | {"RALPH_AGNT": "x", "OTHER": "1"}).warnings
    assert warning == "unknown variable RALPH_AGNT (did you mean 'RALPH_AGENT'?); it is ignored"


def test_an_unknown_agent_in_adapters_is_a_warning_with_the_nearest_name(tmp_path: Path) -> None:
    (warning,) = from_yaml(tmp_path, "adapters:\n  cluade:\n    enabled: false\n").warnings
    assert "ralph.yml:2:" in warning
    assert "'claude'" in warning


def test_all_mistakes_in_all_layers_are_reported_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").write_text(
        "max_iterations: -3\nidle_timeout: banana\nui: plian\nverify: 3\ncli:\n  backend: [a]\n  bogus: 1\n"
        "adapters:\n  claude:\n    enabled: 7\n    timeout: -2\n  codex: 5\nmodel: 4.5\npty: 'yes'\nmax_cost: .inf\n"
    )
    user_file().write_text("max_tokens: many\n")
    with pytest.raises(UsageError) as caught:
        resolve(tmp_path, {"max_cost": "-1"}, environ={"RALPH_CONFIRMATIONS": "0"})
    lines = str(caught.value).splitlines()
    wanted = [
        ("--max-cost", "number of 0 or more", "'-1'"),
        ("RALPH_CONFIRMATIONS", "whole number of 1 or more", "'0'"),
        ("ralph.yml:1: max_iterations", "whole number of 0 or more", "-3"),
        ("ralph.yml:2: idle_timeout", "duration", "banana"),
        ("ralph.yml:3: ui", "one of auto, rich, plain, json, quiet", "did you mean 'plain'"),
        ("ralph.yml:4: verify", "list", "3"),
        ("ralph.yml:6: cli.backend", "string", "['a']"),
        ("ralph.yml:10: adapters.claude.enabled", "true or false", "7"),
        ("ralph.yml:11: adapters.claude.timeout", "0 or more", "-2"),
        ("ralph.yml:12: adapters.codex", "enabled or timeout", "5"),
        ("ralph.yml:13: model", "in quotes", "4.5"),
        ("ralph.yml:14: pty", "true or false", "'yes'"),
        ("ralph.yml:15: max_cost", "number", "inf"),
        (f"{user_file()}:1: max_tokens", "whole number", "'many'"),
    ]
    problems = [line for line in lines[1:] if line.startswith("  ")]
    assert len(problems) == len(wanted), caught.value
    for line, parts in zip(problems, wanted, strict=True):
        assert all(part in line for part in parts), line
    assert any("bogus" in line for line in lines if line.startswith("warning"))


@pytest.mark.parametrize("text", ["cli: claude\n", "event_loop: [1]\n", "adapters: 3\n"])
def test_a_section_without_keys_is_an_error(tmp_path: Path, text: str) -> None:
    assert "ralph.yml:1: " + text.partition(":")[0] in mistakes(tmp_path, text)


def test_a_single_check_needs_no_list_and_null_is_an_empty_one(tmp_path: Path) -> None:
    assert from_yaml(tmp_path, "verify: make test\n").settings.verify == ("make test",)
    assert from_yaml(tmp_path, "verify:\nmax_cost: null\ncli:\n").settings.verify == ()


def test_an_empty_check_on_the_command_line_drops_the_checks_in_the_file(tmp_path: Path) -> None:
    assert from_yaml(tmp_path, "verify: [make test]\n", verify=("",)).settings.verify == ()


@pytest.mark.parametrize(("word", "value"), [("1", True), ("yes", True), ("ON", True), ("0", False), ("off", False)])
def test_switches_in_the_environment_take_yes_no_on_off_0_and_1(tmp_path: Path, word: str, value: bool) -> None:
    assert resolve(tmp_path, {}, environ={"RALPH_PTY": word}).settings.pty is value


def test_an_empty_variable_is_ignored(tmp_path: Path) -> None:
    assert resolve(tmp_path, {}, environ={"RALPH_AGENT": "", "RALPH_MAX_COST": ""}).is_default("agent")


def test_lists_of_paths_are_separated_by_commas(tmp_path: Path) -> None:
    resolved = resolve(tmp_path, {"allowed_paths": ("src, tests", "docs")}, environ={})
    assert resolved.settings.allowed_paths == ("src", "tests", "docs")


# -- settings that exclude each other


def test_two_agents_on_the_command_line_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be used together"):
        resolve(tmp_path, {"agent": "claude", "agent_cmd": "cat"}, environ={})


@pytest.mark.parametrize("agent", ["custom", "auto"])
def test_a_command_can_be_combined_with_agent_custom_or_auto(tmp_path: Path, agent: str) -> None:
    settings = resolve(tmp_path, {"agent": agent, "agent_cmd": "cat"}, environ={}).settings
    assert (settings.agent, settings.agent_cmd) == ("custom", "cat")


def test_the_stronger_layer_chooses_the_agent(tmp_path: Path) -> None:
    by_flag = resolve(tmp_path, {"agent": "claude"}, environ={"AGENT_CMD": "cat"})
    assert (by_flag.settings.agent, by_flag.settings.agent_cmd) == ("claude", None)
    by_env = from_yaml(tmp_path, "agent: claude\n")
    assert by_env.settings.agent == "claude"
    by_env = resolve(tmp_path, {}, environ={"AGENT_CMD": "cat"})
    assert (by_env.settings.agent, by_env.settings.agent_cmd, by_env.origins["agent"]) == ("custom", "cat", "AGENT_CMD")


def test_custom_finds_its_command_in_a_weaker_layer(tmp_path: Path) -> None:
    settings = resolve(tmp_path, {"agent": "custom"}, environ={"AGENT_CMD": "cat"}).settings
    assert (settings.agent, settings.agent_cmd) == ("custom", "cat")


def test_our_own_variable_beats_the_shared_one(tmp_path: Path) -> None:
    settings = resolve(tmp_path, {}, environ={"AGENT_CMD": "cat", "RALPH_AGENT_CMD": "tac"}).settings
    assert settings.agent_cmd == "tac"


def test_two_agents_in_one_file_are_a_warning(tmp_path: Path) -> None:
    resolved = from_yaml(tmp_path, "agent: claude\nagent_cmd: cat\n")
    assert (resolved.settings.agent, resolved.settings.agent_cmd) == ("claude", None)
    assert resolved.warnings == ["ralph.yml:2: agent_cmd is not used, because agent (ralph.yml:1) takes precedence"]


def test_two_prompts_are_an_error_on_the_command_line_and_a_warning_in_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be used together"):
        resolve(tmp_path, {"prompt": "a", "prompt_file": "b"}, environ={})
    resolved = from_yaml(tmp_path, "prompt_file: b\nprompt: a\n")
    assert (resolved.settings.prompt, resolved.settings.prompt_file) == ("a", None)
    assert resolved.warnings == ["ralph.yml:1: prompt_file is not used, because prompt (ralph.yml:2) takes precedence"]


def test_a_stronger_prompt_hides_a_weaker_prompt_file(tmp_path: Path) -> None:
    resolved = from_yaml(tmp_path, "prompt: from the file\n", prompt_file="P.md")
    assert (resolved.settings.prompt, resolved.settings.prompt_file) == (None, "P.md")


def test_settings_for_a_custom_agent_are_a_warning_with_another_agent(tmp_path: Path) -> None:
    (warning,) = from_yaml(tmp_path, "agent: claude\nargs: [--x]\ncommand: /opt/claude\n").warnings
    assert "args (ralph.yml:2)" in warning
    assert "command" not in warning  # it names another binary for a known agent


# -- files


def test_the_nearest_file_in_this_directory_or_above_is_used(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "ralph.yml").write_text("max_iterations: 1\n")
    resolved = resolve(deep, {}, environ={})
    assert resolved.settings.max_iterations == 1
    assert resolved.origins["max_iterations"] == f"{tmp_path / 'ralph.yml'}:1"
    (tmp_path / "a" / "ralph.yaml").write_text("max_iterations: 2\n")
    assert resolve(deep, {}, environ={}).settings.max_iterations == 2


def test_a_named_file_is_used_instead(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").write_text("max_iterations: 1\n")
    other = tmp_path / "other.yml"
    other.write_text("max_cost: 3\n")
    settings = resolve(tmp_path, {}, other, environ={}).settings
    assert (settings.max_iterations, settings.max_cost) == (100, 3)


def test_xdg_config_home_moves_the_users_file(tmp_path: Path) -> None:
    (tmp_path / "xdg" / "ralph").mkdir(parents=True)
    (tmp_path / "xdg" / "ralph" / "ralph.yml").write_text("max_tokens: 5\n")
    assert resolve(tmp_path, {}, environ={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).settings.max_tokens == 5


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_retired_key_is_reported_with_what_to_do(tmp_path: Path, value: str) -> None:
    (warning,) = from_yaml(tmp_path, f"verify_strict: {value}\n").warnings
    assert warning.startswith("ralph.yml:1: verify_strict: it has no effect")
    assert "verify_baseline" in warning
