"""How a run ended, as an event: the summary that the user reads first."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import msgspec

from ralph.config.durations import format_duration
from ralph.judging.usage import known_total
from ralph.loop.decide import EXIT_CODES, End
from ralph.loop.describe import describe_changes, describe_usage, plural
from ralph.transcripts.events import Meta
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.journal.layout import RunPaths
    from ralph.loop.decide import Step
    from ralph.loop.state import RunState
    from ralph.tree.snapshot import Changes

_FILES_SHOWN = 12


def run_end(
    step: Step, state: RunState, paused: float, changes: Changes | None, paths: RunPaths, workdir: Path
) -> Meta:
    """`paused` is how many seconds the run was paused. `changes` is None if the working directory is gone."""
    assert step.end is not None
    usage = state.used
    return Meta(
        {
            "kind": Kind.RUN_END.value,
            "end": step.end.value,
            "exit_code": EXIT_CODES[step.end],
            "reason": step.reason,
            "iterations": state.iteration,
            "seconds": round(state.elapsed, 3),
            "usage": msgspec.to_builtins(usage),
            "cost": state.costs.facts(usage.cost_usd, at_least=usage.at_least),
            "files": changes.files[:1000] if changes else [],
            "commits": changes.commits if changes else 0,
            "summary": {
                "Why": step.reason,
                "Iterations": _iterations(state),
                "Time": format_duration(state.elapsed) + (f" (and {format_duration(paused)} paused)" if paused else ""),
                "Tokens": _tokens(state),
                "Cost": state.costs.describe(usage.cost_usd, state.iteration, at_least=usage.at_least),
                "Changed": _files(changes),
                "Journal": _relative(paths.root, _here()),
                "Next": _next_step(step.end, f"ralph show{_from_here(workdir)} {paths.run_id}"),
            },
        }
    )


def resume_command(workdir: Path, run_id: str, *, alone: bool) -> str:
    """The command that ends a pause, for the user's current directory. `alone`: no other run can be meant."""
    return f"ralph resume{_from_here(workdir)}{'' if alone else f' {run_id}'}"


def _iterations(state: RunState) -> str:
    if not state.uncounted:
        return str(state.iteration)
    return f"{state.iteration} ({state.uncounted} not counted: provider limit, pause, or cut short)"


def _tokens(state: RunState) -> str:
    if known_total(state.usage) is None:
        return "unknown"
    gaps = {"not reported": state.usage_missing, "incomplete": state.usage_partial}
    total = plural(state.iteration, "iteration")
    why = "; ".join(f"{gap} in {number} of {total}" for gap, number in gaps.items() if number)
    return describe_usage(msgspec.structs.replace(state.used, cost_usd=None)) + (f" ({why})" if why else "")


def _files(changes: Changes | None) -> str:
    if changes is None:
        return "unknown (the working directory is gone)"
    lines = [describe_changes(changes).removesuffix(" changed")]
    lines += [f"  {name}" for name in changes.files[:_FILES_SHOWN]]
    if len(changes.files) > _FILES_SHOWN:
        lines.append(f"  … and {len(changes.files) - _FILES_SHOWN} more")
    return "\n".join(lines)


def _relative(path: Path, base: str) -> str:
    return str(path.relative_to(base)) if base not in ("", os.sep) and path.is_relative_to(base) else str(path)


def _here() -> str:
    """The user's current directory, which need not be the agent's; empty if it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib is not needed at run time here
    except OSError:
        return ""


def _from_here(workdir: Path) -> str:
    """The option that makes a command look in the run's directory, if it is another one."""
    here = _here()
    if here and workdir.is_dir() and os.path.realpath(workdir) == os.path.realpath(here):
        return ""
    return f" --cwd {shlex.quote(os.path.relpath(workdir, here) if here else str(workdir))}"


def _next_step(end: End, look: str) -> str:
    match end:
        case End.COMPLETE:
            return f"{look} shows what happened"
        case End.LIMIT:
            return f"{look} shows what happened; raise the limit and `ralph run --resume` to continue"
        case End.REPLAN:
            return "the agent asks for a new plan: change the prompt or the plan, then run again"
        case End.STUCK:
            return f"{look} shows what happened; change the prompt or the plan, then run again"
        case End.NEEDS_PERSON:
            return "follow the advice above, then `ralph run --resume` to continue"
        case _:
            return f"{look} shows what happened; `ralph run --resume` to continue"
