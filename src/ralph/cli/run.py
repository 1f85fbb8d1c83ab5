"""`ralph run`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.cli.echo import echo
from ralph.config.layers import Resolved, resolve
from ralph.dialects.found import RUN_TO_BE_READ, Dialect, choose, module
from ralph.errors import UsageError
from ralph.planning.environment import early, keep_back
from ralph.planning.prepare import prepare_launch
from ralph.planning.prompt import NO_PROMPT, PromptSource, prompt_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.config.filelayer import FileLayer
    from ralph.journal.layout import RunPaths
    from ralph.journal.writer import JournalWriter
    from ralph.loop.resume import Past
    from ralph.planning.launch import Launch
    from ralph.trust.items import Item
    from ralph.ui.screen import Screen

    #: Is given what of the repository's own would be run; comes back if that may be.
    Permit = Callable[[list[Item]], None]


def run(
    flags: dict[str, Any],
    *,
    config_file: str | None = None,
    dry_run: bool = False,
    trust: bool = False,
    resume: str | None = None,
) -> int:
    """What the command does; `flags` are the settings that stand on the command line."""
    from ralph.trust import items as trusting

    if trust:
        os.environ[trusting.VARIABLE] = "1"  # every check sees it; the loop keeps it from the agent
    past: RunPaths | None = None
    if resume is not None:
        from ralph.cli.resume import recall

        recalled = recall(_start(flags), resume, flags, config_file or os.environ.get("RALPH_CONFIG"))
        past, flags, config_file = recalled.paths, recalled.flags, recalled.config_file
        if recalled.complete:
            echo(f"run {past.run_id} is complete already: there is nothing left to do")
            return 0
    if dry_run:
        return _dry_run(flags, config_file)
    from ralph.cli.question import ask

    resolved, workdir = settle(flags, config_file, ask)
    ask(trusting.items(resolved, workdir))
    launch, source, prompt = _prepare(resolved, workdir)
    if resolved.settings.interactive:
        from ralph.ui.ask import check_terminal

        check_terminal()
    for one in (launch, *launch.fallbacks):
        one.command_line(prompt, workdir / "prompt.md")  # what cannot be delivered is an error before the start
    return execute(launch, source, past=past, config_file=config_file)


def _dry_run(flags: dict[str, Any], config_file: str | None) -> int:
    from ralph.cli.dryrun import describe, untrusted
    from ralph.trust import items as trust

    needed: list[Item] = []

    def stop(items: list[Item]) -> None:
        needed.extend(trust.untrusted(items))
        if needed:
            raise trust.TrustError(trust.refusal(needed))

    try:
        resolved, workdir = settle(flags, config_file, stop)
    except trust.TrustError:
        echo(untrusted(needed, None))
        return 0
    needed = trust.untrusted(trust.items(resolved, workdir))
    if any(item.at_start for item in needed):
        echo(untrusted(needed, resolved))
        return 0
    echo(describe(*_prepare(resolved, workdir), needed))
    return 0


def settle(flags: dict[str, Any], config_file: str | None, permit: Permit | None = None) -> tuple[Resolved, Path]:
    """All settings, and the directory they send the agent to. `permit` is asked before a file is run to be read."""
    workdir = _start(flags)
    kept_back = early(flags)
    name = config_file or os.environ.get("RALPH_CONFIG")
    config = Path(os.path.abspath(Path(name).expanduser())) if name else None  # noqa: PTH100 - links stay as named
    layer, follows, notes = _dialect(workdir, flags, config, permit)
    resolved = resolve(workdir, flags, config, dialect=layer)
    kept_back |= keep_back(resolved.settings.env_deny)
    warnings = [*notes, *resolved.warnings]
    resolved = msgspec.structs.replace(resolved, follows=follows, warnings=warnings, kept_back=kept_back)
    base = resolved.bases.get("cwd")
    if base is not None:  # it stands in a file
        workdir = working_directory(str(base / Path(resolved.settings.cwd or ".").expanduser()))
    return resolved, workdir


def _start(flags: dict[str, Any]) -> Path:
    return working_directory(flags.get("cwd") or os.environ.get("RALPH_CWD"))


def _dialect(
    workdir: Path, flags: dict[str, Any], config: Path | None, permit: Permit | None
) -> tuple[FileLayer | None, str, list[str]]:
    """What the files of another convention say, which one that is, and what to know.

    A ralph.yml that is named decides alone.
    """
    wanted = str(flags.get("dialect") or os.environ.get("RALPH_DIALECT") or "auto")
    found, notes = choose(workdir, "none" if config is not None and wanted == "auto" else wanted)
    if found is None or found.dialect is Dialect.ORCHESTRATOR:
        return None, "", notes
    typed = flags.get("agent_script") or os.environ.get("RALPH_AGENT_SCRIPT")
    if found.dialect in RUN_TO_BE_READ and not typed:
        from ralph.trust import items as trust

        (permit or trust.require)(trust.of_dialect(found, workdir))
    return module(found.dialect).layer(found, workdir), f"{found.dialect} convention: {found.why}", notes


def _prepare(resolved: Resolved, workdir: Path) -> tuple[Launch, PromptSource, str]:
    """The agent and the prompt; if both are missing, both are told."""
    source = prompt_source(resolved, workdir)
    try:
        prompt = source.read()
    except UsageError as error:
        try:
            prepare_launch(resolved, workdir)
        except UsageError as other:
            raise UsageError(f"{error}\nAnd {other}") from None
        notes = [f"warning: {warning}" for warning in resolved.warnings]  # they may say why there is none
        raise UsageError("\n".join([str(error), *notes])) from None
    return prepare_launch(resolved, workdir), source, prompt


def working_directory(cwd: str | None) -> Path:
    """Where ralph was called, or `--cwd`. One that has vanished is an error before the start."""
    try:
        here = Path.cwd()
    except OSError:
        raise UsageError("the working directory is gone: change to one that exists") from None
    workdir = here if cwd is None else (here / Path(cwd).expanduser())
    if not workdir.is_dir():
        raise UsageError(f"the working directory {workdir} does not exist or is not a directory")
    if not os.access(workdir, os.R_OK | os.X_OK):
        raise UsageError(f"the working directory {workdir} cannot be entered")
    return Path(os.path.abspath(workdir))  # noqa: PTH100 - symlinks stay as the user named them


def execute(
    launch: Launch,
    source: PromptSource,
    shown: Screen | None = None,
    *,
    past: RunPaths | None = None,
    config_file: str | None = None,
) -> int:
    """Everything from here on is recorded. `shown` is another screen than that of the settings."""
    import time

    from ralph.journal.alive import directory_lock, take_over_dead
    from ralph.journal.backup import recover
    from ralph.journal.requests import Requests
    from ralph.journal.writer import JournalWriter, new_run_id, prepare_state
    from ralph.loop.run import Loop
    from ralph.planning.masking import masker_of
    from ralph.runners.process import Supervisor
    from ralph.runners.stop import StopSwitch
    from ralph.system import git
    from ralph.trust import items as trust
    from ralph.ui.ask import asker
    from ralph.ui.guard import GuardedScreen
    from ralph.ui.screen import choose, create

    settings = launch.settings
    trust.require(trust.items(launch.resolved, launch.workdir))
    working_directory(str(launch.workdir))  # what has vanished meanwhile must not be made anew by our own files
    state = prepare_state(launch.workdir)
    recovered = recover(state)
    run_id = past.run_id if past else new_run_id(time.time())
    with (
        directory_lock(state, exclusive=settings.exclusive) as lock,
        JournalWriter(
            state, run_id, again=past is not None, masker=masker_of(launch), redact_raw=settings.redact_raw
        ) as journal,
        StopSwitch(Requests(journal.paths).make()) as stop,
    ):
        if settings.exclusive:
            lock.claim(run_id)
        known = _known(past, journal) if past else None
        journal.write_run(_facts(launch, source, run_id, past, config_file), seal=shown is None)
        screen = GuardedScreen(shown or create(settings.ui, hurried=True), lambda: stop.kind is not None)
        live = choose(settings.ui) == "rich"
        try:
            locks = (lock.fileno(), journal.lock.fileno())
            with Supervisor(stop, tick=0.2 if live else 1.0, locks=locks) as supervisor:
                ask = asker(screen, stop) if settings.interactive else None
                loop = Loop(launch, source, journal, screen, supervisor, stop, ask, known)
                if known is None or known.first is None:
                    journal.write_baseline(loop.gates.first)
                if launch.resolved.follows:
                    loop.note(launch.resolved.follows)
                refusal = git.refusal(launch.workdir) if loop.gates.first.top is None else None
                if refusal is not None:
                    loop.note(refusal)
                for warning in launch.resolved.warnings:
                    loop.note(f"warning: {warning}")
                if source.absent:
                    loop.note(NO_PROMPT)
                for name in recovered:
                    loop.note(f"the record of run {name}, which died, had been deleted; it is there again")
                for dead in take_over_dead(state):
                    loop.note(dead)
                return loop.go()
        finally:
            screen.close()


def _known(past: RunPaths, journal: JournalWriter) -> Past:
    """Of a run that is gone on with. `journal` has it locked: nobody else writes to it any more."""
    from ralph.loop import resume

    return msgspec.structs.replace(resume.read(past), torn=journal.torn.decode("utf-8", "replace"))


def _facts(
    launch: Launch, source: PromptSource, run_id: str, past: RunPaths | None, config_file: str | None
) -> dict[str, Any]:
    """run.json: enough to know later what was run, and how, and to go on with it."""
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
