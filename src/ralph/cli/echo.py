"""What commands print: names and values in it may be anybody's, and nothing of it may control the terminal."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ralph.ui.safe import escaped_json, safe


def echo(text: object = "", *, err: bool = False) -> None:
    """Lines of text."""
    click.echo("\n".join(safe(line) for line in str(text).split("\n")), err=err)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """A value as JSON, with every character that a terminal obeys written as an escape."""
    from ralph.transcripts.events import replace_surrogates

    data = msgspec.json.encode(replace_surrogates(msgspec.to_builtins(value)))
    click.echo(escaped_json(data if indent is None else msgspec.json.format(data, indent=indent)).decode())
