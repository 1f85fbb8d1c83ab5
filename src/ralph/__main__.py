"""The `ralph` command. `--version` is answered before anything is imported."""

from __future__ import annotations

import gc
import sys


def main() -> None:
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
