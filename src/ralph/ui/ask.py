"""`--interactive`: the question between two iterations."""

from __future__ import annotations

import os
import select
import sys
import termios
from typing import TYPE_CHECKING

from ralph.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.loop.screen import Screen
    from ralph.runners.stop import StopSwitch


_QUESTION = "Go on? [Enter] next iteration · s stop · a go on without asking: "


def check_terminal() -> None:
    """Before anything starts: a question needs somebody to answer it."""
    if not sys.stdin.isatty():
        raise UsageError("--interactive needs a terminal to ask on; leave it out, or run ralph in a terminal")


def asker(screen: Screen, stop: StopSwitch) -> Callable[[], str]:
    """A function that asks and answers `go`, `stop` or `always`."""
    check_terminal()

    def ask() -> str:
        screen.close()
        # What was typed while the agent worked is no answer to a question that came later.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        while stop.kind is None:
            sys.stderr.write(_QUESTION)
            sys.stderr.flush()
            ready, _, _ = select.select([sys.stdin, stop.fd], [], [])
            if stop.fd in ready:
                stop.drain()
                sys.stderr.write("\n")
                continue
            try:
                answer = os.read(sys.stdin.fileno(), 1024).decode("utf-8", "replace")
            except OSError:  # the terminal has gone away
                return "stop"
            match answer.strip().lower():
                case "" if answer:
                    return "go"
                case "y" | "yes" | "g" | "go":
                    return "go"
                case "s" | "stop" | "n" | "no" | "q" | "quit" | "":
                    return "stop"
                case "a" | "always":
                    return "always"
        return "go"  # the loop sees the signal by itself, and says so

    return ask
