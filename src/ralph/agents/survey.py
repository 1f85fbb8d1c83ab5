"""Lists all known agents: what they can do, and which are installed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import detect, registry
from ralph.agents.compose import choose_invocation
from ralph.errors import UsageError

if TYPE_CHECKING:
    from ralph.agents.spec import AgentSpec, Invocation


class Row(msgspec.Struct, frozen=True):
    """One agent: what ralph knows about it, and what is installed."""

    name: str
    title: str
    path: str | None
    version: str | None
    #: whether its version command succeeded
    works: bool
    prompt: str
    transcript: str
    thinking: bool
    tools: bool
    usage: bool
    cost: bool
    session: bool
    resume: bool
    tool_list: bool
    model: bool
    install: str
    link: str
    #: the user's own spec file; None for a built-in agent
    file: str | None = None
    #: whether that file replaces a built-in agent
    replaces: bool = False


def survey() -> list[Row]:
    """Return all agents in the order of detection; those that are only used by name come last."""
    specs = sorted(registry.all_specs(), key=lambda s: (s.detect is None, s.detect or 0, s.name))
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(_row, specs))


def _row(spec: AgentSpec) -> Row:
    path = detect.locate(spec)
    works, version = detect.probe(spec, path) if path else (False, None)
    invocation = _invocation(spec, version)
    own = registry.own()
    return Row(
        name=spec.name,
        title=spec.title,
        path=path,
        version=version,
        works=works,
        prompt=invocation.prompt.value,
        transcript=invocation.transcript,
        thinking="thinking" in spec.tells,
        tools="tools" in spec.tells,
        usage="usage" in spec.tells,
        cost="cost" in spec.tells,
        session="session" in spec.tells,
        resume=(invocation.session or spec.session) is not None,
        tool_list=spec.tools is not None,
        model=bool(spec.model),
        install=spec.install,
        link=spec.link,
        file=str(own.paths[spec.name]) if spec.name in own.paths else None,
        replaces=spec.name in own.paths and spec.name in registry.builtin_names(),
    )


def _invocation(spec: AgentSpec, version: str | None) -> Invocation:
    try:
        return choose_invocation(spec, version, lambda _: "")
    except UsageError:  # an unsupported version: show the newest invocation
        return spec.invocation[0]
