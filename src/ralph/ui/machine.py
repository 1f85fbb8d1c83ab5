"""Screens for programs, and for people who only want to see the summary."""

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


#: A program may take long to process a line.
_PATIENCE = 30.0


class JsonScreen:
    """Writes the lines of the journal to stdout, and nothing else."""

    def __init__(self, *, may_skip: bool = False) -> None:
        self._outlet = Outlet(sys.stdout.fileno(), patience=_PATIENCE if may_skip else None)
        self._terminal = sys.stdout.isatty()

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        self._outlet.write(escaped_json(lines) if self._terminal else lines)  # a gap in `seq` shows skipped lines

    def status(self, status: Status) -> None:
        pass

    def close(self) -> None:
        pass


class QuietScreen(PlainScreen):
    """Shows only the summary."""

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        super().show([e for e in events if isinstance(e, Meta) and e.meta.get("kind") == Kind.RUN_END], lines)
