"""`ralph run --resume`: which run, and what its command line before."""

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
from ralph.trust.describe import whole

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.journal.layout import RunPaths

#: What `--resume` without a run means.
LATEST = "latest"

#: Answers to one question: one that is given now replaces all that were given then.
_QUESTIONS = (
    frozenset({"agent", "agents", "agent_cmd", "command", "args", "prompt_mode", "prompt_flag", *HOSTED}),
    frozenset({"prompt", "prompt_file", "plan"}),
)


class Recalled(msgspec.Struct, frozen=True):
    """A run to resume, and the flags that apply to the rest of it."""

    paths: RunPaths
    flags: dict[str, Any]
    config_file: str | None
    #: there is nothing left to do
    complete: bool


def recall(workdir: Path, name: str, flags: dict[str, Any], config_file: str | None, trust: Trust) -> Recalled:
    """Flags and variables of then, overridden by those of now; files are read again."""
    recover(StatePaths(workdir))
    state = reader.find_state(workdir, trust)
    try:
        paths = reader.find_run(state, name)
    except UsageError as error:
        if name.isdigit() and len(name) < len("20260101"):
            raise UsageError(
                f"{error}\n  --resume takes a run; a number of iterations goes first: `ralph run {name} --resume`"
            ) from None
        raise
    end = reader.run_end(paths)
    facts = reader.run_facts(paths)
    if not facts:
        raise UsageError(f"run {paths.run_id} died before it started; start a new run")
    before = settings_then(facts, flags)
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
    """For a run that the repository may have brought: this user may never have typed what it says."""
    why = "its journal came with this directory, or was moved or changed"
    lines = [f"run {run_id} was not made here by you, as far as ralph can tell: {why}."]
    if before:
        lines.append("Resuming it would use what its run.json says as if you had typed it:")
    for name, value in before.items():
        first, *rest = whole(str(value))
        lines += [f"  {name:<14} {first}", *(f"  {'':<14} {more}" for more in rest)]
    lines.append(f"Nothing was run. Start a new run, or if it is yours: ralph run --resume {run_id} --trust")
    return "\n".join(lines)


def settings_then(facts: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """The settings that came from the command line or the environment of the run to resume."""
    origins, settings = facts.get("origins"), facts.get("settings")
    if not isinstance(origins, dict) or not isinstance(settings, dict):
        return {}
    masked = facts.get("masked")
    masked = masked if isinstance(masked, list) else []
    answered = {name for question in _QUESTIONS if question & flags.keys() for name in question}
    before = {}
    for name, origin in origins.items():
        option = BY_NAME.get(name)
        if option is None or name in answered or name == "cwd" or not isinstance(origin, str):
            continue
        typed = origin.startswith("-") or origin == name.upper()
        set_then = origin in option.all_env and not any(os.environ.get(v) for v in option.all_env)
        if (typed or set_then) and settings.get(name) is not None:
            if name in masked and name not in flags:
                raise UsageError(f"{origin} contained a secret, which the journal does not store: give it again")
            before[name] = settings[name]
    if "prompt_file" in before:  # as it was found then; the text of what could be read only once was stored
        text, path = facts.get("prompt_text"), facts.get("prompt_path")
        if "prompt_text" in masked:
            raise UsageError("the prompt contained a secret, which the journal does not store: give it again")
        if text is not None:
            del before["prompt_file"]
            before["prompt"] = text
        elif path is not None:
            before["prompt_file"] = path
    return before
