"""What the loop needs of a screen. `ralph.ui` has the screens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent


class Status(msgspec.Struct, frozen=True):
    """The live line while an agent works. None means unknown."""

    iteration: int
    maximum: int
    elapsed: float
    silent: float
    tokens: int | None
    cost: float | None
    tools: int
    open_tool: str | None
    #: a check that ralph runs itself; then `silent` is how long it has been running
    checking: str | None = None
    #: why the run waits; then `silent` is how much longer
    waiting: str | None = None
    #: the command that ends a pause; then `silent` is how long the pause has lasted
    paused: str | None = None


class Screen(Protocol):
    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        """Shows events as they come. `lines` are the same events as the journal has them."""

    def status(self, status: Status) -> None:
        """Called several times a second while an agent works."""

    def close(self) -> None: ...
