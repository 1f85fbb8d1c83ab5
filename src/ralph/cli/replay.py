"""`ralph replay`: recorded output through an adapter, without running anything."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ralph.config.settings import Ui
from ralph.errors import UsageError


@click.command("replay", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file")
@click.option("--transcript", required=True, metavar="NAME", help="The adapter: plain, rtf1, …")
@click.option("--stderr", "stderr_file", metavar="FILE", help="What the agent printed on stderr.")
@click.option(
    "--exit-code",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="How it ended; minus a number is a signal.",
)
@click.option(
    "--prompt",
    "prompt_file",
    metavar="FILE",
    help="The prompt it was given, for adapters that hide its echo.",
)
@click.option("--completion-promise", metavar="TEXT", help="The marker, if it is not one of the default ones.")
@click.option("--json", "as_json", is_flag=True, help="One event a line, then the verdict.")
@click.option(
    "--mask/--no-mask",
    default=None,
    help="Mask secrets [default: on the screen; not with --json, which is as the adapter made it].",
)
def replay_command(
    file: str,
    transcript: str,
    stderr_file: str | None,
    exit_code: int,
    prompt_file: str | None,
    completion_promise: str | None,
    as_json: bool,
    mask: bool | None,
) -> int:
    """Read recorded output (FILE, or - for stdin) through a transcript adapter, and judge it.

    With --json the last line is the verdict: outcome, completed, why, session, usage, tools.
    """
    from ralph.judging.replay import replay
    from ralph.masking.events import EventMasker
    from ralph.masking.masker import for_environment

    masked = EventMasker(for_environment())
    masked.expect_pieces(transcript == "rtf1")
    wanted = not as_json if mask is None else mask
    out = _read(file)
    err = _read(stderr_file) if stderr_file else b""
    prompt = _read(prompt_file).decode("utf-8", "replace") if prompt_file else None
    screen = None
    if not as_json:
        from ralph.ui.choose import create

        screen = create(Ui.AUTO)
    sys.stdout.flush()
    for events, lines in replay(out, err, transcript, exit_code, prompt, completion_promise):
        if wanted:
            events, lines = masked.encode(events)
        if screen is None:
            sys.stdout.buffer.write(lines)
        else:
            screen.show(events, lines)
    sys.stdout.flush()
    return 0


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {name}") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
