"""Printing. Names and values may come from anywhere, so nothing printed here can control the terminal."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from ralph.system.terminal import escaped_json, safe


def echo(text: object = "", *, err: bool = False) -> None:
    """Prints lines of text."""
    _write("\n".join(safe(line) for line in str(text).split("\n")), err=err)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """Prints a value as JSON, with every control character escaped."""
    from ralph.transcripts.events import replace_surrogates

    data = msgspec.json.encode(replace_surrogates(msgspec.to_builtins(value)))
    _write(escaped_json(data if indent is None else msgspec.json.format(data, indent=indent)).decode())


def _write(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    if (stream.encoding or "").lower() in ("ascii", "us-ascii", "ansi_x3.4-1968"):
        import click  # it can write other characters to a stream that claims to take only ASCII

        click.echo(text, err=err)
        return
    stream.write(f"{text}\n")
    stream.flush()
