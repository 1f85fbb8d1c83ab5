"""The errors that are shown to users.

RalphError
├── UsageError    the command line, the environment or a file is wrong; nothing was run (exit 64)
└── RunError      the run cannot continue (disk full, working directory deleted, …) (exit 1)
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


#: The system is out of files, processes or memory. That is no bug in ralph, so it is reported without a traceback.
OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


class RalphError(Exception):
    """Shown to the user without a traceback. Its text says what is wrong and what to do."""

    exit_code = 1


class UsageError(RalphError):
    exit_code = 64


class RunError(RalphError):
    exit_code = 1


def nearest(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or an empty string if nothing is similar."""
    return did_you_mean(closest(word, known))


def did_you_mean(name: str | None) -> str:
    return f" (did you mean '{name}'?)" if name else ""


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that a mistyped word most likely stands for; `cutoff` is how similar it must be."""
    from difflib import get_close_matches  # only needed for errors

    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=1, cutoff=cutoff)
    return names[close[0]] if close else None
