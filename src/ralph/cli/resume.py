"""`ralph run --resume`: the run, and what was said on its command line."""

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
from ralph.trust import items as trust

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.journal.layout import RunPaths

#: What `--resume` without a run means.
LATEST = "latest"

#: Answers to one question: one that is given now stands for all that were given then.
_QUESTIONS = (
    frozenset({"agent", "agents", "agent_cmd", "command", "args", "prompt_mode", "prompt_flag", *HOSTED}),
    frozenset({"prompt", "prompt_file", "plan"}),
)


class Recalled(msgspec.Struct, frozen=True):
    """A run that is to be gone on with, and the flags that hold for what is left of it."""

    paths: RunPaths
    flags: dict[str, Any]
    config_file: str | None
    #: it is complete already
    complete: bool


def recall(workdir: Path, name: str, flags: dict[str, Any], config_file: str | None) -> Recalled:
    """What was typed or set then is said again, under what is said now; files are read anew."""
    recover(StatePaths(workdir))
    state = reader.find_state(workdir)
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
        raise UsageError(f"run {paths.run_id} died before it began; start a new run")
    said = said_then(facts, flags)
    config = facts.get("config")
    if not is_ours(paths, facts) and not trust.permitted():
        raise trust.TrustError(_foreign(paths.run_id, said))
    merged = said | flags | {"cwd": str(state.workdir)}
    return Recalled(
        paths,
        merged,
        config_file or (config if isinstance(config, str) else None),
        complete=end is not None and end.get("end") == "complete",
    )


def _foreign(run_id: str, said: dict[str, Any]) -> str:
    """A run that the repository may have brought: what it says was typed, this user need not have typed."""
    why = "its journal came with this directory, or was moved or changed"
    lines = [f"run {run_id} was not made here by you, as far as ralph can tell: {why}."]
    if said:
        lines.append("Going on with it would use what stands in its run.json as if you had typed it:")
    for name, value in said.items():
        first, *rest = trust.whole(str(value))
        lines += [f"  {name:<14} {first}", *(f"  {'':<14} {more}" for more in rest)]
    lines.append(f"Nothing was run. Start a new run, or if it is yours: ralph run --resume {run_id} --trust")
    return "\n".join(lines)


def said_then(facts: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """The settings that came from the command line or the environment of the run that is gone on with."""
    origins, settings = facts.get("origins"), facts.get("settings")
    if not isinstance(origins, dict) or not isinstance(settings, dict):
        return {}
    masked = facts.get("masked")
    masked = masked if isinstance(masked, list) else []
    answered = {name for question in _QUESTIONS if question & flags.keys() for name in question}
    said = {}
    for name, origin in origins.items():
        option = BY_NAME.get(name)
        if option is None or name in answered or name == "cwd" or not isinstance(origin, str):
            continue
        typed = origin.startswith("-") or origin == name.upper()
        set_then = origin in option.all_env and not any(os.environ.get(v) for v in option.all_env)
        if (typed or set_then) and settings.get(name) is not None:
            if name in masked and name not in flags:
                raise UsageError(f"what {origin} said held a secret, which the journal does not keep: say it again")
            said[name] = settings[name]
    if "prompt_file" in said:  # as it was found then; what could be read only once was kept
        text, path = facts.get("prompt_text"), facts.get("prompt_path")
        if "prompt_text" in masked:
            raise UsageError("the prompt held a secret, which the journal does not keep: give it again")
        if text is not None:
            del said["prompt_file"]
            said["prompt"] = text
        elif path is not None:
            said["prompt_file"] = path
    return said
