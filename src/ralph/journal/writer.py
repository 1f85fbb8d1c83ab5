"""Writing a run. Every write goes to the kernel at once: a `kill -9` loses at most the line being written."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ralph.errors import RalphError, RunError
from ralph.journal.backup import Spare
from ralph.journal.layout import RunPaths, StatePaths
from ralph.journal.lock import RunLock
from ralph.journal.requests import Requests
from ralph.journal.signature import sealed
from ralph.masking.events import EventMasker
from ralph.masking.masker import Masker
from ralph.masking.stream import ByteMasker
from ralph.system.files import leads_out, repository

if TYPE_CHECKING:
    from types import TracebackType

    from ralph.transcripts.events import TranscriptEvent


def new_run_id(now: float) -> str:
    """Sorts by time; the tail keeps two runs of one moment apart."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{int(now % 1 * 1000):03d}{secrets.token_hex(1)}"


class Appender:
    """An append-only file without a buffer of its own; a short write or a full disk is an error, not a loss."""

    def __init__(self, path: Path, how: int = os.O_WRONLY | os.O_CREAT | os.O_APPEND) -> None:
        self._path = path
        try:
            self._fd = os.open(path, how | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _journal_error(path, error) from None

    def fileno(self) -> int:
        return self._fd

    def write(self, data: bytes, *, whole: bool = False) -> None:
        """`whole`: all of it or nothing, so that what comes later does not stand behind half a line."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            if whole and len(view) < len(data):
                with suppress(OSError):
                    os.ftruncate(self._fd, os.fstat(self._fd).st_size - (len(data) - len(view)))
            raise _journal_error(self._path, error) from None

    def take(self, source: int, size: int) -> bytes:
        """What a pipe holds, at most so much, after it was written here; nothing when all its writers are gone."""
        data = os.read(source, size)
        self.write(data)
        return data

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RawFile(Appender):
    """For what comes out of a pipe."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_RDWR | os.O_CREAT)  # the kernel moves nothing into one with O_APPEND
        self._size = os.lseek(self._fd, 0, os.SEEK_END)
        self._moves = hasattr(os, "splice")

    def take(self, source: int, size: int) -> bytes:
        """The kernel moves it, so that each byte is in the pipe or in the file at any moment: between a read and a
        write a SIGKILL would lose it."""
        if self._moves:
            try:
                count = os.splice(source, self._fd, size, flags=os.SPLICE_F_NONBLOCK)
            except BlockingIOError:
                raise
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise _journal_error(self._path, error) from None
                self._moves = False  # this file system, or this system, cannot do it
            else:
                self._size += count
                return os.pread(self._fd, count, self._size - count)
        return super().take(source, size)


class RedactedAppender(Appender):
    """The same with secrets masked; what may be the beginning of one is written with what follows it."""

    def __init__(self, path: Path, masker: Masker) -> None:
        super().__init__(path)
        self._masker = ByteMasker(masker)

    def write(self, data: bytes, *, whole: bool = False) -> None:
        super().write(self._masker.feed(data), whole=whole)

    def close(self) -> None:
        try:
            if self._fd >= 0:
                super().write(self._masker.flush())
        finally:
            super().close()


class JournalWriter:
    """One run's folder: a new one, or (`again`) that of a run that is gone on with. Nothing is written into it with
    a secret that `masker` knows, but for the raw files; with `redact_raw` neither are these."""

    def __init__(
        self,
        state: StatePaths,
        run_id: str,
        *,
        again: bool = False,
        masker: Masker | None = None,
        redact_raw: bool = False,
    ) -> None:
        self.paths = RunPaths(state.runs / run_id)
        self._again = again
        self.masker = masker or Masker(on=False)
        self.masked = EventMasker(self.masker)
        self._redact = redact_raw and self.masker.on
        self._seq = 0
        self._iteration = 0
        #: what was being written when the run died
        self.torn = b""
        self._state = state
        try:
            self.paths.root.mkdir(parents=True, mode=0o700, exist_ok=again)
        except OSError as error:
            raise _journal_error(self.paths.root, error) from None
        try:
            self._open()
        except RalphError:
            self._discard()
            raise

    def _open(self) -> None:
        try:
            (self.paths.root / "iterations").mkdir(mode=0o700, exist_ok=self._again)
            self.lock = RunLock(self.paths.lock).__enter__()
            if self._again:
                self._seq, self.torn = _mend(self.paths.events)
        except OSError as error:
            raise _journal_error(self.paths.root, error) from None
        self.lock.claim(self.paths.run_id)
        self._events = Appender(self.paths.events)
        self._point_here(self._state)
        self._spare = Spare(self.paths, self._state)
        try:
            self._spare.keep_all()
        except OSError as error:
            raise _journal_error(self.paths.root, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.close()
        self._spare.drop()
        self.lock.__exit__(kind, error, trace)
        if isinstance(error, RalphError):
            self._discard()

    def _discard(self) -> None:
        """Of a run that could not begin, nothing is left: half of one would be taken for one that died."""
        if self._again or self._seq:
            return
        shutil.rmtree(self.paths.root, ignore_errors=True)
        for link in (self._state.latest, self._state.agent_events):
            with suppress(OSError):
                if link.is_symlink() and self.paths.run_id in link.readlink().parts:
                    link.unlink()

    def write_run(self, facts: dict[str, Any], *, seal: bool = True) -> None:
        """run.json; anew when the run is gone on with. What nobody will go on with needs no seal."""
        plain = msgspec.to_builtins(facts, enc_hook=str)
        kept = self.masker.value(plain)
        # A run that is gone on with must not be given the masks for the real thing.
        masked = [name for name in ("prompt_text",) if kept.get(name) != plain.get(name)]
        masked += [n for n, value in kept.get("settings", {}).items() if value != plain["settings"][n]]
        whole = kept | {"masked": masked}
        if seal:
            whole = sealed(self.paths, whole)
        body = msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"
        _put_whole(self.paths.run_json, body)
        self._spare.keep(self.paths.run_json)

    def write_baseline(self, snapshot: Any) -> None:
        """The tree before the run; names of files need not be UTF-8, which only the slower encoder can write."""
        import json

        _put_whole(self.paths.baseline, json.dumps(msgspec.to_builtins(snapshot)).encode("ascii"))
        self._spare.keep(self.paths.baseline)

    def at(self, iteration: int) -> None:
        """The iteration to which the next events belong."""
        self._iteration = iteration

    def record(self, events: list[TranscriptEvent]) -> tuple[list[TranscriptEvent], bytes]:
        """Appends events, masked. Gives back those that may be shown, and the lines as they were written.

        An event whose end may be the beginning of a secret waits for the next one, or for `overdue`.
        """
        shown, lines = self.masked.encode(events)
        return shown, self._append(lines)

    def overdue(self, after: float) -> tuple[list[TranscriptEvent], bytes]:
        """The same with what has waited for longer than `after` seconds."""
        if not self.masked.waiting(after):
            return [], b""
        shown, lines = self.masked.release()
        return shown, self._append(lines)

    def events(self, events: list[TranscriptEvent]) -> bytes:
        """`record`, for those who want the lines alone."""
        return self.record(events)[1]

    def _append(self, lines: bytes) -> bytes:
        """With time, iteration and sequence number."""
        if not lines:
            return b""
        stamp = b'"time":%.3f,"iteration":%d,' % (time.time(), self._iteration)
        bodies = lines.splitlines(keepends=True)  # of bytes: at newlines alone, and JSON has none
        first = self._seq + 1
        data = b"".join([b'{"seq":%d,%b%b' % (seq, stamp, body[1:]) for seq, body in enumerate(bodies, first)])
        self._events.write(data, whole=True)
        self._seq += len(bodies)
        return data

    def begin_iteration(self, number: int, prompt: bytes) -> tuple[Path, Appender, Appender]:
        """The folder of an iteration with its prompt, and the two files that take the raw bytes."""
        self.at(number)
        folder = self.paths.iteration(number)
        try:
            # One that was killed between here and the iteration's first event left a folder, but no agent's bytes.
            folder.mkdir(mode=0o700, exist_ok=self._again and not _has_output(folder))
            prompt_file = folder / "prompt.md"
            prompt_file.touch(mode=0o600)
            prompt_file.write_bytes(prompt)
        except OSError as error:
            raise _journal_error(folder, error) from None
        out, err = folder / "stdout.raw", folder / "stderr.raw"
        raw: tuple[Appender, Appender]
        if self._redact:
            raw = RedactedAppender(out, self.masker), RedactedAppender(err, self.masker)
        else:
            raw = RawFile(out), RawFile(err)
        self._spare.keep(prompt_file, out, err, Requests(self.paths).bell)
        return prompt_file, *raw

    @property
    def redacts(self) -> bool:
        """Whether raw files are masked."""
        return self._redact

    def end_iteration(self, number: int) -> None:
        """Masks what had to be exact for as long as the agent was at work: its prompt, what a convention's own
        code has written."""
        folder = self.paths.iteration(number)
        for path in (*sorted(folder.glob("*")), *self.paths.root.glob("*.log")):
            if path.is_symlink() or not path.is_file():
                continue
            if self._redact and path.suffix != ".raw":
                try:
                    _redact(path, ByteMasker(self.masker))
                except OSError as error:
                    raise _journal_error(path, error) from None
            self._spare.keep(path)

    def put_back(self) -> bool:
        """Whether the run's files had been deleted, or put aside and copied back, and are there again."""
        try:
            if os.path.samestat(self.paths.events.lstat(), os.fstat(self._events.fileno())):
                return False
        except OSError:
            pass  # it is gone
        if not self._state.workdir.is_dir():
            return False
        if not self._spare.put_back():
            return False
        with suppress(OSError):  # it may have been empty
            (self.paths.root / "iterations").mkdir(mode=0o700, exist_ok=True)
        with suppress(RunError):  # a convenience
            self._point_here(self._state)
        return True

    def _point_here(self, state: StatePaths) -> None:
        try:
            _relink(state.latest, Path("runs") / self.paths.run_id)
        except OSError as error:
            raise _journal_error(state.latest, error) from None
        link = state.agent_events
        if link.exists() and not link.is_symlink():
            return  # somebody else's file: it stays
        if leads_out(link.parent, repository(state.workdir)) is not None:
            return  # a link of the repository's, not a place that the user named
        try:
            if not link.parent.is_dir():
                link.parent.mkdir()
                (link.parent / ".gitignore").write_text("*\n")
            _relink(link, Path("..") / self.paths.events.relative_to(state.workdir))
        except OSError:
            pass  # a convenience for other tools; the run does not depend on it


#: What is ours in a `.ralph/` where another convention keeps its prompt and its plan, which belong into git.
_OURS_IN_GIT = "/.gitignore\n/runs/\n/latest*\n/lock\n/ralph-crash-*\n"


def prepare_state(workdir: Path) -> StatePaths:
    """Makes `.ralph/` if need be; it ignores itself in git, or what is ours in it."""
    state = StatePaths(workdir)
    try:
        shared = state.root.is_dir() and any(state.root.iterdir())
        state.runs.mkdir(parents=True, exist_ok=True)
        ignore = state.root / ".gitignore"
        if not os.path.lexists(ignore):
            with ignore.open("x") as file:  # never through a link
                file.write(_OURS_IN_GIT if shared else "*\n")
    except OSError as error:
        raise _journal_error(state.root, error) from None
    return state


def _has_output(folder: Path) -> bool:
    return any(path.exists() and path.stat().st_size for path in (folder / "stdout.raw", folder / "stderr.raw"))


def _put_whole(path: Path, body: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    try:
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # never through a link
        with os.fdopen(fd, "wb") as file:
            file.write(body)
        temporary.replace(path)
    except OSError as error:
        raise _journal_error(path, error) from None


def _redact(path: Path, masker: ByteMasker) -> None:
    """In place, if there is anything to mask."""
    exact = path.read_bytes()
    masked = masker.feed(exact) + masker.flush()
    if masked != exact:
        _put_whole(path, masked)


def _mend(events: Path) -> tuple[int, bytes]:
    """The last number that was given, and the line that a kill cut off, which is taken out of the file."""
    if not events.exists():
        return 0, b""
    with events.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        tail = b""
        while end > 0 and b"\n" not in tail.removesuffix(b"\n"):
            step = min(end, 1 << 16)
            end -= step
            file.seek(end)
            tail = file.read(step) + tail
        whole, newline, torn = tail.rpartition(b"\n")
        if torn:
            file.truncate(end + len(whole) + len(newline))
    last = whole.rpartition(b"\n")[2]
    number = last.removeprefix(b'{"seq":').partition(b",")[0]
    return (int(number) if number.isdigit() else 0), torn


def _relink(link: Path, target: Path) -> None:
    temporary = link.with_name(f"{link.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(target)
    temporary.replace(link)


def _journal_error(path: Path, error: OSError) -> RunError:
    return RunError(
        f"the journal cannot be written: {path}: {error.strerror}.\n"
        "  ralph does not run without a record; make room or make the directory writable."
    )
