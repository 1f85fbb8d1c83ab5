"""Turns `.ralphex/config`, of the project and of the user, into settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph.config import guards
from ralph.config.convert import convert, short, split
from ralph.config.filelayer import FileLayer
from ralph.config.settings import BY_NAME
from ralph.dialects.detect import user_file
from ralph.dialects.provider import planfile
from ralph.dialects.provider.ini import Entry, read_ini
from ralph.errors import did_you_mean, nearest
from ralph.system.files import refuse_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ralph.dialects.detect import Found

#: The convention's own defaults.
_DEFAULTS: dict[str, Any] = {"claude_command": "claude", "max_iterations": 50, "max_failures": 2}
_DEFAULT_ORIGIN = "the convention's default"
_PLANS_DIR = "docs/plans"


def _milliseconds(value: str) -> float:
    return _count(value) / 1000


def _attempts(value: str) -> int:
    """One retry is two attempts."""
    return _count(value) + 1


def _count(value: str) -> int:
    if not value.isdigit():
        raise ValueError("expected a whole number of 0 or more")
    return int(value)


def _same(value: str) -> str:
    return value


#: The setting that each key becomes, and the function that converts its value.
_KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "claude_command": ("claude_command", _same),
    "claude_args": ("claude_args", _same),
    "claude_prompt": ("claude_prompt", _same),
    "claude_error_patterns": ("claude_error_patterns", _same),
    "claude_limit_patterns": ("claude_limit_patterns", _same),
    "claude_retry_patterns": ("claude_retry_patterns", _same),
    "preserve_anthropic_api_key": ("preserve_anthropic_api_key", _same),
    "task_model": ("model", _same),
    "max_iterations": ("max_iterations", _same),
    "iteration_delay_ms": ("sleep", _milliseconds),
    "task_retry_count": ("max_failures", _attempts),
    "session_timeout": ("wall_timeout", _same),
    "idle_timeout": ("idle_timeout", _same),
    "wait_on_limit": ("wait_on_limit", _same),
}

#: Used with `executor = codex` only. Otherwise they are about reviews, which ralph does not do.
_CODEX_KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "codex_command": ("command", _same),
    "codex_model": ("model", _same),
    "codex_sandbox": ("codex_sandbox", _same),
}
_EFFORTS = frozenset({"minimal", "low", "medium", "high", "xhigh", "max"})

#: Keys for features of the convention's own tool that ralph does not have.
NOT_SUPPORTED = frozenset(
    {
        "agents_dir", "codex_enabled", "codex_error_patterns", "codex_limit_patterns", "codex_reasoning_effort",
        "codex_timeout_ms", "commit_trailer", "custom_review_script", "default_branch",
        "external_review_tool", "finalize_enabled", "max_external_iterations", "move_plan_on_completion",
        "notify_channels", "notify_custom_script", "notify_email_from", "notify_email_to", "notify_on_complete",
        "notify_on_error", "notify_slack_channel", "notify_slack_token", "notify_smtp_host", "notify_smtp_password",
        "notify_smtp_port", "notify_smtp_starttls", "notify_smtp_username", "notify_telegram_chat",
        "notify_telegram_token", "notify_timeout_ms", "notify_webhook_urls", "pass_claude_md", "plan_model",
        "require_worktree", "review_model", "review_patience", "task_header_patterns", "use_worktree", "vcs_command",
        "watch_dirs",
    }
)  # fmt: skip


def layer(found: Found, workdir: Path, environ: Mapping[str, str]) -> FileLayer:
    """The project's file overrides the user's. An empty value counts as unset, except for `claude_args`."""
    shown = str(found.path.relative_to(workdir)) if found.path.is_relative_to(workdir) else str(found.path)
    refuse_outside(found.path, shown, workdir, "Put the file itself there.")
    result = FileLayer(shown, workdir)
    entries: dict[str, Entry] = {}
    own = user_file(environ)
    for path, name in ((own, str(own)), (found.path, shown)):
        if path.is_file():
            file = read_ini(path, name)
            if path == own:
                result.users = _users_values(file.entries)
            entries |= {k: e for k, e in file.entries.items() if e.value or k == "claude_args"}
            result.problems += file.problems
            result.remarks += file.remarks
    for name, value in _DEFAULTS.items():
        result.set(name, value, _DEFAULT_ORIGIN)
    for key, entry in entries.items():
        if key in _KEYS:
            _add_setting(result, key, entry)
    _add_executor(result, entries)
    _add_plan(result, entries.get("plans_dir"), workdir)
    _remark_on_other_keys(result, entries)
    return result


def _users_values(entries: dict[str, Entry]) -> dict[str, tuple[Any, str]]:
    """The settings in the user's own file, which a project may make stricter only. Mistakes are reported elsewhere."""
    own = FileLayer("", Path())
    for key, entry in entries.items():
        if key in _KEYS and entry.value:
            _add_setting(own, key, entry)
    return {name: (value, own.origins[name]) for name, value in own.values.items()}


