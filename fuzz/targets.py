"""The one list of what is fuzzed; each is a function from bytes that raises where something does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fuzz import files, forgery, framing, transcripts, words

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
        "signals": words.signals,
        "topics": words.topics,
        "config": files.config,
        "durations": files.durations,
        "agent-file": files.agent_file,
        "ralphrc": files.rc_file,
        "ralphex": files.ini_file,
    }


TARGETS: dict[str, Target] = {name: Target(name, check) for name, check in _all().items()}
