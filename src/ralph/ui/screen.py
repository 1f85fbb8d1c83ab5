"""What a screen is, and which one to use."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol

import msgspec

from ralph.config.settings import Ui

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent


class Status(msgspec.Struct, frozen=True):
    """The live line while an agent works. None is unknown."""

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
    #: why nothing is done for a time; then `silent` is what is left of it
    waiting: str | None = None
    #: the command that ends a pause; then `silent` is how long it has been going on
    paused: str | None = None


class Screen(Protocol):
    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        """Events as they come, and the same as the journal has them."""

    def status(self, status: Status) -> None:
        """Called several times a second while an agent works."""

    def close(self) -> None: ...


def choose(ui: Ui) -> Ui:
    """`auto` is rich on a terminal and plain elsewhere."""
    if ui is not Ui.AUTO:
        return ui
    capable = sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    return Ui.RICH if capable else Ui.PLAIN


def create(ui: Ui, *, hurried: bool = False) -> Screen:
    """`hurried`: there is other work to do than to wait until somebody reads on; lines may be skipped for it."""
    chosen = choose(ui)
    if chosen is Ui.JSON:
        from ralph.ui.machine import JsonScreen

        return JsonScreen(hurried=hurried)
    from ralph.ui.console import PlainScreen, RichScreen

    if chosen is Ui.QUIET:
        from ralph.ui.machine import QuietScreen

        return QuietScreen(hurried=hurried)
    return RichScreen(hurried=hurried) if chosen is Ui.RICH else PlainScreen(hurried=hurried)
