"""The `ralph` command. `--version` is answered before anything is imported."""

from __future__ import annotations

import gc
import os
import sys


def open_standard_streams() -> None:
    """Opens closed ones (`>&-`) on /dev/null. Otherwise the next file, such as the journal, would take their place."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, "r" if fd == 0 else "w", encoding="utf-8", closefd=False))


def import_msgspec() -> None:
    """msgspec prefers `typing_extensions`, which takes a sixth of the start-up time; `typing` is enough."""
    if "typing_extensions" in sys.modules:
        return
    # Importing it fails now.
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]


def main() -> None:
    open_standard_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        from ralph import __version__

        sys.stdout.write(f"ralph {__version__}\n")
        return
    # Modules stay until the end, and events are freed with their last reference. Collecting cycles as often as Python
    # does by default would find next to nothing and take 6 % of the start-up time.
    gc.set_threshold(50_000)
    import_msgspec()
    from ralph.cli import main as cli

    try:
        cli()
    finally:
        gc.freeze()  # the process ends now: do not scan every object once more


if __name__ == "__main__":
    main()
