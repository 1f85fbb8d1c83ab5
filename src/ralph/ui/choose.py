"""Choosing a screen."""

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


def create(ui: Ui, *, may_skip: bool = False) -> Screen:
    """Creates the screen for a setting.

    With `may_skip`, it skips lines instead of waiting when nobody reads the output, because a run must go on.
    """
    # Each screen is imported only if it is used, to keep the start fast.
    chosen = choose(ui)
    if chosen is Ui.JSON:
        from ralph.ui.machine import JsonScreen

        return JsonScreen(may_skip=may_skip)
    from ralph.ui.console import PlainScreen, RichScreen

    if chosen is Ui.QUIET:
        from ralph.ui.machine import QuietScreen

        return QuietScreen(may_skip=may_skip)
    return RichScreen(may_skip=may_skip) if chosen is Ui.RICH else PlainScreen(may_skip=may_skip)
