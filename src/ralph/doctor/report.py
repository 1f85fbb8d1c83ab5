"""All of it together, and whether a run could start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.agents.versions import VersionStatus
from ralph.doctor import agents, surroundings
from ralph.doctor.surroundings import Check, State
from ralph.errors import UsageError
from ralph.judging.prices import Prices
from ralph.planning.approvals import items_to_approve
from ralph.planning.prepare import prepare_launch

if TYPE_CHECKING:
    from ralph.doctor.agents import AgentCheck
    from ralph.launching.launch import Launch
    from ralph.planning.settle import Settled


class Report(msgspec.Struct, frozen=True):
    ready: bool
    #: the agent that `ralph run` would use
    would_use: str | None
    why_not: list[str]
    agents: list[AgentCheck]
    not_found: list[str]
    checks: list[Check]

    @property
    def blocked(self) -> bool:
        """Whether no run could start here, whichever the agent."""
        return any(check.state is State.PROBLEM for check in self.checks)


def examine(settled: Settled, config_problem: str | None) -> Report:
    """Looks at everything; starts nothing but version probes."""
    # With settings that are wrong nobody knows which agent was meant.
    launch, no_agent = _launch(settled) if config_problem is None else (None, None)
    found, not_found = agents.look(settled.resolved, settled.workdir, launch)
    prices = launch.prices if launch is not None else Prices()
    checks = surroundings.look(settled, config_problem, prices)
    why_not = [f"{check.name}: {check.text}" for check in checks if check.state is State.PROBLEM]
    if no_agent is not None:
        why_not.append(no_agent)
    ready = not why_not and launch is not None
    return Report(ready, launch.agent if launch else None, why_not, found, not_found, checks)


def _launch(settled: Settled) -> tuple[Launch | None, str | None]:
    resolved, workdir = settled.resolved, settled.workdir
    if settled.trust.missing(items_to_approve(resolved, workdir)):
        return None, None  # the check of that name says what is missing
    try:
        return prepare_launch(resolved, workdir, settled.trust), None
    except UsageError as error:
        text = str(error)
        if resolved.settings.agent == "auto" and text.startswith("no agent was found"):
            # the list of those looked for stands above already
            text = "no agent was found in PATH: install one, or name any program with --agent-cmd 'COMMAND'"
        return None, text


def describe_version(agent: AgentCheck) -> str:
    if not agent.answers:
        return "does not answer when asked for its version"
    if agent.version is None:
        return "" if agent.name == "custom" else "version unknown"
    # Of many, the first and the last say enough; `--json` has them all.
    tested = ", ".join(agent.tested) if len(agent.tested) < 4 else f"{agent.tested[0]} … {agent.tested[-1]}"
    match agent.version_status:
        case VersionStatus.TESTED:
            return f"{agent.version}, tested"
        case VersionStatus.TOO_OLD:
            return f"{agent.version}, too old: at least {agent.minimum} is needed"
        case VersionStatus.OLDER:
            return f"{agent.version}, older than those tested ({tested})"
        case VersionStatus.NEWER:
            return f"{agent.version}, newer than those tested ({tested})"
        case VersionStatus.BETWEEN:
            return f"{agent.version}, between those tested ({tested})"
        case VersionStatus.UNKNOWN:
            return f"{agent.version}, none was tested"
