"""The keys of `.ralphrc`: the setting that each one becomes, and those that are not supported yet."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ralph.config.convert import short, split
from ralph.config.settings import BY_NAME

#: The setting of ralph that each key becomes.
SETTINGS: dict[str, str] = {
    "PLATFORM_DRIVER": "driver",
    "CLAUDE_TIMEOUT_MINUTES": "wall_timeout",
    "ALLOWED_TOOLS": "allowed_tools",
    "SESSION_CONTINUITY": "continue_session",
    "SESSION_EXPIRY_HOURS": "session_expiry",
    "TEST_COMMAND": "verify",
    "QUALITY_GATES": "verify",
    "QUALITY_GATE_TIMEOUT": "verify_timeout",
    "PROMPT_FILE": "prompt_file",
    "FIX_PLAN_FILE": "fix_plan",
    "MAX_CALLS_PER_HOUR": "max_calls_per_hour",
    "MAX_LOOPS": "max_iterations",
    "CB_NO_PROGRESS_THRESHOLD": "stuck_after",
    "CB_SAME_ERROR_THRESHOLD": "same_error_after",
    "CB_COOLDOWN_MINUTES": "breaker_cooldown",
    "CB_AUTO_RESET": "breaker_auto_reset",
    "PERMISSION_DENIAL_MODE": "denied_after",
}
#: Other names of these keys.
ALIASES: dict[str, str] = {
    "CLAUDE_ALLOWED_TOOLS": "ALLOWED_TOOLS",
    "CLAUDE_USE_CONTINUE": "SESSION_CONTINUITY",
    "CLAUDE_SESSION_EXPIRY_HOURS": "SESSION_EXPIRY_HOURS",
    "MAX_ITERATIONS": "MAX_LOOPS",
}
#: Used by drivers, or together with another key.
USED = frozenset(
    {
        "CLAUDE_OUTPUT_FORMAT", "CLAUDE_PERMISSION_MODE", "QUALITY_GATE_MODE", "CLAUDE_CODE_CMD", "CLAUDE_MODEL",
        "CB_PERMISSION_DENIAL_THRESHOLD",
    }
)  # fmt: skip
#: Keys of the convention that have no effect yet.
NOT_SUPPORTED = frozenset(
    {
        "CB_OUTPUT_DECLINE_THRESHOLD",
        "QUALITY_GATE_ON_COMPLETION_ONLY", "REVIEW_MODE", "REVIEW_ENABLED", "REVIEW_INTERVAL", "TASK_SOURCES",
        "GITHUB_TASK_LABEL", "BEADS_FILTER", "AGENT_FILE", "CLAUDE_AUTO_UPDATE", "CLAUDE_MIN_VERSION",
        "RALPH_VERBOSE", "VERBOSE_PROGRESS", "SWARM_MODE", "SWARM_MAX_AGENTS", "MAX_TOKENS_PER_HOUR",
        "MAX_CONSECUTIVE_DONE_SIGNALS", "MAX_CONSECUTIVE_TEST_LOOPS", "TEST_PERCENTAGE_THRESHOLD",
        "CB_READ_ONLY_TIMEOUT_THRESHOLD", "RALPH_SHELL_INIT_FILE", "RALPH_DIR", "COMMENT_INTERVAL",
        "SYNC_MAX_FILE_SIZE",
    }
)  # fmt: skip
#: Information for people only.
DESCRIPTIVE = frozenset({"PROJECT_NAME", "PROJECT_TYPE"})

KNOWN = frozenset({*SETTINGS, *ALIASES, *USED, *NOT_SUPPORTED, *DESCRIPTIVE})

#: The convention runs the agent in a container or in the cloud. ralph does not.
SANDBOX = "SANDBOX_"
#: Lists, which may be arrays.
LISTS = frozenset({"ALLOWED_TOOLS", "QUALITY_GATES"})

_SWITCHES = frozenset({"SESSION_CONTINUITY", "CB_AUTO_RESET"})
_GATE_MODES = ("warn", "block", "circuit-breaker")
#: The value of `denied_after` for each mode. None: the threshold decides.
_DENIALS: dict[str, int | None] = {"continue": 0, "halt": 1, "threshold": None}
#: The convention's own default.
DENIAL_THRESHOLD = 2


class Defaults(msgspec.Struct, frozen=True):
    """The convention's own defaults, in our units."""

    wall_timeout: float = 15 * 60.0
    continue_session: bool = True


def value_of(key: str, text: str) -> Any:
    """The value of a setting. Raises ValueError with what was expected."""
    match key:
        case "CLAUDE_TIMEOUT_MINUTES" | "CB_COOLDOWN_MINUTES":
            return _number(text, "minutes") * 60
        case "SESSION_EXPIRY_HOURS":
            return _number(text, "hours") * 3600
        case "QUALITY_GATE_TIMEOUT":
            return _number(text, "seconds")
        case "MAX_CALLS_PER_HOUR" | "MAX_LOOPS" | "CB_NO_PROGRESS_THRESHOLD" | "CB_SAME_ERROR_THRESHOLD":
            return _whole_number(text)
        case _ if key in _SWITCHES:
            return text.lower() == "true"
        case "ALLOWED_TOOLS":
            return tuple(split(BY_NAME["allowed_tools"], text))
        case "QUALITY_GATES":
            return tuple(part.strip() for part in re.split(r"[;\n]", text) if part.strip())
        case "TEST_COMMAND":
            return (text,)
        case _:
            return text


def check_mode(text: str) -> None:
    if text not in _GATE_MODES:
        raise ValueError(f"expected {', '.join(_GATE_MODES[:-1])} or {_GATE_MODES[-1]}")


def denied_after(mode: str, threshold: str) -> int:
    """The value of `denied_after` for a PERMISSION_DENIAL_MODE and a CB_PERMISSION_DENIAL_THRESHOLD."""
    if mode not in _DENIALS:
        raise ValueError("expected continue, halt or threshold")
    if threshold and not threshold.isdecimal():
        raise ValueError("CB_PERMISSION_DENIAL_THRESHOLD must be a whole number")
    number = _DENIALS[mode]
    return (int(threshold) if threshold else DENIAL_THRESHOLD) if number is None else number


def doubt(key: str, text: str) -> str | None:
    """What a user might not expect of a value."""
    if key in _SWITCHES and text.lower() not in ("true", "false"):
        return f"{key}: only true turns it on, so {short(text)} counts as false"
    if key == "CB_AUTO_RESET" and text.lower() == "true":
        return f"{key}: when stuck, ralph waits for CB_COOLDOWN_MINUTES and then tries one more iteration"
    return None


def not_supported(key: str) -> bool:
    return key in NOT_SUPPORTED or key.startswith(SANDBOX)


def _whole_number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("expected a whole number")
    return int(text)


def _number(text: str, unit: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise ValueError(f"expected a number of {unit}")
    return float(text)
