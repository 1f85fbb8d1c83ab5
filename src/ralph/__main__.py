"""The `ralph` command. `--version` is answered before anything is imported."""

from __future__ import annotations

import gc
import os
import sys


def open_standard_streams() -> None:
    """Where one is closed (`>&-`), the next file that is opened would take its place: the journal on stdout's."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, "r" if fd == 0 else "w", encoding="utf-8", closefd=False))


def main() -> None:
    open_standard_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        from ralph import __version__

        sys.stdout.write(f"ralph {__version__}\n")
        return
    # What is imported stays until the end, and an event is gone with its last reference: looking for cycles as
    # often as Python does by default would find next to nothing for 6 % of the time of a start.
    gc.set_threshold(50_000)
    from ralph.cli import main as cli

    try:
        cli()
    finally:
        gc.freeze()  # all memory goes at once now: no last look at every object


if __name__ == "__main__":
    main()
