"""`ralph run --resume`: finds the run, and the flags that it was started with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config.settings import BY_NAME, HOSTED
from ralph.errors import UsageError
from ralph.journal import reader
from ralph.journal.backup import recover
from ralph.journal.layout import StatePaths
from ralph.journal.signature import is_ours
from ralph.trust.approval import Trust, TrustError
from ralph.trust.describe import visible_lines

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.journal.layout import RunPaths

#: Settings that exclude each other: if one of a group is given now, all earlier ones of that group are dropped.
_ALTERNATIVES = (
    frozenset({"agent", "agents", "agent_cmd", "command", "args", "prompt_mode", "prompt_flag", *HOSTED}),
    frozenset({"prompt", "prompt_file", "plan"}),
)


class Recalled(msgspec.Struct, frozen=True):
    """A run to resume, and the flags that apply to the rest of it."""

    paths: RunPaths
    flags: dict[str, Any]
    config_file: str | None
    #: the run is complete, so there is nothing to resume
    complete: bool


def recall(workdir: Path, name: str, flags: dict[str, Any], config_file: str | None, trust: Trust) -> Recalled:
    """The run, with its earlier flags and variables overridden by the current ones. Files are read again."""
    recover(StatePaths(workdir))
    state = reader.find_state(workdir, trust)
    try:
        paths = reader.find_run(state, name)
    except UsageError as error:
        if name.isdigit() and len(name) < len("20260101"):
            raise UsageError(
                f"{error}\n  --resume takes the id of a run. To set the number of iterations: ralph run {name} --resume"
            ) from None
        raise
    end = reader.run_end(paths)
    facts = reader.run_facts(paths)
    if not facts:
        raise UsageError(f"run {paths.run_id} died before it started, so it cannot be resumed: start a new run")
    before = earlier_flags(facts, flags)
    config = facts.get("config")
    if not is_ours(paths, facts) and not trust.everything:
        raise TrustError(_foreign(paths.run_id, before))
    merged = before | flags | {"cwd": str(state.workdir)}
    return Recalled(
        paths,
        merged,
        config_file or (config if isinstance(config, str) else None),
        complete=end is not None and end.get("end") == "complete",
    )


def _foreign(run_id: str, before: dict[str, Any]) -> str:
    """Refuses a run that may have come with the repository: the user may never have typed the flags in its journal."""
    why = "its journal came with this directory, or was moved or changed"
    lines = [f"ralph cannot tell whether you started run {run_id}: {why}."]
    if before:
        lines.append("Resuming it would use these settings from its run.json as if you had typed them:")
    for name, value in before.items():
        first, *rest = visible_lines(str(value))
        lines += [f"  {name:<14} {first}", *(f"  {'':<14} {more}" for more in rest)]
    lines.append(f"Nothing was run. Start a new run, or if it is yours: ralph run --resume {run_id} --trust")
    return "\n".join(lines)


def earlier_flags(facts: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """The settings from the command line and the environment of the run to resume, as far as they still apply."""
    origins, settings = facts.get("origins"), facts.get("settings")
    if not isinstance(origins, dict) or not isinstance(settings, dict):
        return {}
    masked = facts.get("masked")
    masked = masked if isinstance(masked, list) else []
    replaced = {name for group in _ALTERNATIVES if group & flags.keys() for name in group}
    before = {}
    for name, origin in origins.items():
        option = BY_NAME.get(name)
        if option is None or name in replaced or name == "cwd" or not isinstance(origin, str):
            continue
        typed = origin.startswith("-") or origin == name.upper()
        from_variable = origin in option.all_env and not any(os.environ.get(v) for v in option.all_env)
        if (typed or from_variable) and settings.get(name) is not None:
            if name in masked and name not in flags:
                raise UsageError(
                    f"{origin} contained a secret, or bytes that are not UTF-8, which the journal does not store: "
                    "give it again"
                )
            before[name] = settings[name]
    if "prompt_file" not in before:
        return before
    return {name: value for name, value in before.items() if name != "prompt_file"} | _prompt(before, facts, masked)


def _prompt(before: dict[str, Any], facts: dict[str, Any], masked: list[Any]) -> dict[str, Any]:
    """The prompt file where it was found; for a pipe, which can be read only once, its text from the journal."""
    if "prompt_text" in masked:
        raise UsageError(
            "the prompt contained a secret, or bytes that are not UTF-8, which the journal does not store: "
            "give it again"
        )
    text, path = facts.get("prompt_text"), facts.get("prompt_path")
    return {"prompt": text} if text is not None else {"prompt_file": before["prompt_file"] if path is None else path}
