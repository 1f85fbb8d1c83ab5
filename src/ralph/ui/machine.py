"""Screens for programs, and for people who only want to know how it ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ralph.system.terminal import escaped_json
from ralph.transcripts.events import Meta
from ralph.transcripts.meta import Kind
from ralph.ui.console import PlainScreen
from ralph.ui.outlet import Outlet

if TYPE_CHECKING:
    from ralph.loop.screen import Status
    from ralph.transcripts.events import TranscriptEvent


#: A program may do much with one line.
_PATIENCE = 30.0


class JsonScreen:
    """The journal's lines on stdout, and nothing else there."""

    def __init__(self, *, hurried: bool = False) -> None:
        self._outlet = Outlet(sys.stdout.fileno(), patience=_PATIENCE if hurried else None)
        self._terminal = sys.stdout.isatty()

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        self._outlet.write(escaped_json(lines) if self._terminal else lines)  # where some were skipped, `seq` has a gap

    def status(self, status: Status) -> None:
        pass

    def close(self) -> None:
        pass


class QuietScreen(PlainScreen):
    """The summary alone."""

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        super().show([e for e in events if isinstance(e, Meta) and e.meta.get("kind") == Kind.RUN_END], lines)
