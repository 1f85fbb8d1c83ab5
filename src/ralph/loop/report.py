"""What ralph itself says about a run, as events: the journal and every screen show the same."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config.durations import format_duration
from ralph.judging.judge import Outcome
from ralph.judging.observe import known_total
from ralph.loop.state import saved
from ralph.loop.waits import at
from ralph.transcripts.events import Meta, Usage
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.journal.layout import RunPaths
    from ralph.judging.costs import RunCosts
    from ralph.judging.observe import Observation
    from ralph.launching.launch import Launch
    from ralph.loop.decide import Step
    from ralph.loop.iteration import Finished
    from ralph.loop.limits import Limits
    from ralph.loop.progress import Changes
    from ralph.loop.resume import Past
    from ralph.loop.state import RunState
    from ralph.loop.verify import Check
    from ralph.loop.waits import Wait

_FILES_SHOWN = 12


def run_start(launch: Launch, run_id: str, limits: Limits, past: Past | None = None) -> Meta:
    """Of a run, or of what is left of one."""
    before: dict[str, Any] = {}
    if past is not None:
        before = {"after": past.end or "died", "iterations": past.state.iteration, "torn": past.torn or None}
    return Meta(
        {
            "kind": (Kind.RUN_RESUME if past else Kind.RUN_START).value,
            **{name: value for name, value in before.items() if value is not None},
            "run": run_id,
            "agent": launch.agent,
            "version": launch.version,
            "transcript": launch.transcript,
            "cwd": str(launch.workdir),
            "limits": describe_limits(limits),
            **({"fallbacks": [other.agent for other in launch.fallbacks]} if launch.fallbacks else {}),
        }
    )


def describe_limits(limits: Limits) -> str:
    parts = [plural(limits.iterations, "iteration") if limits.iterations else "any number of iterations"]
    if limits.runtime:
        parts.append(format_duration(limits.runtime))
    if limits.cost:
        parts.append(f"${limits.cost:g}")
    if limits.tokens:
        parts.append(f"{limits.tokens:,} tokens")
    if limits.calls_per_hour:
        parts.append(f"{plural(limits.calls_per_hour, 'call')} an hour")
    failures = plural(limits.failures, "failure") if limits.failures else "any number of failures"
    parts.append(f"{failures} in a row")
    return ", ".join(parts)


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def iteration_start(number: int, maximum: int, prompt: str, source: str, launch: Launch, *, fallback: bool) -> Meta:
    """`fallback`: the agent is not the run's first choice."""
    return Meta(
        {
            "kind": Kind.ITERATION_START.value,
            "n": number,
            "max": maximum,
            "agent": launch.agent,
            **({"fallback": True} if fallback else {}),
            "prompt_chars": len(prompt),
            "prompt_from": source,
        }
    )


def iteration_end(finished: Finished, step: Step, state: RunState, *, counted: bool) -> Meta:
    """The verdict, and the PLAN, ACTIONS and REPORT callouts as far as the transcript supports them."""
    verdict, seen, capabilities = finished.verdict, finished.seen, finished.capabilities
    fields: dict[str, Any] = {
        "kind": Kind.ITERATION_END.value,
        "n": finished.number,
        "outcome": verdict.outcome.value,
        "why": verdict.why,
        "completed": verdict.completed,
        "completion": verdict.completion_why,
        "exit": finished.ended.status,
        "seconds": round(finished.ended.seconds, 3),
        "session_id": seen.session_id,
        "resets_at": seen.resets_at,
        "retry_after": seen.retry_after,
        "usage": msgspec.to_builtins(seen.spent) if seen.usage_seen else None,
        "cost_from": seen.cost.source.value if seen.cost.source else None,
        "tools": msgspec.to_builtins(seen.tools),
        "files": len(finished.changes.files),
        "commits": finished.changes.commits,
        "progress": describe_changes(finished.changes),
        "counted": None if counted else False,
        **_state(state),
        "next": f"{step.end.replace('_', ' ') if step.end else 'going on'}: {step.reason}",
    }
    if capabilities.supports_roles and seen.plan:
        fields["plan"] = seen.plan
    if capabilities.supports_tool_events and seen.tools.started:
        fields["actions"] = describe_tools(seen)
    if capabilities.supports_usage_events and seen.usage_seen:
        fields["report"] = describe_usage(seen.spent)
    return Meta({k: v for k, v in fields.items() if v is not None})


