"""Turns a spec into a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.agents.versions import in_range
from ralph.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.agents.spec import AgentSpec, Invocation, SessionFlags


def choose_invocation(spec: AgentSpec, version: str | None, help_text: Callable[[tuple[str, ...]], str]) -> Invocation:
    """Return the first invocation that fits the version, if known, and the flags that `--help` shows."""
    for candidate in spec.invocation:
        if version is not None and not in_range(version, candidate.versions):
            continue
        if candidate.help_mentions and candidate.help_mentions not in help_text(candidate.help_args):
            continue
        return candidate
    ranges = " or ".join(i.versions for i in spec.invocation if i.versions)
    raise UsageError(
        f"ralph does not support {spec.title} {version or ''}, only {ranges}.\n"
        f"  To install another version: {spec.install or spec.link}"
    )


def arguments(
    spec: AgentSpec,
    invocation: Invocation,
    *,
    model: str | None = None,
    session: str | None = None,
    resume: bool = False,
    tools: tuple[str, ...] = (),
) -> list[str]:
    """Return all arguments between the program and the prompt."""
    approve = spec.approve if invocation.approve is None else invocation.approve
    flags = {
        "{approve}": [] if tools and spec.tools else list(approve),
        "{model}": model_flags(spec, model),
        "{session}": session_flags(invocation.session or spec.session, session, resume=resume),
        "{tools}": tool_flags(spec, tools),
    }
    placed: list[str] = []
    for argument in invocation.args:
        placed += flags.pop(argument, [argument])
    return placed + [flag for rest in flags.values() for flag in rest]


def model_flags(spec: AgentSpec, model: str | None) -> list[str]:
    if not model:
        if spec.model_required:
            raise UsageError(f"{spec.title} needs a model: set one with --model NAME")
        return []
    if not spec.model:
        raise UsageError(f"{spec.title} has no flag for the model: remove --model")
    return [a.replace("{model}", model) for a in spec.model]


def effort_flags(spec: AgentSpec, level: str) -> list[str]:
    """The flags for a level of effort; none if the agent cannot set it."""
    if spec.effort is None:
        return []
    named = spec.effort.levels.get(level, level)
    return [a.replace("{effort}", named) for a in spec.effort.flags]


def session_flags(flags: SessionFlags | None, session: str | None, *, resume: bool) -> list[str]:
    if not session or flags is None:
        return []
    return [a.replace("{session}", session) for a in (flags.resume if resume else flags.start)]


def unknown_tools(spec: AgentSpec, tools: tuple[str, ...]) -> list[str]:
    """Return the tools that the agent does not have, as far as its tools are known."""
    known = spec.tools.names if spec.tools else ()
    return [t for t in tools if known and t.partition("(")[0] not in known and not t.startswith("mcp__")]


def tool_flags(spec: AgentSpec, tools: tuple[str, ...]) -> list[str]:
    """Return the flags that allow only these tools. Raises UsageError for a tool that the agent does not have."""
    if not tools:
        return []
    if spec.tools is None:
        raise UsageError(
            f"{spec.title} cannot restrict its tools, so --allowed-tools would have no effect: remove it, "
            "or use an agent that can restrict them (see `ralph agents`)"
        )
    known = spec.tools.names
    wrong = unknown_tools(spec, tools)
    if wrong:
        hints = ", ".join(f"'{t}'{nearest(t.partition('(')[0], known)}" for t in wrong)
        raise UsageError(f"{spec.title} has no tool {hints}; it has: {', '.join(known)}")
    flags = spec.tools.allow
    if any("{tool}" in a for a in flags):
        return [a.replace("{tool}", tool) for tool in tools for a in flags]
    listed = spec.tools.separator.join(tools)
    return [a.replace("{tools}", listed) for a in flags]
