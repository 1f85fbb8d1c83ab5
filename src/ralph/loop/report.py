"""What ralph itself reports about a run, as events: the journal and every screen show the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.judging.judge import Outcome
from ralph.loop.describe import describe_changes, describe_tools, describe_usage
from ralph.loop.limits import describe_limits
from ralph.loop.state import saved
from ralph.loop.waits import at
from ralph.transcripts.events import Meta
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    from ralph.judging.observe import Observation
    from ralph.launching.launch import Launch
    from ralph.loop.decide import Step
    from ralph.loop.finished import Finished
    from ralph.loop.limits import Limits
    from ralph.loop.resume import Past
    from ralph.loop.state import RunState
    from ralph.loop.verify import Check
    from ralph.loop.waits import Wait


def run_start(launch: Launch, run_id: str, limits: Limits, past: Past | None = None) -> Meta:
    """The start of a run, or of the rest of one (`past`)."""
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


def iteration_end(finished: Finished, step: Step, state: RunState) -> Meta:
    """The verdict, and the PLAN, ACTIONS and REPORT callouts if the transcript supports them."""
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
        "usage": msgspec.to_builtins(finished.used) if seen.usage_seen else None,
        "cost_from": seen.cost.source.value if seen.cost.source else None,
        "tools": msgspec.to_builtins(seen.tools),
        "files": len(finished.changes.files),
        "commits": finished.changes.commits,
        "progress": describe_changes(finished.changes),
        "counted": None if finished.counts else False,
        **_state(state),
        "next": f"{step.end.replace('_', ' ') if step.end else 'continuing'}: {step.reason}",
    }
    if capabilities.supports_roles and seen.plan:
        fields["plan"] = seen.plan
    if capabilities.supports_tool_events and seen.tools.started:
        fields["actions"] = describe_tools(seen)
    if capabilities.supports_usage_events and seen.usage_seen:
        fields["report"] = describe_usage(finished.used)
    return Meta({k: v for k, v in fields.items() if v is not None})


def unfinished_end(number: int, seen: Observation, state: RunState) -> Meta:
    """The end of an iteration during which ralph died, written by the process that resumes the run."""
    used = seen.used(cut_short=True)
    return Meta(
        {
            "kind": Kind.ITERATION_END.value,
            "n": number,
            "outcome": Outcome.CRASHED.value,
            "why": "ralph died during this iteration",
            "completed": False,
            **({"session_id": seen.session_id} if seen.session_id else {}),
            **({"usage": msgspec.to_builtins(used), "report": describe_usage(used)} if seen.usage_seen else {}),
            "tools": msgspec.to_builtins(seen.tools),
            "counted": False,
            **_state(state),
            "next": "continuing: the iteration runs again",
        }
    )


def _state(state: RunState) -> dict[str, Any]:
    breaker = msgspec.to_builtins(state.breaker)
    return {**({"breaker": breaker} if breaker else {}), "state": saved(state)}


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


def paused(resume: str) -> Meta:
    """The run is paused until the command `resume` is run."""
    return Meta({"kind": Kind.PAUSE.value, "state": "paused", "go_on": resume})


def resumed(seconds: float) -> Meta:
    return Meta({"kind": Kind.PAUSE.value, "state": "resumed", "seconds": round(seconds, 3)})


def steer(state: str, text: str) -> Meta:
    """A user's note `arrived`, was `read` by a successful iteration, or was `dropped`."""
    return Meta({"kind": Kind.STEER.value, "state": state, "text": text})


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
        "changed": list(check.changed) or None,
    }
    return Meta({k: v for k, v in fields.items() if v is not None})
