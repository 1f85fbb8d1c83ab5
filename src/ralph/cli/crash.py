"""Reports a bug in ralph itself: a sentence for the user, the details in a file."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

from ralph.cli.echo import echo
from ralph.system.files import leads_out


def report(error: BaseException) -> None:
    """Writes the details to a file and prints where it is."""
    from ralph.masking.masker import for_environment

    mask = for_environment()
    summary = f"{type(error).__name__}: {error}".partition("\n")[0]
    lines = [f"ralph: this is a bug in ralph, not in what you did: {summary}"]
    path = _write(mask.text(_details(error)))
    if path is not None:
        lines.append(f"  The details are in {path}; please report them.")
    lines.append("  Set RALPH_DEBUG=1 to see the traceback here instead.")
    echo(mask.text("\n".join(lines)), err=True)


def _details(error: BaseException) -> str:
    from ralph import __version__

    # Only the name of the command: its arguments may be private, and the user may pass the file on.
    command = next((a for a in sys.argv[1:] if not a.startswith("-")), "")
    head = f"ralph {__version__}, Python {platform.python_version()}, {platform.platform()}\nralph {command}\n\n"
    return head + "".join(traceback.format_exception(error))


def _write(text: str) -> Path | None:
    """Writes to .ralph if that exists, else to the directory for temporary files."""
    name = f"ralph-crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    # A .ralph that is a link out of the repository may not be the user's.
    own = [] if leads_out(Path(".ralph"), Path()) else [Path(".ralph")]
    for folder in (*own, Path(tempfile.gettempdir())):
        try:
            (folder / name).touch(mode=0o600, exist_ok=False)
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError:
            continue  # try the other directory; without any file, the sentence is still printed
        return folder / name
    return None
