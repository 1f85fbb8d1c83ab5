"""The whole report, and whether a run could start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.agents.versions import VersionStatus
from ralph.doctor.agents import check_agents
from ralph.doctor.environment import Check, State, check_environment
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
        """Whether no run could start here with any agent."""
        return any(check.state is State.PROBLEM for check in self.checks)


def examine(settled: Settled, config_problem: str | None) -> Report:
    """Checks everything. It starts nothing but version probes."""
    # If the settings are wrong, we do not know which agent the user means.
    launch, no_agent = _launch(settled) if config_problem is None else (None, None)
    found, not_found = check_agents(settled.resolved, settled.workdir, launch)
    prices = launch.prices if launch is not None else Prices()
    checks = check_environment(settled, config_problem, prices)
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
            # the report lists them above
            text = "no agent was found in PATH: install one, or name any program with --agent-cmd 'COMMAND'"
        return None, text


def describe_version(agent: AgentCheck) -> str:
    if not agent.answers:
        return "does not print its version"
    if agent.version is None:
        return "" if agent.name == "custom" else "version unknown"
    # Of many versions, show the first and the last; `--json` has them all.
    tested = ", ".join(agent.tested) if len(agent.tested) < 4 else f"{agent.tested[0]} … {agent.tested[-1]}"
    match agent.version_status:
        case VersionStatus.TESTED:
            return f"{agent.version}, tested"
        case VersionStatus.TOO_OLD:
            return f"{agent.version}, too old: {agent.minimum} or later is needed"
        case VersionStatus.OLDER:
            return f"{agent.version}, older than the tested versions ({tested})"
        case VersionStatus.NEWER:
            return f"{agent.version}, newer than the tested versions ({tested})"
        case VersionStatus.BETWEEN:
            return f"{agent.version}, between tested versions ({tested})"
        case VersionStatus.UNKNOWN:
            return f"{agent.version}, no version was tested"
