"""What other terminals ask of a run: files in its folder, whole or not there, and a bell so that it looks at once.

control/stop        `finish`, `now` or `at once`
control/pause       `after` or `now`; the run is held as long as the file is there
control/notes/*.md  for the next prompt, in the order of their names
control/bell        a FIFO; whoever has changed something writes a byte into it
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

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.journal.layout import RunPaths

_MAX_NOTE = 4 << 20
_LONGEST_WORD = 20


class Stop(StrEnum):
    FINISH = "finish"  # the iteration that is under way
    NOW = "now"
    AT_ONCE = "at once"  # without a grace


class Pause(StrEnum):
    AFTER = "after"  # the iteration that is under way
    NOW = "now"


class Note(msgspec.Struct, frozen=True):
    name: str
    text: str


Word = TypeVar("Word", Stop, Pause)


class Requests:
    """Both sides of it: those who ask, and the run that looks."""

    def __init__(self, paths: RunPaths) -> None:
        self.bell = paths.control / "bell"
        self._root = paths.control
        self._stop = paths.control / "stop"
        self._pause = paths.control / "pause"
        self._notes = paths.control / "notes"

    # -- asking

    def ask_stop(self, *, now: bool) -> Stop:
        """Says what is asked for now: who asks twice for `now` wants it at once."""
        wanted = escalated(self.stop(), now=now)
        self._put(self._stop, wanted)
        return wanted

    def ask_pause(self, *, now: bool) -> None:
        if now or self.pause() is None:
            self._put(self._pause, Pause.NOW if now else Pause.AFTER)
        else:
            self.ring()

    def end_pause(self) -> bool:
        """False if none was asked for."""
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

    def drop(self, names: list[str]) -> None:
        for name in names:
            try:
                (self._notes / name).unlink(missing_ok=True)
            except OSError as error:
                raise _cannot(self._notes / name, error) from None
        self.ring()

    def ring(self) -> None:
        """Nobody need be there to hear it: a run looks once a second in any case."""
        with suppress(OSError):
            fd = os.open(self.bell, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                os.write(fd, b"!")
            finally:
                os.close(fd)

    # -- looking

    def make(self) -> Path:
        """For a process that begins: what was asked of one that died is void, but its notes stay. The bell's path."""
        try:
            self._notes.mkdir(parents=True, mode=0o700, exist_ok=True)
            self._root.chmod(0o700)
            self._stop.unlink(missing_ok=True)
            self._pause.unlink(missing_ok=True)
        except OSError as error:
            raise _cannot(self._root, error) from None
        return self.bell

    def gone(self) -> bool:
        return not self._notes.is_dir()

    def put_back(self, stop: Stop | None, pause: Pause | None, notes: list[Note]) -> None:
        """What is known to have been asked, after the folder was deleted."""
        try:
            self._notes.mkdir(parents=True, mode=0o700, exist_ok=True)
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
        """Those that wait, oldest first. Files never change: what is known is not read again."""
        found = []
        for name in self._names():
            note = (known or {}).get(name)
            if note is None:
                try:
                    text = read(self._notes / name, _MAX_NOTE, follow=False).decode("utf-8", "replace")
                except OSError:
                    continue  # dropped in this moment
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
    """Something else than we would write is no request."""
    try:
        with open_regular(path) as file:
            return kind(file.read(_LONGEST_WORD).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def _cannot(path: Path, error: OSError) -> RunError:
    return RunError(f"{path} cannot be written: {error.strerror}")
