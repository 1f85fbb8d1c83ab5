"""`ralph replay`: reads recorded output with an adapter, without running anything."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ralph.config.settings import Ui
from ralph.errors import UsageError


@click.command("replay", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file")
@click.option(
    "--transcript", required=True, metavar="NAME", help="Adapter to use: plain, rtf1, the name of an agent, …"
)
@click.option("--stderr", "stderr_file", metavar="FILE", help="File with what the agent printed on stderr.")
@click.option(
    "--exit-code",
    type=int,
    default=0,
    metavar="N",
    help="Exit code of the agent; a negative number is a signal. [default: 0]",
)
@click.option(
    "--prompt",
    "prompt_file",
    metavar="FILE",
    help="File with the prompt, for adapters that hide its echo.",
)
@click.option("--completion-promise", metavar="TEXT", help="Completion marker, if it is not one of the default ones.")
@click.option("--json", "as_json", is_flag=True, help="Print one event per line, then the verdict.")
@click.option(
    "--mask/--no-mask",
    default=None,
    help="Whether to mask secrets. [default: yes on the screen, no with --json]",
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
    """Show how ralph reads and judges recorded output.

    Reads FILE (or stdin, if FILE is -) through a transcript adapter; nothing is run. With --json, the last line is the
    verdict: outcome, completed, why, session, usage and tools.
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
