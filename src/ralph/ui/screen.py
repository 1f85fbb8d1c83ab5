"""Which screen to use."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ralph.config.settings import Ui

if TYPE_CHECKING:
    from ralph.loop.screen import Screen


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
