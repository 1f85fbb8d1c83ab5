"""`ralph stop`, `ralph pause`, `ralph resume`, `ralph steer`: control an active run from another terminal."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.echo import echo
from ralph.config.durations import format_duration, parse_duration
from ralph.errors import RunError, UsageError
from ralph.journal import reader
from ralph.journal.alive import is_alive
from ralph.journal.condition import Condition, active_run, condition, is_paused
from ralph.journal.requests import Requests, Stop
from ralph.planning.settle import working_directory
from ralph.trust.approval import from_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.journal.layout import RunPaths, StatePaths

_HELP = {"help_option_names": ["-h", "--help"]}
_cwd = click.option(
    "--cwd", envvar="RALPH_CWD", metavar="DIR", help="Directory of the run. [default: the current directory]"
)
_run = click.argument("run", required=False)

#: How long `ralph stop` waits for the current iteration to finish, in seconds.
_STOP_WAIT = 60.0
#: How long the end of a run may take in addition to the agent's grace period.
_MARGIN = 30.0
#: How long a run may take to react when no iteration is running.
_REACTION = 0.7
_POLL_INTERVAL = 0.05
#: A first word of this length may be a run's id (`20261115`); a shorter number may begin a sentence.
_MIN_ID_LENGTH = 8


@click.command("stop", context_settings=_HELP)
@_run
@click.option(
    "--now", is_flag=True, help="End the iteration now; the agent gets its grace period. Repeat to kill it at once."
)
@click.option("--wait", "wait", metavar="TIME", help="How long to wait for the run to end. [default: 1m]")
@click.option("--no-wait", is_flag=True, help="Request the stop without waiting for the run to end.")
@_cwd
def stop_command(run: str | None, now: bool, wait: str | None, no_wait: bool, cwd: str | None) -> None:
    """Stop a run after the current iteration.

    RUN is the id of a run or the beginning of it; without it, the run in this directory is stopped. With --now, the
    current iteration is not finished first. The run writes its summary and exits with 130.

    Exit codes: 0 the run has ended (or, with --no-wait, the stop was requested), 1 the run did not end in time (the
    request remains), 64 there is no such run.
    """
    limit = _seconds(wait) if wait is not None else None
    paths = _find(run, cwd)
    stop = Requests(paths).ask_stop(now=now)
    if no_wait:
        echo(f"run {paths.run_id} will stop {_when(stop, paths)}")
        return
    if limit is None:
        limit = _STOP_WAIT if stop is Stop.FINISH else _grace(paths) + _MARGIN
    if not _until(lambda: not is_alive(paths), min(limit, _REACTION)):
        echo(f"run {paths.run_id} will stop {_when(stop, paths)} …", err=True)
        if not _until(lambda: not is_alive(paths), limit - _REACTION):
            faster = "To end the iteration now" if stop is Stop.FINISH else "To kill the agent at once"
            raise RunError(
                f"run {paths.run_id} has not stopped after {format_duration(limit)}; the request remains.\n"
                f"  {faster}: ralph stop --now"
            )
    echo(_ended(paths))


@click.command("pause", context_settings=_HELP)
@_run
@click.option("--now", is_flag=True, help="Stop the agent now; its iteration does not count and is repeated.")
@_cwd
def pause_command(run: str | None, now: bool, cwd: str | None) -> None:
    """Pause a run after the current iteration.

    RUN is the id of a run or the beginning of it; without it, the run in this directory is paused. `ralph resume`
    continues it. The time in between does not count towards --max-runtime.
    """
    paths = _find(run, cwd)
    if is_paused(paths):
        echo(f"run {paths.run_id} is already paused; `ralph resume` resumes it")
        return
    Requests(paths).ask_pause(now=now)
    limit = _grace(paths) + _MARGIN if now else _REACTION
    if _until(lambda: is_paused(paths) or not is_alive(paths), limit):
        if not is_paused(paths):
            raise UsageError(_ended(paths))
        echo(f"run {paths.run_id} is paused; `ralph resume` resumes it")
    else:
        echo(
            f"run {paths.run_id} will pause after iteration {_iteration(paths)}; `ralph pause --now` does not wait for "
            "it, and `ralph resume` cancels the pause"
        )


@click.command("resume", context_settings=_HELP)
@_run
@_cwd
def resume_command(run: str | None, cwd: str | None) -> None:
    """Resume a paused run.

    RUN is the id of a run or the beginning of it; without it, the paused run in this directory is resumed. To resume
    a run that has ended or died, use `ralph run --resume`.
    """
    state = reader.find_state(working_directory(cwd), from_environment(os.environ))
    paths = active_run(state, run if run is not None else _only_paused(state))
    held = is_paused(paths)
    if not Requests(paths).end_pause() and not held:
        raise UsageError(f"run {paths.run_id} is not paused: it is running")
    if not held:
        echo(f"run {paths.run_id} was not paused yet; the pause is canceled")
    elif _until(lambda: not is_paused(paths) or not is_alive(paths), _MARGIN):
        echo(f"run {paths.run_id} continues")
    else:
        raise RunError(f"run {paths.run_id} has not continued after {format_duration(_MARGIN)}; see `ralph runs`")


@click.command("steer", context_settings=_HELP)
@click.argument("words", nargs=-1, metavar="[RUN] TEXT...")
@click.option("--run", "run", metavar="RUN", help="Run to steer, instead of giving its id as the first word.")
@click.option("--list", "as_list", is_flag=True, help="Show the pending notes.")
@click.option("--clear", is_flag=True, help="Drop the pending notes.")
@_cwd
def steer_command(words: tuple[str, ...], run: str | None, as_list: bool, clear: bool, cwd: str | None) -> None:
    """Add a note to the next prompt of a run.

    RUN is the id of a run or the beginning of it; without it, the note goes to the run in this directory. TEXT is one
    or more words, or - to read the note from stdin. A note that arrives during an iteration is for the next one. It
    stays in the prompt until an iteration that had it succeeds.

    \b
    Examples:
      ralph steer "Leave the old parser alone"
      ralph steer - < review.txt
      ralph steer --list
    """
    state = reader.find_state(working_directory(cwd), from_environment(os.environ))
    name, text = (run, list(words)) if run is not None else _split(state, words, alone=as_list or clear)
    if as_list or clear:
        if text or (as_list and clear):
            raise UsageError("use --list or --clear alone: they take no note, only a RUN")
        requests = Requests(reader.find_run(state, name) if name is not None else active_run(state, None))
        notes = requests.notes()
        if clear:
            requests.drop_notes([note.name for note in notes])
            echo(f"{_count(len(notes))} dropped")
            return
        for number, note in enumerate(notes, 1):
            echo("\n   ".join(f"{number}. {note.text.strip()}".split("\n")))
        if not notes:
            echo("there are no pending notes", err=True)
        return
    body = sys.stdin.buffer.read().decode("utf-8", "replace") if text == ["-"] else " ".join(text)
    body = body.encode("utf-8", "replace").decode().replace("\0", "�")
    if not body.strip():
        raise UsageError(
            'there is no note: write what the agent should know, as in `ralph steer "Leave the API alone"`'
        )
    paths = active_run(state, name)
    Requests(paths).add_note(body)
    when = "when it is resumed" if condition(paths) is Condition.PAUSED else f"after iteration {_iteration(paths)}"
    echo(f"noted: run {paths.run_id} adds it to its next prompt, {when}")


def _split(state: StatePaths, words: tuple[str, ...], *, alone: bool) -> tuple[str | None, list[str]]:
    """The run and the note. The first word names the run if it looks like an id and there is such a run."""
    if not words:
        return None, []
    first, *rest = words
    known = any(paths.run_id.startswith(first) for paths in reader.list_runs(state))
    if (rest or alone) and (alone or (known and len(first) >= _MIN_ID_LENGTH and first[:8].isdigit())):
        return first, rest
    return None, list(words)


def _find(run: str | None, cwd: str | None) -> RunPaths:
    return active_run(reader.find_state(working_directory(cwd), from_environment(os.environ)), run)


def _only_paused(state: StatePaths) -> str | None:
    """The paused run, if exactly one of the active runs is paused."""
    from ralph.journal.alive import active_runs

    paused = [paths.run_id for paths in active_runs(state) if is_paused(paths)]
    return paused[0] if len(paused) == 1 else None


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL_INTERVAL)
    return True


def _when(stop: Stop, paths: RunPaths) -> str:
    match stop:
        case Stop.FINISH:
            return f"after iteration {_iteration(paths)}"
        case Stop.NOW:
            return f"now (its agent has {format_duration(_grace(paths))} to exit)"
        case Stop.AT_ONCE:
            return "at once"


def _ended(paths: RunPaths) -> str:
    end: dict[str, Any] | None = reader.run_end(paths)
    if end is None:
        return f"run {paths.run_id} died without a summary; you can resume it with `ralph run --resume {paths.run_id}`"
    how, code = str(end.get("end")).replace("_", " "), end.get("exit_code")
    iterations = end.get("iterations")
    count = "1 iteration" if iterations == 1 else f"{iterations} iterations"
    return f"run {paths.run_id} has ended: {how} after {count} (exit code {code}): {end.get('reason')}"


def _grace(paths: RunPaths) -> float:
    settings = reader.run_facts(paths).get("settings")
    grace = settings.get("grace") if isinstance(settings, dict) else None
    return float(grace) if isinstance(grace, int | float) else 5.0


def _iteration(paths: RunPaths) -> int:
    return max(1, sum(1 for _ in (paths.root / "iterations").glob("[0-9]*")))


def _count(notes: int) -> str:
    return "1 note" if notes == 1 else f"{notes} notes"


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--wait: {error}, not '{text}'") from None