def cut_short(number: int, seen: Observation, state: RunState) -> Meta:
    """The end of an iteration whose ralph was ended in the middle of it, written by the one that goes on."""
    return Meta(
        {
            "kind": Kind.ITERATION_END.value,
            "n": number,
            "outcome": Outcome.CRASHED.value,
            "why": "ralph was ended while it ran",
            "completed": False,
            **({"session_id": seen.session_id} if seen.session_id else {}),
            **({"usage": msgspec.to_builtins(seen.spent)} if seen.usage_seen else {}),
            "tools": msgspec.to_builtins(seen.tools),
            "counted": False,
            **_state(state),
            "next": "going on: it is done again",
        }
    )


def _state(state: RunState) -> dict[str, Any]:
    breaker = msgspec.to_builtins(state.breaker)
    return {**({"breaker": breaker} if breaker else {}), "state": saved(state)}


def describe_tools(seen: Observation) -> str:
    counts = seen.tools
    names = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in seen.tool_names.most_common(6))
    results = [f"{counts.ok} ok"]
    if counts.fail:
        results.append(f"{counts.fail} failed")
    if counts.unknown:
        results.append(f"{counts.unknown} unknown")
    if seen.open_tools:
        results.append(f"{len(seen.open_tools)} not ended")
    took = f" in {format_duration(seen.tool_ms / 1000)}" if seen.tool_ms else ""
    return f"{plural(counts.started, 'tool call')} ({names}): {', '.join(results)}{took}"


def describe_usage(usage: Usage) -> str:
    parts = []
    if usage.prompt_tokens is not None:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        parts.append(f"{usage.prompt_tokens:,} in{cached}")
    if usage.completion_tokens is not None:
        parts.append(f"{usage.completion_tokens:,} out")
    total = known_total(usage)
    if total is not None:
        parts.append(f"{total:,} tokens")
    if usage.cost_usd is not None:
        parts.append(f"${usage.cost_usd:.4f}")
    if usage.model:
        parts.append(usage.model)
    return " · ".join(parts)


def describe_changes(changes: Changes) -> str:
    if not changes.changed:
        return "nothing changed"
    parts = []
    if changes.commits:
        parts.append(plural(changes.commits, "commit"))
    if changes.files:
        parts.append(f"{plural(len(changes.files), 'file')} changed")
    return ", ".join(parts) or "changed"


def wait(pause: Wait, now: float) -> Meta:
    return Meta(
        {
            "kind": Kind.WAIT.value,
            "until": round(pause.until, 3),
            "seconds": round(pause.seconds, 3),
            "at": at(pause.until, now),
            "why": pause.why,
        }
    )


def paused(go_on: str) -> Meta:
    """The run is held until `go_on`, a command, is run."""
    return Meta({"kind": Kind.PAUSE.value, "state": "paused", "go_on": go_on})


def resumed(seconds: float) -> Meta:
    return Meta({"kind": Kind.PAUSE.value, "state": "resumed", "seconds": round(seconds, 3)})


def steer(state: str, text: str) -> Meta:
    """A note of the user's has `arrived`, was `read` by an iteration that worked, or was `dropped`."""
    return Meta({"kind": Kind.STEER.value, "state": state, "text": text})


def resume_command(workdir: Path, run_id: str, *, alone: bool) -> str:
    """What ends a pause, from where the user is. `alone`: no other run can be meant."""
    return f"ralph resume{_from_here(workdir)}{'' if alone else f' {run_id}'}"


