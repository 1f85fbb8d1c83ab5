"""The `ralph` command. `--version` is answered before anything is imported."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from ralph import __version__

        sys.stdout.write(f"ralph {__version__}\n")
        return
    from ralph.cli import main as cli

    cli()


if __name__ == "__main__":
    main()
