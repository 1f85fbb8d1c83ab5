"""`--interactive`: the question between two iterations."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING

from ralph.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.runners.stop import StopSwitch
    from ralph.ui.screen import Screen


def asker(screen: Screen, stop: StopSwitch) -> Callable[[], str]:
    """A function that asks and answers `go`, `stop` or `always`."""
    if not sys.stdin.isatty():
        raise UsageError("--interactive needs a terminal to ask on; leave it out, or run ralph in a terminal")

    def ask() -> str:
        screen.close()
        while True:
            sys.stderr.write("Go on? [Enter] next iteration · s stop · a go on without asking: ")
            sys.stderr.flush()
            ready, _, _ = select.select([sys.stdin, stop.fd], [], [])
            if stop.fd in ready:
                stop.drain()
                return "stop"
            answer = os.read(sys.stdin.fileno(), 1024).decode("utf-8", "replace")
            match answer.strip().lower():
                case "" if answer:
                    return "go"
                case "y" | "yes" | "g" | "go":
                    return "go"
                case "s" | "stop" | "n" | "no" | "q" | "quit" | "":
                    return "stop"
                case "a" | "always":
                    return "always"

    return ask
