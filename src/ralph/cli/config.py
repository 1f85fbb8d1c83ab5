"""`ralph config`."""

from __future__ import annotations

import os
from typing import Any

import click

from ralph.cli.echo import echo, echo_json
from ralph.planning.settle import settle
from ralph.trust.approval import from_environment

_NO_FILES = "none (no ralph.yml in this directory or above, none in your user configuration)"


@click.command("config", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-c", "--config", "config_file", metavar="FILE", help="Use this ralph.yml instead of the nearest one.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of ralph.yml, for your editor.")
@click.option("--json", "as_json", is_flag=True, help="Print values and origins as JSON.")
def config_command(config_file: str | None, schema: bool, as_json: bool) -> None:
    """Show the effective settings and where each value comes from."""
    import msgspec

    if schema:
        from ralph.config.schema import json_schema

        echo_json(json_schema(), indent=2)
        return
    from ralph.launching.masking import resolved_masker

    resolved = settle({}, config_file, from_environment(os.environ)).resolved
    mask = resolved_masker(resolved)
    values: dict[str, Any] = mask.value(msgspec.to_builtins(resolved.settings))
    if as_json:
        rows = {name: {"value": value, "origin": resolved.origins[name]} for name, value in values.items()}
        echo_json(rows, indent=2)
        return
    from ralph.cli.dryrun import setting_lines

    for line in setting_lines(resolved, mask):
        echo(line)
    echo()
    if resolved.follows:
        echo(resolved.follows)
    if resolved.files or not resolved.follows:
        echo("files: " + (", ".join(str(f) for f in resolved.files) or _NO_FILES))
    for warning in resolved.warnings:
        echo(mask.text(f"warning: {warning}"), err=True)
