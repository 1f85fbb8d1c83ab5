"""`ralph run`: from a command line to a launch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ralph.cli.echo import echo
from ralph.errors import UsageError
from ralph.planning.approvals import items_to_approve
from ralph.planning.prepare import prepare_launch, prompt_source
from ralph.planning.settle import Settled, settle, start
from ralph.trust.approval import Trust, TrustError, from_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.journal.layout import RunPaths
    from ralph.launching.launch import Launch
    from ralph.launching.prompt import PromptSource
    from ralph.trust.items import Item


def run(
    flags: dict[str, Any],
    *,
    config_file: str | None = None,
    dry_run: bool = False,
    trust: bool = False,
    resume: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Runs the command and returns its exit code. `flags` are the settings on the command line."""
    trusted = from_environment(environ, flag=trust)
    past: RunPaths | None = None
    if resume is not None:
        from ralph.cli.resume import recall

        recalled = recall(start(flags, environ), resume, flags, config_file or environ.get("RALPH_CONFIG"), trusted)
        past, flags, config_file = recalled.paths, recalled.flags, recalled.config_file
        if recalled.complete:
            echo(f"run {past.run_id} is complete: there is nothing to resume")
            return 0
    if dry_run:
        return _dry_run(flags, config_file, trusted, environ)
    from ralph.cli.approve import approve
    from ralph.cli.execute import execute

    settled = settle(flags, config_file, trusted, approve, environ)
    trusted = approve(settled.trust, items_to_approve(settled.resolved, settled.workdir))
    launch, source, prompt = _prepare(settled, trusted)
    if settled.resolved.settings.interactive:
        from ralph.ui.ask import check_terminal

        check_terminal()
    for one in (launch, *launch.fallbacks):
        one.command_line(prompt, settled.workdir / "prompt.md")  # fails now if the agent cannot take this prompt
    return execute(launch, source, past=past, config_file=config_file)


def _dry_run(flags: dict[str, Any], config_file: str | None, trust: Trust, environ: Mapping[str, str]) -> int:
    from ralph.cli.dryrun import describe, not_approved

    needed: list[Item] = []

    def permit(before: Trust, wanted: list[Item]) -> Trust:
        after = before.recalling(wanted)
        needed.extend(after.missing(wanted))
        after.require(wanted)
        return after

    try:
        settled = settle(flags, config_file, trust, permit, environ)
    except TrustError:
        echo(not_approved(needed, None))
        return 0
    wanted = items_to_approve(settled.resolved, settled.workdir)
    trust = settled.trust.recalling(wanted)
    missing = trust.missing(wanted)
    if any(item.at_start for item in missing):
        echo(not_approved(missing, settled.resolved))
        return 0
    echo(describe(*_prepare(settled, trust), missing))
    return 0


def _prepare(settled: Settled, trust: Trust) -> tuple[Launch, PromptSource, str]:
    """The agent and the prompt. If both are missing, one error reports both."""
    resolved, workdir = settled.resolved, settled.workdir
    source = prompt_source(resolved, workdir)
    try:
        prompt = source.read()
    except UsageError as error:
        try:
            prepare_launch(resolved, workdir, trust)
        except UsageError as other:
            raise UsageError(f"{error}\nAlso, {other}") from None
        notes = [f"warning: {warning}" for warning in resolved.warnings]  # they may explain why there is no prompt
        raise UsageError("\n".join([str(error), *notes])) from None
    return prepare_launch(resolved, workdir, trust), source, prompt
