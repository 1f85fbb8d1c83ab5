"""Requests to a run from other terminals: files in its folder, written atomically, and a FIFO that wakes the run up.

control/stop        `finish`, `now` or `at once`
control/pause       `after` or `now`; the run is paused as long as the file exists
control/notes/*.md  for the next prompt, in the order of their names
control/bell        a FIFO; a request ends with a byte written to it
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ralph.errors import RunError
from ralph.system.files import open_regular, read
from ralph.system.folders import make_folder

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.journal.layout import RunPaths

_MAX_NOTE = 4 << 20
_LONGEST_WORD = 20


class Stop(StrEnum):
    FINISH = "finish"  # after the current iteration
    NOW = "now"
    AT_ONCE = "at once"  # without a grace period


class Pause(StrEnum):
    AFTER = "after"  # the current iteration
    NOW = "now"


class Note(msgspec.Struct, frozen=True):
    name: str
    text: str


Word = TypeVar("Word", Stop, Pause)


class Requests:
    """Both sides: the commands that make requests, and the run that reads them."""

    def __init__(self, paths: RunPaths) -> None:
        self.bell = paths.control / "bell"
        self._root = paths.control
        self._stop = paths.control / "stop"
        self._pause = paths.control / "pause"
        self._notes = paths.control / "notes"

    # -- making requests

    def ask_stop(self, *, now: bool) -> Stop:
        """Returns the resulting request: asking for `now` twice means at once."""
        wanted = escalated(self.stop(), now=now)
        self._put(self._stop, wanted)
        return wanted

    def ask_pause(self, *, now: bool) -> None:
        if now or self.pause() is None:
            self._put(self._pause, Pause.NOW if now else Pause.AFTER)
        else:
            self.ring()

    def end_pause(self) -> bool:
        """False if no pause was asked for."""
        try:
            self._pause.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _cannot(self._pause, error) from None
        self.ring()
        return True

    def add_note(self, text: str) -> None:
        last = max((int(name.partition("-")[0]) for name in self._names()), default=0)
        self._put(self._notes / f"{last + 1:04d}-{secrets.token_hex(2)}.md", text)

    def drop_notes(self, names: list[str]) -> None:
        for name in names:
            try:
                (self._notes / name).unlink(missing_ok=True)
            except OSError as error:
                raise _cannot(self._notes / name, error) from None
        self.ring()

    def ring(self) -> None:
        """Wakes the run up. If nobody listens, the run still checks once a second."""
        with suppress(OSError):
            fd = os.open(self.bell, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                os.write(fd, b"!")
            finally:
                os.close(fd)

    # -- reading them, in the run

    def prepare(self) -> Path:
        """Called at the start: removes stop and pause requests to a process that died. Returns the FIFO's path."""
        try:
            make_folder(self._notes)
            self._root.chmod(0o700)
            self._stop.unlink(missing_ok=True)
            self._pause.unlink(missing_ok=True)
        except OSError as error:
            raise _cannot(self._root, error) from None
        return self.bell

    def is_deleted(self) -> bool:
        return not self._notes.is_dir()

    def restore(self, stop: Stop | None, pause: Pause | None, notes: list[Note]) -> None:
        """Writes these requests again after the folder was deleted."""
        try:
            make_folder(self._notes)
        except OSError as error:
            raise _cannot(self._root, error) from None
        known = {self._stop: stop, self._pause: pause} | {self._notes / note.name: note.text for note in notes}
        for path, text in known.items():
            if text is not None and not path.exists():
                self._put(path, text)

    def stop(self) -> Stop | None:
        return _word(self._stop, Stop)

    def pause(self) -> Pause | None:
        return _word(self._pause, Pause)

    def notes(self, known: dict[str, Note] | None = None) -> list[Note]:
        """The waiting notes, oldest first. Files never change, so those already `known` are not read again."""
        found = []
        for name in self._names():
            note = (known or {}).get(name)
            if note is None:
                try:
                    text = read(self._notes / name, _MAX_NOTE, follow=False).decode("utf-8", "replace")
                except OSError:
                    continue  # it was just dropped
                note = Note(name, text)
            found.append(note)
        return found

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._notes)
        except OSError:
            return []
        return sorted((n for n in names if n.endswith(".md") and n.partition("-")[0].isdecimal()), key=_in_order)

    def _put(self, path: Path, text: str) -> None:
        temporary = self._root / f"{path.name}.{secrets.token_hex(4)}.tmp"
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise _cannot(path, error) from None
        self.ring()


def escalated(before: Stop | None, *, now: bool) -> Stop:
    match before, now:
        case (Stop.NOW | Stop.AT_ONCE, True):
            return Stop.AT_ONCE
        case (None, False):
            return Stop.FINISH
        case (_, True):
            return Stop.NOW
        case _:
            return before or Stop.FINISH


def _in_order(name: str) -> tuple[int, str]:
    return int(name.partition("-")[0]), name


def _word(path: Path, kind: type[Word]) -> Word | None:
    """The request in a file; None if it is not one that we would write."""
    try:
        with open_regular(path) as file:
            return kind(file.read(_LONGEST_WORD).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def _cannot(path: Path, error: OSError) -> RunError:
    return RunError(f"{path} cannot be written: {error.strerror}")