def _add_setting(result: FileLayer, key: str, entry: Entry) -> None:
    setting, change = _KEYS.get(key) or _CODEX_KEYS[key]
    try:
        value = convert(setting, split(BY_NAME[setting], change(entry.value)), strict=False)
    except ValueError as error:
        result.problems.append((entry.line, f"{entry.origin}: {key}: {error}, not {short(entry.value)}"))
        return
    result.set(setting, value, entry.origin)


def _add_executor(result: FileLayer, entries: dict[str, Entry]) -> None:
    """With `executor = codex`, Codex does the work instead of Claude."""
    entry = entries.get("executor")
    if entry is None or entry.value == "claude":
        return
    if entry.value != "codex":
        text = f"executor: expected claude or codex, not {short(entry.value)}"
        result.problems.append((entry.line, f"{entry.origin}: {text}"))
        return
    for name in ("claude_command", "claude_args"):
        result.values.pop(name, None)
        result.origins.pop(name, None)
    result.set("agent", "codex", entry.origin)
    for key in _CODEX_KEYS:
        if key in entries and not (key == "codex_model" and "model" in result.values):
            _add_setting(result, key, entries[key])
    if result.values.get("command") == "codex":
        result.values.pop("command")
    name, effort = model_and_effort(result.values.get("model"))
    if effort:
        origin = result.origins["model"]
        result.set("model", name or None, origin)
        result.remarks.append((0, f"{origin}: the effort '{effort}' is not passed on; Codex uses its own setting"))


def model_and_effort(model: str | None) -> tuple[str, str]:
    """The parts of `opus`, `opus:high` or `:high`."""
    name, colon, effort = (model or "").rpartition(":")
    return (name, effort) if colon and effort in _EFFORTS else (model or "", "")


def _add_plan(result: FileLayer, entry: Entry | None, workdir: Path) -> None:
    """Follows the plan in the plans folder if there is exactly one, and no PROMPT.md."""
    folder = Path(os.path.expanduser(entry.value if entry else _PLANS_DIR))  # noqa: PTH111 - works without a home
    plans = planfile.find(workdir / folder)
    if not plans:
        return
    origin = entry.origin if entry else _DEFAULT_ORIGIN
    names = [str(p.relative_to(workdir)) if p.is_relative_to(workdir) else str(p) for p in plans]
    if (workdir / "PROMPT.md").exists():
        text = f"PROMPT.md is used instead of {', '.join(names)}; to follow a plan, use --plan FILE"
        result.remarks.append((0, text))
    elif len(plans) == 1:
        result.set("plan", names[0], f"the only plan ({origin})")
    else:
        result.remarks.append((0, f"there are {len(plans)} plans; choose one with --plan: {', '.join(names)}"))


def _remark_on_other_keys(result: FileLayer, entries: dict[str, Entry]) -> None:
    """Lists the unsupported keys in one remark, and makes one remark for each unknown key."""
    used = {*_KEYS, "plans_dir", "executor"} | ({*_CODEX_KEYS} if "agent" in result.values else set())
    unsupported = []
    for key, entry in entries.items():
        if key in used:
            continue
        if key in NOT_SUPPORTED or key in _CODEX_KEYS or key.startswith(("color_", "notify_")):
            unsupported.append(key)
        elif guard := guards.near_miss(key, {key: setting for key, (setting, _) in _KEYS.items()}):
            text = f"{entry.origin}: unknown key '{key}'{did_you_mean(guard)}: correct or remove it"
            result.problems.append((entry.line, text))
        else:
            hint = nearest(key, [*_KEYS, *NOT_SUPPORTED, *_CODEX_KEYS, "plans_dir", "executor"])
            result.remarks.append((entry.line, f"{entry.origin}: unknown key '{key}'{hint}; it is ignored"))
    if unsupported:
        result.remarks.append((0, f"{result.shown}: not supported, ignored: {', '.join(unsupported)}"))
