"""The errors that a user sees.

RalphError
├── UsageError    the command line, the environment or a file is wrong; nothing was run (exit 64)
└── RunError      the run cannot go on (disk full, working directory gone, …) (exit 1)
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


#: The system has too little of something (files, processes, memory): nobody's bug, and told as it is.
SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


class RalphError(Exception):
    """Shown to the user as it is, without a traceback: its text says what to do."""

    exit_code = 1


class UsageError(RalphError):
    exit_code = 64


class RunError(RalphError):
    exit_code = 1


def nearest(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing."""
    from difflib import get_close_matches  # only needed when something is wrong already

    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f" (did you mean '{names[close[0]]}'?)" if close else ""
