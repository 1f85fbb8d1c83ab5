"""`ralph run --dry-run`: shows exactly what a run would do."""

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
#: How to show a 0 that disables something.
_ZERO = (
    dict.fromkeys(("max_iterations", "max_runtime", "max_cost", "max_tokens", "max_failures"), "no limit")
    | dict.fromkeys(("max_calls_per_hour", "max_wait", "limit_retries"), "no limit")
    | dict.fromkeys(("stuck_after", "same_error_after", "same_answer_after", "denied_after"), "off")
    | dict.fromkeys(("idle_timeout", "wall_timeout", "verify_timeout"), "no limit")
    | dict.fromkeys(("sleep", "grace"), "none")
)


def not_approved(needed: list[Item], resolved: Resolved | None) -> str:
    """What can be shown without running any of the code that needs approval, not even to ask its version."""
    lines = [
        f"Nothing is run. This repository would {what_for(needed)}, which you have not approved yet:",
        "",
        *listed(needed),
        "",
        "To approve it as it is now: ralph trust    For one run only: ralph run --trust",
    ]
    if resolved is not None:
        lines += _settings_and_warnings(resolved, resolved_masker(resolved))
    return "\n".join(lines)


def describe(launch: Launch, source: PromptSource, prompt: str, needed: list[Item] | None = None) -> str:
    """What a run of this launch would do, and what of it the user must approve first."""
    mask = masker_of(launch)
    lines = ["Nothing is run. This is what `ralph run` would do:", ""]
    for name, value in [*_main_rows(launch, source, prompt, mask), *_environment_rows(launch, mask)]:
        first, *rest = value.split("\n")
        lines.append(f"  {name:<13} {first}")
        lines += [f"  {'':<13} {more}" for more in rest]
    if needed:
        lines += ["", "First you need to approve this repository's own code (`ralph trust`, or --trust once):", ""]
        lines += listed(needed)
    lines += _settings_and_warnings(launch.resolved, mask)
    return mask.text("\n".join(lines))


def _main_rows(launch: Launch, source: PromptSource, prompt: str, mask: Masker) -> list[tuple[str, str]]:
    prompt_file = launch.workdir / ".ralph" / "runs" / "RUN" / "iterations" / "0001" / "prompt.md"
    argv = launch.command_line(prompt, prompt_file).argv
    version = f" {launch.version}" if launch.version else ""
    size = len(prompt.encode("utf-8", "surrogateescape"))
    length = f"{_count(len(prompt), 'character')}, {_count(size, 'byte')}"
    convention = "\n".join(filter(None, (launch.resolved.follows, launch.dialect)))
    return [
        *([("convention", convention)] if convention else []),
        ("agent", f"{launch.agent} ({launch.title}{version})"),
        *(("fallback", f"{other.agent} ({other.title})") for other in launch.fallbacks),
        ("argv", "\n".join(_argument(mask.text(a), mask.text(prompt), len(prompt)) for a in argv)),
        ("prompt", NO_PROMPT if source.absent else f"{launch.delivery}: {length}, from {source.shown}"),
        ("directory", str(launch.workdir)),
        ("transcript", f"{launch.transcript} ({launch.transcript_why})"),
        ("terminal", "a PTY" if launch.settings.pty or launch.invocation.pty else "pipes"),
        ("credentials", ", ".join(launch.credentials) or "none found in the environment"),
        ("deadlines", _deadlines(launch)),
    ]


def _environment_rows(launch: Launch, mask: Masker) -> list[tuple[str, str]]:
    rows = []
    if launch.invocation.env:
        rows.append(("env set", ", ".join(f"{name}={value}" for name, value in launch.invocation.env.items())))
    if launch.spec and launch.spec.unset_env:
        rows.append(("env removed", ", ".join(launch.spec.unset_env)))
    if launch.resolved.withheld:
        denied = f"{', '.join(sorted(launch.resolved.withheld))} ({launch.resolved.origins['env_deny']})"
        rows.append(("withheld", denied))
    if mask.secrets:
        rows.append(("masked", ", ".join(sorted(set(mask.secrets.values())))))
    return rows


def _settings_and_warnings(resolved: Resolved, mask: Masker) -> list[str]:
    lines = ["", "Settings and where each came from:", "", *(f"  {line}" for line in setting_lines(resolved, mask))]
    return lines + (["", *(f"warning: {text}" for text in resolved.warnings)] if resolved.warnings else [])


def _deadlines(launch: Launch) -> str:
    """The deadlines for this agent, which may have its own."""
    deadlines = ((launch.idle_timeout, "without output"), (launch.wall_timeout, "per iteration"))
    return ", ".join(
        f"{write_duration(seconds) if seconds else 'no limit'} {what} ({origin})"
        for (seconds, origin), what in deadlines
    )


def setting_lines(resolved: Resolved, mask: Masker) -> list[str]:
    """A table of all settings: name, value, origin."""
    # Mask before shortening: a secret that is cut short would not be recognized.
    values = {o.name: mask.value(getattr(resolved.settings, o.name)) for o in OPTIONS}
    rows = [(name, show_value(name, value), resolved.origins[name]) for name, value in values.items()]
    names = max(len(name) for name, _, _ in rows)
    width = min(_VALUE_WIDTH, max(len(value) for _, value, _ in rows))
    return [f"{name:<{names}} {value:<{width}}  {origin}" for name, value, origin in rows]


def show_value(name: str, value: Any) -> str:
    """A value as people write it; a 0 that disables something is shown in words."""
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
    """An argument on one line, quoted for a shell. A long prompt is shortened."""
    # A shell that reads the prompt from its file drops the newlines at its end.
    if prompt.strip() and argument.rstrip("\n").endswith(prompt.rstrip("\n")) and len(argument) > _PROMPT_SHOWN:
        return _quoted(argument[:_PROMPT_SHOWN]) + f"…  (the prompt, {_count(size, 'character')})"
    return _quoted(argument)


def _quoted(text: str) -> str:
    if text.isprintable():
        return shlex.quote(text)
    # bash's notation for text with control characters
    inner = text.encode("unicode_escape").decode("ascii").replace("'", "\\'")
    return f"$'{inner}'"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
