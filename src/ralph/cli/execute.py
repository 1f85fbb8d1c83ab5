"""Runs a launch: opens its journal and its screen, then runs the loop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.launching.prompt import NO_PROMPT
from ralph.planning.approvals import items_to_approve
from ralph.planning.settle import working_directory

if TYPE_CHECKING:
    from ralph.config.layers import Resolved
    from ralph.journal.layout import RunPaths
    from ralph.journal.writer import JournalWriter
    from ralph.launching.launch import Launch
    from ralph.launching.prompt import PromptSource
    from ralph.loop.resume import Past
    from ralph.loop.run import Loop
    from ralph.loop.screen import Screen


def execute(
    launch: Launch,
    source: PromptSource,
    shown: Screen | None = None,
    *,
    past: RunPaths | None = None,
    config_file: str | None = None,
) -> int:
    """Runs the loop, records it, and returns the exit code. `shown` replaces the screen from the settings."""
    import time

    from ralph.journal.alive import directory_lock, report_dead_runs
    from ralph.journal.backup import recover
    from ralph.journal.requests import Requests
    from ralph.journal.writer import JournalWriter, new_run_id, prepare_state
    from ralph.launching.masking import masker_of
    from ralph.loop.run import Loop
    from ralph.runners.process import Supervisor
    from ralph.runners.stop import StopSwitch
    from ralph.system import git
    from ralph.ui.ask import asker
    from ralph.ui.choose import choose, create
    from ralph.ui.guard import GuardedScreen

    settings = launch.settings
    launch.trust.require(
        items_to_approve(launch.resolved, launch.workdir)
    )  # files may have changed since they were approved
    working_directory(str(launch.workdir))  # fail if it was deleted: writing the journal would create it again
    state = prepare_state(launch.workdir)
    recovered = recover(state)
    run_id = past.run_id if past else new_run_id(time.time())
    with (
        directory_lock(state, exclusive=settings.exclusive) as lock,
        JournalWriter(
            state, run_id, resume=past is not None, masker=masker_of(launch), redact_raw=settings.redact_raw
        ) as journal,
        StopSwitch(Requests(journal.paths).prepare()) as stop,
    ):
        if settings.exclusive:
            lock.claim(run_id)
        known = _known(past, journal) if past else None
        journal.write_run(_facts(launch, source, run_id, past, config_file), sign=shown is None)
        screen = GuardedScreen(shown or create(settings.ui, may_skip=True), lambda: stop.kind is not None)
        live = choose(settings.ui) == "rich"
        try:
            locks = (*lock.fds, *journal.lock.fds)
            environ = launch.resolved.environ
            with Supervisor(stop, tick=0.2 if live else 1.0, locks=locks, environ=environ) as supervisor:
                ask = asker(screen, stop) if settings.interactive else None
                loop = Loop(launch, source, journal, screen, supervisor, stop, ask, known)
                if known is None or known.first is None:
                    _keep_baseline(loop, journal, resumed=known is not None)
                if launch.resolved.follows:
                    loop.note(launch.resolved.follows)
                refusal = git.refusal(launch.workdir) if loop.gates.first.state.head is None else None
                if refusal is not None:
                    loop.note(refusal)
                for warning in launch.resolved.warnings:
                    loop.note(f"warning: {warning}")
                if source.absent:
                    loop.note(NO_PROMPT)
                if journal.not_linked is not None:
                    loop.note(journal.not_linked)
                for name in recovered:
                    loop.note(f"the record of run {name}, which died, had been deleted; it was restored")
                for dead in report_dead_runs(state):
                    loop.note(dead)
                return loop.run()
        finally:
            screen.close()


def _keep_baseline(loop: Loop, journal: JournalWriter, *, resumed: bool) -> None:
    """Stores the tree before the run, for when the run is resumed."""
    if resumed:
        loop.note("the tree before this run is not known, so changes are counted from now on")
    baseline = loop.gates.first.encoded()
    if baseline is not None:
        journal.write_baseline(baseline)


def _known(past: RunPaths, journal: JournalWriter) -> Past:
    """The state of the run to resume. `journal` holds its lock, so no other process writes to it."""
    from ralph.loop import resume

    return msgspec.structs.replace(resume.read(past), torn=journal.torn.decode("utf-8", "replace"))


def _facts(
    launch: Launch, source: PromptSource, run_id: str, past: RunPaths | None, config_file: str | None
) -> dict[str, Any]:
    """The content of run.json: what was run and how, enough to resume it."""
    import sys
    import time

    from ralph import __version__
    from ralph.journal import reader

    before = reader.run_facts(past) if past else {}
    now = time.time()

    resolved: Resolved = launch.resolved
    return {
        "run": run_id,
        "ralph": __version__,
        "python": sys.version.split()[0],
        "started": before.get("started", now),
        **({"resumed": [*before.get("resumed", []), now]} if past else {}),
        "pid": os.getpid(),
        "cwd": str(launch.workdir),
        "agent": launch.agent,
        "agent_version": launch.version,
        "argv": [*launch.base, *([launch.template] if launch.template else [])],
        "prompt_delivery": launch.delivery,
        "prompt_from": source.shown,
        "prompt_path": str(source.path) if source.path else None,
        "prompt_text": source.text if source.text is not None and launch.settings.prompt is None else None,
        "transcript": launch.transcript,
        "settings": msgspec.to_builtins(launch.settings),
        "origins": resolved.origins,
        "config": str(Path(config_file).absolute()) if config_file else None,
        "config_files": [str(f) for f in resolved.files],
        "credentials": launch.credentials,
    }
