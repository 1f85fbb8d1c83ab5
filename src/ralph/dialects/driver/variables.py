"""The variables that a driver finds set: those of `.ralphrc`, and what the convention's own loop would add."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ralph.config.layers import Resolved
    from ralph.dialects.driver.ralphrc import RcFile

#: Variables that change how a shell works. `.ralphrc` is data here and must not set them.
_RESERVED = frozenset(
    {"PATH", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "HOME", "PWD"}
)


def variables(resolved: Resolved, shown: str, file: RcFile) -> dict[str, str]:
    """All variables for a driver. `shown` is the name of `file`."""
    in_file = {key: a.value for key, a in file.values.items() if _may_be_set(key)}
    overridden = {key: value for key in in_file if (value := resolved.environ.get(key))}
    settings, form = resolved.settings, output_format(resolved, file)
    return {
        **in_file,
        **overridden,
        "CLAUDE_OUTPUT_FORMAT": "json" if form == "text" else form,
        "CLAUDE_PERMISSION_MODE": resolved.environ.get(
            "CLAUDE_PERMISSION_MODE", in_file.get("CLAUDE_PERMISSION_MODE") or "bypassPermissions"
        ),
        "CLAUDE_ALLOWED_TOOLS": ",".join(settings.allowed_tools),
        "CLAUDE_USE_CONTINUE": "true" if settings.continue_session else "false",
        "RALPHRC_FILE": shown,
        "PLATFORM_DRIVER": Path(settings.driver or "").name.removesuffix(".sh"),
    }


def exported(file: RcFile) -> dict[str, str]:
    """The variables of the file that the agent gets as well."""
    return {key: a.value for key, a in file.values.items() if a.exported and _may_be_set(key)}


def output_format(resolved: Resolved, file: RcFile) -> str:
    return configured(resolved, file, "CLAUDE_OUTPUT_FORMAT") or "json"


def configured(resolved: Resolved, file: RcFile, key: str) -> str:
    """The value of a key in the environment, or else in the file; empty if it is in neither."""
    assignment = file.values.get(key)
    return resolved.environ.get(key) or (assignment.value if assignment else "")


def _may_be_set(key: str) -> bool:
    return key not in _RESERVED and not key.startswith(("LD_", "BASH_FUNC_"))
