"""Writing a run: events come in, lines of events.jsonl go to disk and back to the caller, for the screen.

Every write goes to the kernel at once: a `kill -9` loses at most the line being written.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ralph.errors import RalphError, RunError
from ralph.journal.appender import Appender, RawFile, RedactedAppender
from ralph.journal.backup import Backup
from ralph.journal.files import (
    drop_torn_line,
    has_output,
    journal_error,
    redact_file,
    replace_file,
    replace_link,
)
from ralph.journal.ignored import STATE_FILES, ignore_by_name
from ralph.journal.layout import RunPaths, StatePaths
from ralph.journal.lock import RunLock
from ralph.journal.requests import Requests
from ralph.journal.signature import signed
from ralph.masking.events import EventMasker
from ralph.masking.masker import Masker
from ralph.masking.stream import ByteMasker
from ralph.system.files import leads_out, repository
from ralph.system.folders import make_folder
from ralph.transcripts.events import replace_surrogates

if TYPE_CHECKING:
    from types import TracebackType

    from ralph.transcripts.events import TranscriptEvent


def new_run_id(now: float) -> str:
    """An id that sorts by time. Its random end tells apart two runs that start in the same millisecond."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{int(now % 1 * 1000):03d}{secrets.token_hex(1)}"


class JournalWriter:
    """Writes one run's folder: a new one, or the existing one of a run to `resume`.

    No secret that `masker` knows is written to it, except in raw files; with `redact_raw` not there either.
    """

    def __init__(
        self,
        state: StatePaths,
        run_id: str,
        *,
        resume: bool = False,
        masker: Masker | None = None,
        redact_raw: bool = False,
    ) -> None:
        self.paths = RunPaths(state.runs / run_id)
        self._resume = resume
        self.masker = masker or Masker(on=False)
        self.masked = EventMasker(self.masker)
        self._redact = redact_raw and self.masker.on
        self._seq = 0
        self._iteration = 0
        #: the incomplete last line of a run that died
        self.torn = b""
        self._state = state
        try:
            make_folder(self.paths.root.parent)
            self.paths.root.mkdir(mode=0o700, exist_ok=resume)
        except OSError as error:
            raise journal_error(self.paths.root, error) from None
        try:
            self._open()
        except RalphError:
            self._discard()
            raise

    def _open(self) -> None:
        try:
            (self.paths.root / "iterations").mkdir(mode=0o700, exist_ok=self._resume)
            self.lock = RunLock(self.paths.lock).__enter__()
            if self._resume:
                self._seq, self.torn = drop_torn_line(self.paths.events)
        except OSError as error:
            raise journal_error(self.paths.root, error) from None
        self.lock.claim(self.paths.run_id)
        self._events = Appender(self.paths.events)
        self._point_here(self._state)
        self._backup = Backup(self.paths, self._state)
        try:
            self._backup.keep_all()
        except OSError as error:
            raise journal_error(self.paths.root, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.close()
        self._backup.drop()
        self.lock.__exit__(kind, error, trace)
        if isinstance(error, RalphError):
            self._discard()

    def _discard(self) -> None:
        """Removes a run that could not start. What is left of it would look like a run that died."""
        if self._resume or self._seq:
            return
        shutil.rmtree(self.paths.root, ignore_errors=True)
        for link in (self._state.latest, self._state.agent_events):
            with suppress(OSError):
                if link.is_symlink() and self.paths.run_id in link.readlink().parts:
                    link.unlink()

    def write_run(self, facts: dict[str, Any], *, sign: bool = True) -> None:
        """Writes run.json, or replaces it when a run is resumed. A run that nobody can resume needs no signature."""
        plain = msgspec.to_builtins(facts, enc_hook=str)
        kept = replace_surrogates(self.masker.value(plain))
        # A run that is resumed must not take the masks for the real values, nor values without their odd bytes.
        masked = [name for name in ("prompt_text",) if kept.get(name) != plain.get(name)]
        masked += [n for n, value in kept.get("settings", {}).items() if value != plain["settings"][n]]
        whole = kept | {"masked": masked}
        if sign:
            whole = signed(self.paths, whole)
        body = msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"
        replace_file(self.paths.run_json, body)
        self._backup.keep(self.paths.run_json)

    def write_baseline(self, snapshot: bytes) -> None:
        """Writes the snapshot of the tree before the run."""
        replace_file(self.paths.baseline, snapshot)
        self._backup.keep(self.paths.baseline)

    @property
    def not_linked(self) -> str | None:
        """A note for the user if another tool's file is where the link to the newest events would be."""
        link = self._state.agent_events
        if link.is_symlink() or not link.exists():
            return None
        shown = link.relative_to(self._state.workdir)
        events = self._state.latest.relative_to(self._state.workdir) / self.paths.events.name
        return (
            f"{shown} is not ralph's and stays as it is; the events of this run are in {events}. "
            f"Move {shown} away if you want a link to the newest run there"
        )

    def own_files(self, *, shared: bool) -> tuple[Path, ...]:
        """What ralph writes to while the run lasts. With `shared`, other runs write to the directory, too."""
        state = self._state
        ours = (state.runs if shared else self.paths.root, state.lock, state.latest)
        return (*ours, state.agent_events) if state.agent_events.is_symlink() else ours

    def at(self, iteration: int) -> None:
        """Sets the iteration that the next events belong to."""
        self._iteration = iteration

    def record(self, events: list[TranscriptEvent]) -> tuple[list[TranscriptEvent], bytes]:
        """Masks events and appends them to events.jsonl. Returns the masked events, and their lines as written.

        An event that ends with what may be the start of a secret waits for the next one, or for `overdue`.
        """
        shown, lines = self.masked.encode(events)
        return shown, self._append(lines)

    def overdue(self, after: float) -> tuple[list[TranscriptEvent], bytes]:
        """Records the events that have waited for more than `after` seconds."""
        if not self.masked.waiting(after):
            return [], b""
        shown, lines = self.masked.release()
        return shown, self._append(lines)

    def events(self, events: list[TranscriptEvent]) -> bytes:
        """Like `record`, but returns the lines only."""
        return self.record(events)[1]

    def _append(self, lines: bytes) -> bytes:
        """Appends lines of JSON, each with time, iteration and sequence number. Returns what was written."""
        if not lines:
            return b""
        stamp = b'"time":%.3f,"iteration":%d,' % (time.time(), self._iteration)
        bodies = lines.splitlines(keepends=True)  # bytes are split at newlines only, and JSON contains none
        first = self._seq + 1
        data = b"".join([b'{"seq":%d,%b%b' % (seq, stamp, body[1:]) for seq, body in enumerate(bodies, first)])
        self._events.write(data, whole=True)
        self._seq += len(bodies)
        return data

    def begin_iteration(self, number: int, prompt: bytes) -> tuple[Path, Appender, Appender]:
        """Creates the folder of an iteration. Returns its prompt file, and the files for raw stdout and stderr."""
        self.at(number)
        folder = self.paths.iteration(number)
        try:
            # A run that was killed right after this line left a folder, but no output of an agent.
            folder.mkdir(mode=0o700, exist_ok=self._resume and not has_output(folder))
            prompt_file = folder / "prompt.md"
        except OSError as error:
            raise journal_error(folder, error) from None
        replace_file(prompt_file, prompt)  # not into what a dead run left there: it may be a pipe
        out, err = folder / "stdout.raw", folder / "stderr.raw"
        raw: tuple[Appender, Appender]
        if self._redact:
            raw = RedactedAppender(out, self.masker), RedactedAppender(err, self.masker)
        else:
            raw = RawFile(out), RawFile(err)
        self._backup.keep(prompt_file, out, err, Requests(self.paths).bell)
        return prompt_file, *raw

    @property
    def redacts(self) -> bool:
        """Whether raw files are masked."""
        return self._redact

    def end_iteration(self, number: int) -> None:
        """Masks the files that had to be exact while the agent was working: its prompt, and other tools' logs."""
        folder = self.paths.iteration(number)
        for path in (*sorted(folder.glob("*")), *self.paths.root.glob("*.log")):
            if path.is_symlink() or not path.is_file():
                continue
            if self._redact and path.suffix != ".raw":
                try:
                    redact_file(path, ByteMasker(self.masker))
                except OSError as error:
                    raise journal_error(path, error) from None
            self._backup.keep(path)

    def restore(self) -> bool:
        """Restores the run's files if they were deleted, or stashed and copied back. True if they were."""
        try:
            if os.path.samestat(self.paths.events.lstat(), os.fstat(self._events.fileno())):
                return False
        except OSError:
            pass  # it was deleted
        if not self._state.workdir.is_dir():
            return False
        if not self._backup.restore():
            return False
        with suppress(OSError):  # an empty folder has no backup
            (self.paths.root / "iterations").mkdir(mode=0o700, exist_ok=True)
        with suppress(RunError):  # the run does not depend on it
            self._point_here(self._state)
        return True

    def _point_here(self, state: StatePaths) -> None:
        try:
            replace_link(state.latest, Path("runs") / self.paths.run_id)
        except OSError as error:
            raise journal_error(state.latest, error) from None
        link = state.agent_events
        if link.exists() and not link.is_symlink():
            return  # a file of another tool: leave it alone
        if leads_out(link.parent, repository(state.workdir)) is not None:
            return  # a link that the repository brings, not a place that the user chose
        try:
            make_folder(link.parent, 0o755)
            ignore_by_name(link.parent, (link.name,))
            replace_link(link, Path("..") / self.paths.events.relative_to(state.workdir))
        except OSError:
            pass  # a convenience for other tools: the run does not depend on it


def prepare_state(workdir: Path) -> StatePaths:
    """Creates `.ralph/` if it is missing. Git ignores our files in it."""
    state = StatePaths(workdir)
    try:
        make_folder(state.root, 0o755)
        make_folder(state.runs)
        ignore_by_name(state.root, STATE_FILES)
    except OSError as error:
        raise journal_error(state.root, error) from None
    return state
