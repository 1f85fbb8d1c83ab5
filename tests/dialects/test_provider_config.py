"""`.ralphex/config` as settings: what each key becomes, and the remarks about the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from fake_tools import DONE, Tools

from ralph.dialects.detect import Dialect, Found, user_file
from ralph.dialects.provider import executables, layer

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from ralph.config.filelayer import FileLayer

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


def written(folder: Path, text: str) -> Found:
    path = folder / ".ralphex" / "config"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return Found(Dialect.PROVIDER, path, "")


def read(folder: Path, text: str) -> FileLayer:
    return layer(written(folder, text), folder, {})


@pytest.mark.parametrize(
    ("line", "setting", "value"),
    [
        ("claude_command = ./x.sh", "claude_command", "./x.sh"),
        ("claude_command = /a dir/x.sh", "claude_command", "/a dir/x.sh"),
        ('claude_command = "/a dir/x.sh"', "claude_command", "/a dir/x.sh"),
        ("claude_args = --verbose --x 'a b'", "claude_args", "--verbose --x 'a b'"),
        ("claude_args =", "claude_args", ""),
        ("max_iterations = 7", "max_iterations", 7),
        ("iteration_delay_ms = 2500", "sleep", 2.5),
        ("task_retry_count = 0", "max_failures", 1),
        ("task_retry_count = 3", "max_failures", 4),
        ("session_timeout = 1h30m", "wall_timeout", 5400.0),
        ("idle_timeout = 90s", "idle_timeout", 90.0),
        ("wait_on_limit = 30m", "wait_on_limit", 1800.0),
        ("task_model = opus:high", "model", "opus:high"),
        (
            "claude_error_patterns = API Error:, Not logged in ,",
            "claude_error_patterns",
            ("API Error:", "Not logged in"),
        ),
        ("claude_limit_patterns = You've hit your limit", "claude_limit_patterns", ("You've hit your limit",)),
        ("preserve_anthropic_api_key = true", "preserve_anthropic_api_key", True),
    ],
)
def test_keys_become_settings(tmp_path: Path, line: str, setting: str, value: object) -> None:
    found = read(tmp_path, f"# a comment\n\n{line}\n")
    assert found.problems == []
    assert found.values[setting] == value
    assert found.origins[setting] == ".ralphex/config:3"


def test_unset_keys_have_the_conventions_defaults(tmp_path: Path) -> None:
    values = read(tmp_path, "idle_timeout =\nmax_iterations =\n").values
    assert values == {"claude_command": "claude", "max_iterations": 50, "max_failures": 2}


def test_a_hash_inside_a_value_does_not_start_a_comment(tmp_path: Path) -> None:
    assert read(tmp_path, "claude_args = --color #00ff00 # not a comment\n").values["claude_args"].endswith("a comment")


def test_the_projects_file_overrides_the_users(tmp_path: Path) -> None:
    own = user_file({})
    own.parent.mkdir(parents=True)
    own.write_text("claude_command = theirs\nclaude_args = --loud\nmax_iterations = 9\n")
    found = read(tmp_path, "claude_command = ours\nclaude_args =\n")
    assert found.values["claude_command"] == "ours"
    assert found.values["claude_args"] == ""
    assert (found.values["max_iterations"], found.origins["max_iterations"]) == (9, f"{own}:3")


def test_all_mistakes_are_reported_with_their_lines(tmp_path: Path) -> None:
    text = "max_iterations = many\nnothing here\nidle_timeout = soon\nexecutor = robot\n"
    problems = "\n".join(text for _, text in read(tmp_path, text).problems)
    for number in range(1, 5):
        assert f".ralphex/config:{number}: " in problems


def test_unsupported_keys_are_listed_once_and_unknown_ones_get_a_suggestion(tmp_path: Path) -> None:
    remarks = [
        text for _, text in read(tmp_path, "finalize_enabled = true\ncolor_task = #00ff00\nclaude_comand = x\n").remarks
    ]
    assert ".ralphex/config: not supported, ignored: finalize_enabled, color_task" in remarks
    assert any(":3: unknown key 'claude_comand' (did you mean 'claude_command'?)" in r for r in remarks)


def test_executor_codex_selects_the_agent_codex(tmp_path: Path) -> None:
    values = read(tmp_path, "executor = codex\ncodex_model = gpt-5.5\ncodex_command = /opt/codex\n").values
    assert (values["agent"], values["model"], values["command"]) == ("codex", "gpt-5.5", "/opt/codex")
    assert "claude_command" not in values


@pytest.mark.parametrize(
    ("lines", "model", "sandbox", "remark"),
    [
        ("codex_sandbox = read-only", None, "read-only", None),
        ("task_model = gpt-5.5:high\ncodex_model = other", "gpt-5.5", None, "the effort 'high' is not passed on"),
        ("task_model = :high", None, None, "the effort 'high' is not passed on"),
    ],
)
def test_what_codex_gets(
    tmp_path: Path, lines: str, model: str | None, sandbox: str | None, remark: str | None
) -> None:
    found = read(tmp_path, f"executor = codex\n{lines}\n")
    assert (found.values.get("model"), found.values.get("codex_sandbox")) == (model, sandbox)
    assert [text for _, text in found.remarks if remark and remark in text] == [t for _, t in found.remarks]


def test_codex_in_a_sandbox(repo: Path, ralph: Ralph, tools: Tools) -> None:
    written(repo, "executor = codex\ncodex_sandbox = read-only\n")
    tools.add("codex", version="codex-cli 0.140.0")
    shown = ralph("run", "--dry-run", env=tools.env).stdout
    assert 'sandbox_mode="read-only"' in shown
    assert "--dangerously-bypass" not in shown


# -- files of the tool's users


def test_keys_in_sections_are_ignored_as_in_the_tool_itself(tmp_path: Path) -> None:
    text = """\
