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


_QUESTION = "Continue? [Enter] next iteration · s stop · a continue without asking: "


def check_terminal() -> None:
    """UsageError without a terminal. Called before anything starts."""
    if not sys.stdin.isatty():
        raise UsageError("--interactive needs a terminal to ask on: run ralph in a terminal, or leave the flag out")


def asker(screen: Screen, stop: StopSwitch) -> Callable[[], str]:
    """A function that asks the user and returns `go`, `stop` or `always`."""
    check_terminal()

    def ask() -> str:
        screen.close()
        # Keys that were typed before the question are not an answer to it.
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
            except OSError:  # the terminal was closed
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
        return "go"  # the loop handles the signal

    return ask