def verify(check: Check, *, baseline: bool, note: str | None) -> Meta:
    fields = {
        "kind": Kind.VERIFY.value,
        "command": check.command,
        "ok": check.ok,
        "why": check.why,
        "seconds": round(check.seconds, 3),
        "tail": check.tail,
        "baseline": baseline,
        "note": note,
    }
    return Meta({k: v for k, v in fields.items() if v is not None})


def run_end(
    step: Step, code: int, facts: dict[str, Any], changes: Changes | None, paths: RunPaths, workdir: Path
) -> Meta:
    usage: Usage = facts["usage"]
    missing: int = facts["usage_missing"]
    costs: RunCosts = facts["costs"]
    tokens = known_total(usage)
    partly = f" (not reported in {missing} of {facts['iterations']} iterations)" if missing else ""
    assert step.end is not None
    summary = {
        "Why": step.reason,
        "Iterations": _iterations(facts["iterations"], facts["uncounted"]),
        "Time": format_duration(facts["seconds"]) + _paused(facts["paused"]),
        "Tokens": "unknown"
        if tokens is None
        else describe_usage(msgspec.structs.replace(usage, cost_usd=None)) + partly,
        "Cost": costs.describe(usage.cost_usd, facts["iterations"]),
        "Changed": _files(changes),
        "Journal": _relative(paths.root, _here()),
        "Next": _next_step(step.end.value, f"ralph show{_from_here(workdir)} {paths.run_id}"),
    }
    return Meta(
        {
            "kind": Kind.RUN_END.value,
            "end": step.end.value,
            "exit_code": code,
            "reason": step.reason,
            "iterations": facts["iterations"],
            "seconds": round(facts["seconds"], 3),
            "usage": msgspec.to_builtins(usage),
            "cost": costs.facts(usage.cost_usd),
            "files": changes.files[:1000] if changes else [],
            "commits": changes.commits if changes else 0,
            "summary": summary,
        }
    )


def _paused(seconds: float) -> str:
    return f" (and {format_duration(seconds)} paused)" if seconds else ""


def _iterations(number: int, uncounted: int) -> str:
    return (
        f"{number} ({uncounted} not counted: a limit of the provider, a pause, or cut short)"
        if uncounted
        else str(number)
    )


def _files(changes: Changes | None) -> str:
    if changes is None:
        return "unknown (the working directory is gone)"
    lines = [describe_changes(changes).removesuffix(" changed")]
    lines += [f"  {name}" for name in changes.files[:_FILES_SHOWN]]
    if len(changes.files) > _FILES_SHOWN:
        lines.append(f"  … and {len(changes.files) - _FILES_SHOWN} more")
    return "\n".join(lines)


def _relative(path: Path, base: str) -> str:
    return str(path.relative_to(base)) if base != os.sep and path.is_relative_to(base) else str(path)


def _here() -> str:
    """Where the user is, who may have sent the agent elsewhere; nowhere if that is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib is not needed at run time here
    except OSError:
        return os.sep


def _from_here(workdir: Path) -> str:
    """What must be added to a command so that it looks where the run was."""
    here = _here()
    if workdir.is_dir() and os.path.realpath(workdir) == os.path.realpath(here):
        return ""
    return f" --cwd {shlex.quote(os.path.relpath(workdir, here))}"


def _next_step(end: str, look: str) -> str:
    match end:
        case "complete":
            return f"{look} shows what happened"
        case "limit":
            return f"{look} shows what happened; `ralph run --resume` goes on, with a higher limit"
        case "replan":
            return "the agent asks for a new plan: change the prompt or the plan, then run again"
        case "stuck":
            return f"{look} shows what happened; change the prompt or the plan, then run again"
        case "needs_person":
            return "do what is said above, then `ralph run --resume`"
        case _:
            return f"{look} shows what happened; `ralph run --resume` goes on"
