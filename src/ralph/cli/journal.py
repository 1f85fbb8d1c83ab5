"""`ralph runs`, `ralph show`, `ralph tail`: show what happened."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ralph.cli.echo import echo, echo_json
from ralph.config.durations import format_duration
from ralph.config.settings import Ui
from ralph.errors import UsageError
from ralph.journal import reader
from ralph.journal.alive import is_alive
from ralph.journal.condition import Condition, condition
from ralph.judging.usage import known_total
from ralph.planning.settle import working_directory
from ralph.system.files import open_regular
from ralph.system.text import AT_LEAST
from ralph.system.text import count as count_of
from ralph.transcripts.events import Usage, encode
from ralph.transcripts.meta import Kind
from ralph.trust.approval import from_environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ralph.journal.layout import RunPaths
    from ralph.transcripts.events import TranscriptEvent

_HELP = {"help_option_names": ["-h", "--help"]}
_BATCH = 500
_cwd = click.option(
    "--cwd", envvar="RALPH_CWD", metavar="DIR", help="Directory to look in. [default: the current directory]"
)


@click.command("runs", context_settings=_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one run per line.")
@_cwd
def runs_command(as_json: bool, cwd: str | None) -> None:
    """List the runs in this directory, oldest first."""

    state = reader.find_state(working_directory(cwd), from_environment(os.environ))
    runs = reader.list_runs(state)
    for paths in runs:
        row = _summary(paths)
        if as_json:
            echo_json(row)
        else:
            took = format_duration(row["seconds"]) if row["seconds"] is not None else "-"
            count = f"{row['iterations']:>4} iteration{' ' if row['iterations'] == 1 else 's'}"
            reason = row["reason"].partition("\n")[0][:80]
            tokens = _tokens(row["usage"])
            text = f"{row['run']}  {row['end']:<12} {count}  {took:>10}  {tokens:>16}  {row['agent']:<10} {reason}"
            echo(text)
    if not runs and not as_json:
        echo("no runs yet")


def _tokens(usage: dict[str, Any] | None) -> str:
    if usage is None:
        return "tokens unknown"
    return f"{AT_LEAST if usage.get('at_least') else ''}{count_of(usage['total_tokens'], 'token')}"


def _usage(paths: RunPaths, end: dict[str, Any] | None) -> dict[str, Any] | None:
    """The usage of a run, with its total. Without an end, it is at least that of the last iteration that ended.

    None if it is unknown: a journal may come from anywhere.
    """
    last = end or (reader.last_meta(paths, Kind.ITERATION_END) or {}).get("state")
    try:
        usage = msgspec.convert(last.get("usage") or {}, Usage) if isinstance(last, dict) else Usage()
    except msgspec.ValidationError:
        return None
    total = known_total(usage)
    if total is None:
        return None
    lower = usage.at_least or end is None
    known: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(usage, total_tokens=total, at_least=lower))
    return known


def _seconds(value: object) -> float | None:
    """None if it is not a duration: a journal may come from anywhere."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if number else None  # type: ignore[arg-type]


def _summary(paths: RunPaths) -> dict[str, Any]:
    facts = reader.run_facts(paths)
    how, end = condition(paths), reader.run_end(paths)
    iterations = sum(1 for _ in (paths.root / "iterations").glob("[0-9]*"))
    seconds: float | None
    if how in (Condition.RUNNING, Condition.PAUSED):
        status, reason, seconds = how.value, "", _since(facts.get("started"))
    elif end is not None:
        status, reason, seconds = str(end.get("end")), str(end.get("reason")), _seconds(end.get("seconds"))
    else:
        status, reason, seconds = (
            "died",
            "ralph ended without writing a summary (killed, or the machine went down)",
            None,
        )
    return {
        "run": paths.run_id,
        "end": status,
        "exit_code": end.get("exit_code") if end else None,
        "iterations": iterations,
        "seconds": seconds,
        "usage": _usage(paths, end),
        "agent": str(facts.get("agent", "?")),
        "reason": reason,
        "path": str(paths.root),
    }


def _since(started: object) -> float:
    """0 if the clock was set back since then."""
    return max(0.0, time.time() - started) if isinstance(started, int | float) else 0.0


