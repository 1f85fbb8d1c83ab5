"""The screen, as the loop sees it: `ralph.ui` has several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent


class Status(msgspec.Struct, frozen=True):
    """What the status line shows while an agent works. None means unknown."""

    iteration: int
    maximum: int
    elapsed: float
    silent: float
    tokens: int | None
    cost: float | None
    tools: int
    open_tool: str | None
    #: whether tokens and cost are lower bounds
    at_least: bool = False
    #: the check that ralph is running; `silent` is then how long it has been running
    checking: str | None = None
    #: why the run is waiting; `silent` is then how long it will still wait
    waiting: str | None = None
    #: the command that ends a pause; `silent` is then how long the pause has lasted
    paused: str | None = None


class Screen(Protocol):
    """Where events are shown."""

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        """Shows events. `lines` are the same events as lines of the journal."""

    def status(self, status: Status) -> None:
        """Called several times a second while an agent works."""

    def close(self) -> None: ...
