"""The list of targets. Each is a function that takes bytes and raises if a property does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fuzz import agent_text, echo, files, forgery, framing, transcripts, tree

if TYPE_CHECKING:
    from collections.abc import Callable


class Target(msgspec.Struct, frozen=True):
    name: str
    check: Callable[[bytes], None]


def _all() -> dict[str, Callable[[bytes], None]]:
    return {
        "framing": framing.check,
        **{name: transcripts.target(name) for name in transcripts.names()},
        "forgery": forgery.check,
        "echo": echo.check,
        "signals": agent_text.signals,
        "topics": agent_text.topics,
        "config": files.config,
        "durations": files.durations,
        "agent-file": files.agent_file,
        "ralphrc": files.rc_file,
        "ralphex": files.ini_file,
        "tree": tree.check,
    }


TARGETS: dict[str, Target] = {name: Target(name, check) for name, check in _all().items()}