@click.command("show", context_settings=_HELP)
@click.argument("run", required=False)
@click.option("--iteration", "-n", type=int, metavar="N", help="Show only this iteration.")
@click.option("--raw", is_flag=True, help="Print the agent's stdout, byte for byte.")
@click.option("--stderr", "raw_stderr", is_flag=True, help="With --raw, print its stderr instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON, one per line.")
@_cwd
def show_command(
    run: str | None, iteration: int | None, raw: bool, raw_stderr: bool, as_json: bool, cwd: str | None
) -> None:
    """Show a run as it appeared on the screen.

    RUN is the id of a run or the beginning of it; without it, the latest run is shown.
    """
    if raw and as_json:
        raise UsageError("--raw and --json cannot be given together")
    state = reader.find_state(working_directory(cwd), from_environment(os.environ))
    paths = reader.find_run(state, run)
    if iteration is not None and not paths.iteration(iteration).is_dir():
        last = sum(1 for _ in (paths.root / "iterations").glob("[0-9]*"))
        raise UsageError(f"run {paths.run_id} has no iteration {iteration} (it has {last})")
    if raw:
        _show_raw(paths, iteration, "stderr.raw" if raw_stderr else "stdout.raw")
        return
    _Player(as_json=as_json, masked=_is_masked(paths), iteration=iteration).play(reader.records(paths))
    if not as_json and reader.run_end(paths) is None:
        echo(
            "(this run is still running)"
            if is_alive(paths)
            else f"(this run was cut short: it has no summary; `ralph run --resume {paths.run_id}` resumes it)",
            err=True,
        )


def _show_raw(paths: RunPaths, iteration: int | None, name: str) -> None:
    folders = sorted((paths.root / "iterations").glob("[0-9]*"))
    for folder in [paths.iteration(iteration)] if iteration is not None else folders:
        for block in _blocks(folder / name):
            sys.stdout.buffer.write(block)
    sys.stdout.flush()


def _blocks(path: Path) -> Iterator[bytes]:
    """The content of a file, or nothing if the run was killed before it made the file."""
    try:
        with open_regular(path) as file:
            while block := file.read(1 << 20):
                yield block
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


@click.command("tail", context_settings=_HELP)
@click.argument("run", required=False)
@click.option("-f", "--follow", is_flag=True, help="Keep showing new events until the run ends.")
@click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(min=0),
    default=20,
    metavar="N",
    help="Number of events to start with. [default: 20]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON, one per line.")
@_cwd
def tail_command(run: str | None, follow: bool, count: int, as_json: bool, cwd: str | None) -> None:
    """Show the last events of a run.

    RUN is the id of a run or the beginning of it; without it, the latest run is shown.
    """
    from collections import deque

    state = reader.find_state(working_directory(cwd), from_environment(os.environ))
    paths = reader.find_run(state, run)
    player = _Player(as_json=as_json, masked=_is_masked(paths))
    if not follow:
        player.play(deque(reader.records(paths), maxlen=count))
        return
    follower = reader.Follower(paths)
    player.play(deque(follower.read(), maxlen=count))
    while not follower.ended:
        batch = list(follower.read())
        if batch:
            player.play(batch)
        elif not is_alive(paths):
            player.play(follower.read())  # written between our last look and its end
            if not follower.ended:
                echo("(the run was cut short: it has no summary)", err=True)
            return
        else:
            time.sleep(0.1)


class _Player:
    """Shows records as the screen showed them, or as JSON lines."""

    def __init__(self, *, as_json: bool, masked: bool, iteration: int | None = None) -> None:
        from ralph.masking.events import EventMasker
        from ralph.masking.masker import Masker, for_environment
        from ralph.ui.choose import create

        self._iteration = iteration
        # Masks again: other versions of ralph masked less, and new keys may be known. Not if the run was not to mask.
        self._masked = EventMasker(for_environment() if masked else Masker(on=False))
        self._screen = create(Ui.JSON if as_json else Ui.AUTO)

    def play(self, records: Iterable[reader.Record]) -> None:
        batch: list[reader.Record] = []
        for record in records:
            if self._iteration is None or record.stamp.iteration == self._iteration:
                batch.append(record)
            if len(batch) >= _BATCH:
                self._flush(batch)
                batch = []
        self._flush(batch)

    def _flush(self, batch: list[reader.Record]) -> None:
        events = [r.event for r in batch]
        shown, _ = self._masked.encode(events)
        if shown is events:
            lines = b"".join(r.line + b"\n" for r in batch)
        else:
            lines = b"".join(_stamped(r, event) for r, event in zip(batch, shown, strict=True))
        self._screen.show(shown, lines)


def _stamped(record: reader.Record, event: TranscriptEvent) -> bytes:
    """The record's line with a different event in it."""
    if event is record.event:
        return record.line + b"\n"
    stamp = record.line[: record.line.index(b'"type":')]
    return stamp + encode(event)[1:] + b"\n"


def _is_masked(paths: RunPaths) -> bool:
    settings = reader.run_facts(paths).get("settings")
    return not isinstance(settings, dict) or settings.get("mask") is not False
