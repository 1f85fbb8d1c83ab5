"""What commands print: names and values in it may be anybody's, and nothing of it may control the terminal."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from ralph.system.terminal import escaped_json, safe


def echo(text: object = "", *, err: bool = False) -> None:
    """Lines of text."""
    _write("\n".join(safe(line) for line in str(text).split("\n")), err=err)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """A value as JSON, with every character that a terminal obeys written as an escape."""
    from ralph.transcripts.events import replace_surrogates

    data = msgspec.json.encode(replace_surrogates(msgspec.to_builtins(value)))
    _write(escaped_json(data if indent is None else msgspec.json.format(data, indent=indent)).decode())


def _write(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    if (stream.encoding or "").lower() in ("ascii", "us-ascii", "ansi_x3.4-1968"):
        import click  # it knows how to write to a stream that says that it takes no more than that

        click.echo(text, err=err)
        return
    stream.write(f"{text}\n")
    stream.flush()
