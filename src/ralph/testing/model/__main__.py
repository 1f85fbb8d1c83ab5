"""`python -m ralph.testing.model`: prints its address and serves until its time is over or its parent is gone."""

from __future__ import annotations

import argparse
import os
import select
import stat
import sys
import time

from ralph.testing.model.fake import FakeModel
from ralph.testing.model.scenarios import SCENARIOS

_CHECK_EVERY = 0.2


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.list:
        width = max(map(len, SCENARIOS))
        for name, scenario in SCENARIOS.items():
            print(f"{name:<{width}}  {scenario.about}")
        return 0
    try:
        model = FakeModel(
            options.scenario, port=options.port, host=options.host, directory=options.directory, log=options.log
        )
    except (OSError, OverflowError, ValueError) as error:
        print(f"ralph.testing.model: {error}", file=sys.stderr)
        return 1
    with model:
        print(model.url, flush=True)
        try:
            _wait(options.seconds)
        except KeyboardInterrupt:
            pass
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ralph.testing.model",
        description="A scripted model on a loopback port, behind the APIs of Anthropic (messages), OpenAI (responses "
        "and chat completions) and Gemini. It ends after --for SECONDS, with the process that started it, or when its "
        "stdin is a pipe that is closed.",
    )
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="success", metavar="NAME", help="[success]")
    parser.add_argument("--list", action="store_true", help="list the scenarios, and what happens in each")
    parser.add_argument("--port", type=int, default=0, help="[0: any free port]")
    parser.add_argument("--host", default="127.0.0.1", help="a loopback address [127.0.0.1]")
    parser.add_argument("--log", metavar="FILE", help="write every request to this file, as a line of JSON")
    parser.add_argument(
        "--directory", metavar="DIR", help="where the agent works: files are then written with absolute paths"
    )
    parser.add_argument("--for", type=float, default=3600.0, dest="seconds", metavar="SECONDS", help="[3600]")
    return parser


def _wait(seconds: float) -> None:
    """Returns when the time is over, the parent is gone, or our stdin is a pipe and is closed."""
    end = time.monotonic() + seconds
    parent = os.getppid()
    pipe = _is_pipe(sys.stdin.fileno()) if sys.stdin else False
    while time.monotonic() < end and os.getppid() == parent:
        if not pipe:
            time.sleep(_CHECK_EVERY)
        elif select.select([sys.stdin], [], [], _CHECK_EVERY)[0] and not os.read(sys.stdin.fileno(), 4096):
            return


def _is_pipe(descriptor: int) -> bool:
    """Only a pipe or a socket shows that the other side is gone; a terminal and /dev/null do not."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


if __name__ == "__main__":
    sys.exit(main())
