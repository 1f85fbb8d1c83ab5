"""The keys of `.ralphrc`: which settings they are, and which nobody acts on yet."""

from __future__ import annotations

import re
from typing import Any

import msgspec

#: Keys that are settings of ours: the setting, and what turns the text into its value.
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
    "CB_NO_PROGRESS_THRESHOLD": "stuck_after",
    "CB_SAME_ERROR_THRESHOLD": "same_error_after",
    "CB_COOLDOWN_MINUTES": "breaker_cooldown",
    "CB_AUTO_RESET": "breaker_auto_reset",
    "PERMISSION_DENIAL_MODE": "denied_after",
}
#: The loop's own names for some of them, which the environment may use.
OLD_NAMES: dict[str, str] = {
    "CLAUDE_ALLOWED_TOOLS": "ALLOWED_TOOLS",
    "CLAUDE_USE_CONTINUE": "SESSION_CONTINUITY",
    "CLAUDE_SESSION_EXPIRY_HOURS": "SESSION_EXPIRY_HOURS",
}
#: Read by drivers, or by the layer itself.
HEEDED = frozenset(
    {
        "CLAUDE_OUTPUT_FORMAT", "CLAUDE_PERMISSION_MODE", "QUALITY_GATE_MODE", "CLAUDE_CODE_CMD", "CLAUDE_MODEL",
        "CB_PERMISSION_DENIAL_THRESHOLD",
    }
)  # fmt: skip
#: Known, and not acted on yet. This is the one place that lists them.
NOT_ACTED_ON = frozenset(
    {
        "CB_OUTPUT_DECLINE_THRESHOLD",
        "QUALITY_GATE_ON_COMPLETION_ONLY", "REVIEW_MODE", "REVIEW_ENABLED", "REVIEW_INTERVAL", "TASK_SOURCES",
        "GITHUB_TASK_LABEL", "BEADS_FILTER", "AGENT_FILE", "CLAUDE_AUTO_UPDATE", "CLAUDE_MIN_VERSION",
        "RALPH_VERBOSE", "VERBOSE_PROGRESS", "SWARM_MODE", "SWARM_MAX_AGENTS",
    }
)  # fmt: skip
#: Say something about the project to people; there is nothing to act on.
DESCRIPTIVE = frozenset({"PROJECT_NAME", "PROJECT_TYPE"})

KNOWN = frozenset({*SETTINGS, *OLD_NAMES, *HEEDED, *NOT_ACTED_ON, *DESCRIPTIVE})

_GATES_MODES = ("warn", "block", "circuit-breaker")
#: A number of iterations in a row that may be refused a tool, as `denied_after` has it; None: the threshold says.
_DENIALS: dict[str, int | None] = {"continue": 0, "halt": 1, "threshold": None}
#: That convention's own, where its file gives none.
DENIAL_THRESHOLD = 2
_TOOL = re.compile(r",(?![^()]*\))")


class Defaults(msgspec.Struct, frozen=True):
    """What that convention does where its file says nothing, in our units."""

    wall_timeout: float = 15 * 60.0
    continue_session: bool = True


def value_of(key: str, text: str) -> Any:
    """The value of a setting; a ValueError says what was expected."""
    match key:
        case "CLAUDE_TIMEOUT_MINUTES" | "CB_COOLDOWN_MINUTES":
            return _number(text, "minutes") * 60
        case "SESSION_EXPIRY_HOURS":
            return _number(text, "hours") * 3600
        case "QUALITY_GATE_TIMEOUT":
            return _number(text, "seconds")
        case "MAX_CALLS_PER_HOUR" | "CB_NO_PROGRESS_THRESHOLD" | "CB_SAME_ERROR_THRESHOLD":
            if not text.isdecimal():
                raise ValueError("expected a whole number")
            return int(text)
        case "SESSION_CONTINUITY" | "CB_AUTO_RESET":
            if text.lower() not in ("true", "false"):
                raise ValueError("expected true or false")
            return text.lower() == "true"
        case "ALLOWED_TOOLS":
            return tuple(tool.strip() for tool in _TOOL.split(text) if tool.strip())
        case "QUALITY_GATES":
            return tuple(gate.strip() for gate in text.split(";") if gate.strip())
        case "TEST_COMMAND":
            return (text,)
        case _:
            return text


def check_mode(text: str) -> None:
    if text not in _GATES_MODES:
        raise ValueError(f"expected {', '.join(_GATES_MODES[:-1])} or {_GATES_MODES[-1]}")


def denied_after(mode: str, threshold: str) -> int:
    """`PERMISSION_DENIAL_MODE`, for which `threshold` may count."""
    if mode not in _DENIALS:
        raise ValueError("expected continue, halt or threshold")
    if threshold and not threshold.isdecimal():
        raise ValueError("CB_PERMISSION_DENIAL_THRESHOLD must be a whole number")
    number = _DENIALS[mode]
    return (int(threshold) if threshold else DENIAL_THRESHOLD) if number is None else number


def _number(text: str, unit: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise ValueError(f"expected a number of {unit}")
    return float(text)
