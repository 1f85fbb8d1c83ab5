"""`ralph run --dry-run`: what would happen, exactly."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from ralph.config.durations import write_duration
from ralph.config.settings import OPTIONS, is_duration
from ralph.launching.masking import masker_of, resolved_masker
from ralph.launching.prompt import NO_PROMPT
from ralph.trust.describe import listed, what_for

if TYPE_CHECKING:
    from ralph.config.layers import Resolved
    from ralph.launching.launch import Launch
    from ralph.launching.prompt import PromptSource
    from ralph.masking.masker import Masker
    from ralph.trust.items import Item

_PROMPT_SHOWN = 60
_TEXT_SHOWN = 60
_VALUE_WIDTH = 32
_ZERO = (
    dict.fromkeys(("max_iterations", "max_runtime", "max_cost", "max_tokens", "max_failures"), "no limit")
    | dict.fromkeys(("max_calls_per_hour", "max_wait", "limit_retries"), "no limit")
    | dict.fromkeys(("stuck_after", "same_error_after", "same_answer_after"), "off")
    | dict.fromkeys(("idle_timeout", "wall_timeout", "verify_timeout"), "no limit")
    | dict.fromkeys(("sleep", "grace"), "none")
)


def not_approved(needed: list[Item], resolved: Resolved | None) -> str:
    """What is known while the repository's own code must not even be asked what it is."""
    lines = [
        f"Nothing is run. This repository would {what_for(needed)}, which you have not approved yet:",
        "",
    ]
    lines += [*listed(needed), "", "To approve it as it is now: ralph trust    For one run only: --trust"]
    if resolved is not None:
        settings = setting_lines(resolved, resolved_masker(resolved))
        lines += ["", "Settings and where each came from:", "", *(f"  {line}" for line in settings)]
        lines += ["", *(f"warning: {warning}" for warning in resolved.warnings)] if resolved.warnings else []
    return "\n".join(lines)


def describe(launch: Launch, source: PromptSource, prompt: str, needed: list[Item] | None = None) -> str:
    prompt_file = launch.workdir / ".ralph" / "runs" / "RUN" / "iterations" / "0001" / "prompt.md"
    command = launch.command_line(prompt, prompt_file)
    mask = masker_of(launch)
    version = f" {launch.version}" if launch.version else ""
    size = len(prompt.encode("utf-8", "surrogateescape"))
    rows = [
        ("agent", f"{launch.agent} ({launch.title}{version})"),
        *(("then", f"{other.agent} ({other.title})") for other in launch.fallbacks),
        ("argv", "\n".join(_argument(mask.text(a), mask.text(prompt), len(prompt)) for a in command.argv)),
        (
            "prompt",
            NO_PROMPT
            if source.absent
            else f"{launch.delivery}: {len(prompt):,} characters, {size:,} bytes, from {source.shown}",
        ),
        ("directory", str(launch.workdir)),
        ("transcript", f"{launch.transcript} ({launch.transcript_why})"),
        ("terminal", "a PTY" if launch.settings.pty or launch.invocation.pty else "pipes"),
        ("credentials", ", ".join(launch.credentials) or "no variable that looks like one"),
    ]
    rows += [("deadlines", _deadlines(launch))]
    if launch.dialect or launch.resolved.follows:
        rows.insert(0, ("convention", "\n".join(filter(None, (launch.resolved.follows, launch.dialect)))))
    changed = dict(launch.invocation.env.items())
    if changed:
        rows.append(("set for it", ", ".join(f"{k}={v}" for k, v in changed.items())))
    if launch.spec and launch.spec.unset_env:
        rows.append(("kept from it", ", ".join(launch.spec.unset_env)))
    if launch.resolved.withheld:
        denied = f"{', '.join(sorted(launch.resolved.withheld))} ({launch.resolved.origins['env_deny']})"
        rows.append(("withheld", denied))
    if mask.secrets:
        rows.append(("masked", ", ".join(sorted(set(mask.secrets.values())))))
    lines = ["Nothing is run. This is what `ralph run` would do:", ""]
    for name, value in rows:
        first, *rest = value.split("\n")
        lines.append(f"  {name:<13} {first}")
        lines += [f"  {'':<13} {more}" for more in rest]
    if needed:
        lines += ["", "First you need to approve this repository's own code (`ralph trust`, or --trust once):", ""]
        lines += listed(needed)
    lines += ["", "Settings and where each came from:", ""]
    lines += [f"  {line}" for line in setting_lines(launch.resolved, mask)]
    lines += ["", *(f"warning: {warning}" for warning in launch.resolved.warnings)] if launch.resolved.warnings else []
    return mask.text("\n".join(lines))


def _deadlines(launch: Launch) -> str:
    """Those that hold for this agent, which may have its own."""
    said = []
    for (seconds, origin), what in ((launch.idle_timeout, "without output"), (launch.wall_timeout, "for an iteration")):
        said.append(f"{write_duration(seconds) if seconds else 'no limit'} {what} ({origin})")
    return ", ".join(said)


def setting_lines(resolved: Resolved, mask: Masker) -> list[str]:
    """A table of all settings: name, value, origin."""
    # What is masked after it was cut short could not be known any more.
    values = {o.name: mask.value(getattr(resolved.settings, o.name)) for o in OPTIONS}
    rows = [(name, show_value(name, value), resolved.origins[name]) for name, value in values.items()]
    width = min(_VALUE_WIDTH, max(len(value) for _, value, _ in rows))
    return [f"{name:<19} {value:<{width}}  {origin}" for name, value, origin in rows]


def show_value(name: str, value: Any) -> str:
    """As a person would write it; 0 is said in words."""
    if value == 0 and not isinstance(value, bool) and name in _ZERO:
        return _ZERO[name]
    match value:
        case None | () | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(_one_line(v) for v in value)
        case dict():
            return ", ".join(f"{k}: {_adapter(v)}" for k, v in value.items()) or "-"
        case float() if is_duration(name):
            return write_duration(value)
        case float():
            return f"{value:g}"
        case _:
            return _one_line(str(value))


def _one_line(text: str) -> str:
    if len(text) > _TEXT_SHOWN or not text.isprintable():
        return repr(text[:_TEXT_SHOWN]) + ("…" if len(text) > _TEXT_SHOWN else "")
    return text


def _adapter(value: Any) -> str:
    parts = [] if value.enabled else ["off"]
    if value.timeout is not None:
        parts.append(write_duration(value.timeout) if value.timeout else "no limit")
    return " ".join(parts) or "on"


def _argument(argument: str, prompt: str, size: int) -> str:
    """Quoted for a shell, on one line; a long prompt is not repeated in full."""
    # a shell that read the prompt from its file has dropped the newlines at its end
    if prompt.strip() and argument.rstrip("\n").endswith(prompt.rstrip("\n")) and len(argument) > _PROMPT_SHOWN:
        return _quoted(argument[:_PROMPT_SHOWN]) + f"…  (the prompt, {size:,} characters)"
    return _quoted(argument)


def _quoted(text: str) -> str:
    if text.isprintable():
        return shlex.quote(text)
    # $'…' is how bash writes what does not fit on a line
    inner = text.encode("unicode_escape").decode("ascii").replace("'", "\\'")
    return f"$'{inner}'"