claude_args = --a \\
    --b
[ralphex]
plan_file = x.md
max_iterations = 3
[agents]
planner_prompt = \"\"\"
1. Read = everything
[not a section]
\"\"\"
just text
[empty]
[DEFAULT]
idle_timeout = 3m
"""
    found = read(tmp_path, text)
    assert found.problems == []
    assert (found.values["claude_args"], found.values["idle_timeout"]) == ("--a --b", 180.0)
    assert found.values["max_iterations"] == 50  # the convention's default
    ((line, remark),) = found.remarks
    keys = "[ralphex] plan_file, max_iterations; [agents] planner_prompt"
    assert line == 3
    assert remark == (
        f".ralphex/config:3: keys in sections are ignored, as in ralphex: {keys}. To use a key, move it above the "
        "first section"
    )


def test_a_file_with_sections_only_runs_with_the_defaults(repo: Path, ralph: Ralph, tools: Tools) -> None:
    written(repo, "[ralphex]\nplans_dir = docs/plans\ncommit_prefix = chore(x):\n")
    result = {"type": "result", "subtype": "success", "is_error": False, "result": DONE}
    tools.add("claude", f"echo '{json.dumps(result)}'")
    done = ralph("run", "1", env=tools.env)
    assert done.returncode == 0, done.stderr
    assert "keys in sections are ignored, as in ralphex: [ralphex] plans_dir, commit_prefix" in done.stdout


#: Every key that the tool's own default file has and that is not a setting of ralph's.
WITHOUT_EFFECT = [
    "plan_model", "review_model", "pass_claude_md", "codex_enabled", "codex_command", "codex_model",
    "codex_reasoning_effort", "codex_timeout_ms", "codex_sandbox", "external_review_tool",
    "custom_review_script", "finalize_enabled", "move_plan_on_completion", "use_worktree", "require_worktree",
    "max_external_iterations", "review_patience", "default_branch", "watch_dirs", "vcs_command",
    "commit_trailer", "codex_error_patterns", "codex_limit_patterns", "notify_channels", "notify_on_error",
    "notify_on_complete", "notify_timeout_ms", "notify_telegram_token", "notify_telegram_chat",
    "notify_slack_token", "notify_slack_channel", "notify_smtp_host", "notify_smtp_port",
    "notify_smtp_username", "notify_smtp_password", "notify_smtp_starttls", "notify_email_from",
    "notify_email_to", "notify_webhook_urls", "notify_custom_script", "color_task", "color_review",
    "color_codex", "color_claude_eval", "color_warn", "color_error", "color_signal", "color_timestamp",
    "color_info", "task_header_patterns",
]  # fmt: skip


@pytest.mark.parametrize("key", WITHOUT_EFFECT)
def test_a_key_without_effect_is_named_and_stops_nothing(tmp_path: Path, key: str) -> None:
    found = read(tmp_path, f"{key} = x\n")
    assert found.problems == []
    assert [text for _, text in found.remarks] == [f".ralphex/config: not supported, ignored: {key}"]


def test_the_only_plan_is_followed_but_with_several_the_user_must_choose(tmp_path: Path) -> None:
    plans = tmp_path / "docs" / "plans"
    (plans / "completed").mkdir(parents=True)
    (plans / "completed" / "old.md").write_text("- [x] a\n")
    assert "plan" not in read(tmp_path, "").values
    (plans / "one.md").write_text("- [ ] a\n")
    assert read(tmp_path, "").values["plan"] == "docs/plans/one.md"
    (plans / "two.md").write_text("- [ ] a\n")
    found = read(tmp_path, "")
    assert "plan" not in found.values
    assert "--plan: docs/plans/one.md, docs/plans/two.md" in found.remarks[0][1]


def test_prompt_md_overrides_a_plan(tmp_path: Path) -> None:
    (tmp_path / "todo").mkdir()
    (tmp_path / "todo" / "one.md").write_text("- [ ] a\n")
    assert read(tmp_path, "plans_dir = todo\n").values["plan"] == "todo/one.md"
    (tmp_path / "PROMPT.md").write_text("x")
    found = read(tmp_path, "plans_dir = todo\n")
    assert "plan" not in found.values
    assert "todo/one.md" in found.remarks[0][1]


def test_executables_are_files_of_the_repository(tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "w.sh"
    script.parent.mkdir()
    script.write_text("")
    assert executables(written(tmp_path, "claude_command = scripts/w.sh\n"), tmp_path, {}) == [script]
    assert executables(written(tmp_path, "claude_command = bash scripts/w.sh\n"), tmp_path, {}) == [script]
    assert executables(written(tmp_path, "claude_command = claude\n"), tmp_path, {}) == []
    assert executables(written(tmp_path, "claude_command = /bin/sh\n"), tmp_path, {}) == []
