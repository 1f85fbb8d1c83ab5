"""Turns settings into a launch: which agent runs, how it is started, and with which prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.config.settings import OnLimit, Signals
from ralph.dialects.detect import follows_plan
from ralph.dialects.modules import AGENT_SETTINGS, module
from ralph.judging.prices import find as find_prices
from ralph.launching import known
from ralph.launching.prompt import PromptSource, from_settings
from ralph.planning.approvals import items_to_approve
from ralph.planning.fallback import fallback_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ralph.config.layers import Resolved
    from ralph.judging.signals import Markers, SignalReader
    from ralph.launching.launch import Launch
    from ralph.trust.approval import Trust


def prepare_launch(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:
    """The agent and how to start it, with its fallbacks. A missing agent or fallback is a UsageError.

    This runs only version probes and, if the user approved them, the hooks of another convention's files.
    """
    launch = _prepare_one(resolved, workdir, trust)
    if resolved.settings.on_limit is not OnLimit.FALLBACK:
        return launch
    names = resolved.settings.agents[1:]
    fallbacks = tuple(_prepare_one(fallback_settings(resolved, name), workdir, trust) for name in names)
    more = [w for other in fallbacks for w in other.resolved.warnings if w not in launch.resolved.warnings]
    return msgspec.structs.replace(launch, resolved=launch.resolved.warn(*more), fallbacks=fallbacks)


def prompt_source(resolved: Resolved, workdir: Path) -> PromptSource:
    """Where each iteration's prompt comes from."""
    if not follows_plan(resolved):
        return from_settings(resolved, workdir)
    from ralph.dialects.provider import planfile  # late: most runs do not need it

    return planfile.source(resolved, workdir)


def _prepare_one(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:
    trust.require([item for item in items_to_approve(resolved, workdir) if item.at_start])
    launch = _choose(resolved, workdir, trust)
    if launch.launcher is None and follows_plan(resolved):
        from ralph.dialects.provider.launcher import follow

        launch = follow(launch)
    launch = msgspec.structs.replace(launch, prices=find_prices(resolved), trust=trust, signals=_signals(launch))
    return msgspec.structs.replace(launch, resolved=launch.resolved.warn(*_cost_warnings(launch)))


def _choose(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:
    settings = resolved.settings
    for dialect, setting in AGENT_SETTINGS.items():
        if getattr(settings, setting):
            return module(dialect).launch(resolved, workdir, trust)
    if settings.agent_cmd is not None:
        return known.template_launch(resolved, workdir, settings.agent_cmd)
    if settings.agent == "custom":
        return known.custom_launch(resolved, workdir)
    return known.spec_launch(resolved, workdir, trust)


def _signals(launch: Launch) -> Callable[[Markers], SignalReader] | None:
    if launch.settings.signals is not Signals.STATUS:
        return None
    from ralph.dialects.driver.status import StatusReader

    plan = launch.settings.fix_plan
    path = launch.workdir / plan if plan else None
    return lambda markers: StatusReader(markers, path)


def _cost_warnings(launch: Launch) -> list[str]:
    """A warning before the start if --max-cost cannot be enforced, or only perhaps."""
    if not launch.settings.max_cost or "cost" in launch.tells:
        return []
    if launch.cost_gap is not None:
        return [f"--max-cost cannot be enforced: {launch.cost_gap}"]
    if launch.settings.model is not None:
        return []
    return [
        f"--max-cost is enforced only if a price is known for the model that {launch.title} uses: it reports no cost"
    ]
