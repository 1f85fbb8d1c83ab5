"""`ralph run --dry-run`: what would happen, exactly."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from ralph.config.settings import OPTIONS

if TYPE_CHECKING:
    from ralph.config.layers import Resolved
    from ralph.plan import Plan
    from ralph.prompt import PromptSource

_PROMPT_SHOWN = 60


def describe(plan: Plan, source: PromptSource, prompt: str) -> str:
    prompt_file = plan.workdir / ".ralph" / "runs" / "RUN" / "iterations" / "0001" / "prompt.md"
    launch = plan.launch(prompt, prompt_file)
    version = f" {plan.version}" if plan.version else ""
    size = len(prompt.encode("utf-8", "replace"))
    rows = [
        ("agent", f"{plan.agent} ({plan.title}{version})"),
        ("argv", "\n".join(_argument(a, prompt) for a in launch.argv)),
        (
            "prompt",
            f"{plan.delivery}: {len(prompt):,} characters, {size:,} bytes, from {source.shown}",
        ),
        ("directory", str(plan.workdir)),
        ("transcript", f"{plan.transcript} ({plan.transcript_why})"),
        ("terminal", "a PTY" if plan.settings.pty or plan.invocation.pty else "pipes"),
        ("credentials", ", ".join(plan.credentials) or "no variable that looks like one"),
    ]
    changed = dict(plan.invocation.env.items())
    if changed:
        rows.append(("set for it", ", ".join(f"{k}={v}" for k, v in changed.items())))
    if plan.spec and plan.spec.unset_env:
        rows.append(("kept from it", ", ".join(plan.spec.unset_env)))
    lines = ["Nothing is run. This is what `ralph run` would do:", ""]
    for name, value in rows:
        first, *rest = value.split("\n")
        lines.append(f"  {name:<13} {first}")
        lines += [f"  {'':<13} {more}" for more in rest]
    lines += ["", "Settings and where each came from:", ""]
    lines += [f"  {name:<20} {value:<32} {origin}" for name, value, origin in setting_rows(plan.resolved)]
    lines += [f"\nwarning: {warning}" for warning in plan.resolved.warnings]
    return "\n".join(lines)


def setting_rows(resolved: Resolved) -> list[tuple[str, str, str]]:
    rows = []
    for option in OPTIONS:
        value = getattr(resolved.settings, option.name)
        rows.append((option.name, show_value(value), resolved.origins[option.name]))
    return rows


def show_value(value: Any) -> str:
    match value:
        case None | () | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(str(v) for v in value)
        case dict():
            return ", ".join(f"{k}: {_adapter(v)}" for k, v in value.items()) or "-"
        case float():
            return f"{value:g}"
        case str() if len(value) > 60:
            return repr(value[:57] + "...")
        case _:
            return str(value)


def _adapter(value: Any) -> str:
    parts = [] if value.enabled else ["off"]
    if value.timeout is not None:
        parts.append(f"{value.timeout:g} s")
    return " ".join(parts) or "on"


def _argument(argument: str, prompt: str) -> str:
    """Quoted for a shell; the prompt itself is not repeated in full."""
    if argument == prompt and len(argument) > _PROMPT_SHOWN:
        return shlex.quote(argument[:_PROMPT_SHOWN] + "…") + f"  (the prompt, {len(prompt):,} characters)"
    return shlex.quote(argument)
