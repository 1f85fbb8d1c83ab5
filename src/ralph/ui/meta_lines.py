"""Meta events as lines: a function for each kind takes the event's fields and returns (label, text) pairs.

A journal may come from anywhere, so no field can be relied on. The caller makes the text safe for a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ralph.config.durations import format_duration
from ralph.system.text import count
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    Fields = dict[str, Any]
    Lines = list[tuple[str, str]]

_CHECK_LINES = 12


def meta_lines(fields: Fields) -> Lines:
    """The lines for a meta event; none for a kind that is not shown."""
    kind = fields.get("kind")
    shown = _KINDS.get(kind) if isinstance(kind, str) else None
    return shown(fields) if shown is not None else []


# -- a run


def _run_start(fields: Fields) -> Lines:
    version = f" {fields['version']}" if fields.get("version") else ""
    resumed = ""
    if fields.get("kind") == Kind.RUN_RESUME:
        how = str(fields.get("after")).replace("_", " ")
        resumed = f", resumed after iteration {fields.get('iterations')} ({how})"
    return [
        ("HEAD", f"ralph run {fields.get('run')}{resumed}"),
        (
            "SYS",
            f"agent {fields.get('agent')}{version} · transcript {fields.get('transcript')} · in {fields.get('cwd')}",
        ),
        ("SYS", f"limits: {fields.get('limits')}"),
    ]


def _run_end(fields: Fields) -> Lines:
    end = str(fields.get("end")).replace("_", " ").capitalize()
    lines = [("", ""), ("HEAD", f"{end} (exit code {fields.get('exit_code')})")]
    summary = _table(fields.get("summary"))
    width = max((len(name) for name in summary), default=0)
    for name, value in summary.items():
        lines += [(f"{'' if n else name:<{width}}", part) for n, part in enumerate(str(value).split("\n"))]
    return lines


def _verdict(fields: Fields) -> Lines:
    usage = ", ".join(f"{k} {v}" for k, v in _table(fields.get("usage")).items()) or "unknown"
    tools = ", ".join(f"{v} {k}" for k, v in _table(fields.get("tools")).items())
    done = "complete" if fields.get("completed") else "not complete"
    session = fields.get("session_id") or "unknown"
    return [
        ("RALPH", f"{fields.get('outcome')}, {done}: {fields.get('why')}"),
        ("RALPH", f"tools: {tools} · usage: {usage} · session: {session}"),
    ]


# -- an iteration


def _iteration_start(fields: Fields) -> Lines:
    of = f" of {fields['max']}" if fields.get("max") else ""
    agent = f", {fields['agent']}" if fields.get("fallback") else ""
    size = fields.get("prompt_chars")
    prompt = count(size, "character") if isinstance(size, int) else "? characters"
    return [
        ("", ""),
        ("HEAD", f"Iteration {fields.get('n')}{of}{agent}"),
        ("PROMPT", f"{prompt} from {fields.get('prompt_from')}"),
    ]


def _iteration_end(fields: Fields) -> Lines:
    lines = [(name.upper(), str(fields[name])) for name in ("plan", "actions", "report") if fields.get(name)]
    outcome = str(fields.get("outcome"))
    if outcome != "ok":
        outcome += f": {fields.get('why')}"
    facts = [f"iteration {fields.get('n')} {outcome}"]
    if "seconds" in fields:  # an iteration that was cut short has none
        facts += [_time(fields["seconds"]), str(fields.get("progress"))]
    return [*lines, ("RALPH", " · ".join(facts)), ("RALPH", f"→ {fields.get('next')}")]


def _verify(fields: Fields) -> Lines:
    sign, how = ("✓", "passes") if fields.get("ok") else ("✗", f"fails: {fields.get('why')}")
    when = "before the run" if fields.get("baseline") else "now"
    lines = [("VERIFY", f"{sign} {fields.get('command')} · {when} it {how} · {_time(fields.get('seconds'))}")]
    if fields.get("note"):
        lines.append(("VERIFY", f"  {fields['note']}"))
    if not fields.get("ok") and not fields.get("baseline"):
        tail = str(fields.get("tail") or "").splitlines()[-_CHECK_LINES:]
        lines += [("VERIFY", f"  │ {line}") for line in tail]
    return lines


# -- between iterations


def _wait(fields: Fields) -> Lines:
    return [("RALPH", f"waiting {_time(fields.get('seconds'))}, until {fields.get('at')} ({fields.get('why')})")]


def _pause(fields: Fields) -> Lines:
    if fields.get("state") == "paused":
        return [("RALPH", f"paused; to resume, run `{fields.get('go_on')}` in another terminal")]
    return [("RALPH", f"resumed after a pause of {_time(fields.get('seconds'))}")]


def _steer(fields: Fields) -> Lines:
    match fields.get("state"):
        case "arrived":
            what = "for the next prompt"
        case "read":
            what = "delivered to the agent"
        case _:
            what = "dropped"
    first, *more = str(fields.get("text")).strip().split("\n")
    rest = f" … ({count(len(more), 'more line')})" if more else ""
    return [("STEER", f"note {what}: {first}{rest}")]


# -- single lines


def _notice(fields: Fields) -> Lines:
    return [("SYS", line) for line in str(fields.get("text")).splitlines()]


def _event(fields: Fields) -> Lines:
    target = f" to {fields['target']}" if fields.get("target") else ""
    payload = " ⏎ ".join(str(fields.get("payload") or "").split("\n"))
    return [("EVENT", f"{fields.get('topic')}{target}{': ' + payload if payload else ''}")]


def _retry(fields: Fields) -> Lines:
    return [("SYS", f"retrying: {fields.get('message')}")]


def _error(fields: Fields) -> Lines:
    return [("SYS", f"error ({fields.get('class')}): {fields.get('message')}")]


def _rate_limit(fields: Fields) -> Lines:
    return [("SYS", f"rate limit: {fields.get('message') or 'reached'}")]


def _parse_error(fields: Fields) -> Lines:
    return [("SYS", f"not understood: {fields.get('message')}")]


_KINDS: dict[str, Callable[[Fields], Lines]] = {
    Kind.RUN_START: _run_start,
    Kind.RUN_RESUME: _run_start,
    Kind.ITERATION_START: _iteration_start,
    Kind.ITERATION_END: _iteration_end,
    Kind.VERIFY: _verify,
    Kind.WAIT: _wait,
    Kind.PAUSE: _pause,
    Kind.STEER: _steer,
    Kind.RUN_END: _run_end,
    Kind.VERDICT: _verdict,
    Kind.NOTICE: _notice,
    Kind.EVENT: _event,
    Kind.RETRY: _retry,
    Kind.ERROR: _error,
    Kind.RATE_LIMIT: _rate_limit,
    Kind.PARSE_ERROR: _parse_error,
}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _time(value: Any) -> str:
    return format_duration(value) if isinstance(value, int | float) and 0 <= value < 1e15 else "?"
