"""`ralph init`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ralph.cli.echo import echo
from ralph.config.yamlfile import NAMES
from ralph.dialects.detect import Dialect, find
from ralph.errors import RunError, UsageError
from ralph.planning.approvals import items_to_approve, of_config, of_dialect
from ralph.planning.settle import working_directory
from ralph.system.folders import create_file
from ralph.trust import store
from ralph.trust.approval import from_environment, required

if TYPE_CHECKING:
    from pathlib import Path

_CONFIG = """\
# `ralph config` shows the effective settings, `ralph run --help` explains them.

# The agent: auto for the first one installed, or claude, codex, gemini, …, or custom.
agent: auto

prompt_file: PROMPT.md

# When to stop. When the work is done, the agent prints one of these lines:
#   <promise>COMPLETE</promise>   or   LOOP_COMPLETE
max_iterations: 30
# max_runtime: 8h
# max_cost: 10          # in dollars, if the cost is known

# Checks that ralph runs itself when the agent says it is done:
# verify:
#   - make test

# What the agent may change:
# allowed_paths: [src, tests, docs]
"""

#: What a translated ralph.yml refers to.
_STILL_NEEDED = {
    Dialect.PROVIDER: "only the program that it names, the plans and the prompts",
    Dialect.DRIVER: "the prompt, the plan, the drivers, and .ralphrc for variables that only drivers and agents read",
    Dialect.SCRIPT: "the prompt, the script that it names, and the config next to the scripts",
}

_PROMPT = """\
# Task

Describe what you want here. The agent reads this text at the start of every iteration and remembers nothing from the
last one, so keep the state of the work in files (a task list such as TODO.md, and commits).

1. Look at the repository and at TODO.md. Pick the most important open task.
2. Do that one task, with tests. Run the tests.
3. Tick it off in TODO.md and commit.

When every task is done and all tests pass, and only then, end your answer with this line alone:

<promise>COMPLETE</promise>
"""


@click.command("init", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--from-existing", is_flag=True, help="Create a ralph.yml with the settings of another convention's files here."
)
def init_command(from_existing: bool) -> None:
    """Create a small ralph.yml and PROMPT.md. Existing files are never overwritten."""
    workdir = working_directory(None)
    if from_existing:
        _from_existing(workdir)
        return
    if write(workdir / "ralph.yml", _CONFIG):
        _remember(workdir / "ralph.yml")
    write(workdir / "PROMPT.md", _PROMPT)
    echo("Next: describe the task in PROMPT.md, try `ralph run --dry-run`, then `ralph run`.")


def write(path: Path, text: str) -> bool:
    """Creates a file unless it exists, prints what it did, and returns whether it created the file."""
    try:
        create_file(path, text.encode("utf-8", "surrogateescape"))
    except FileExistsError:
        echo(f"{path.name} already exists and was not changed")
        return False
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    echo(f"created {path.name}")
    return True


def _remember(path: Path) -> None:
    """Approves a file that ralph wrote. If that cannot be stored, ralph will ask the user later."""
    try:
        store.remember_file(path)
    except RunError as error:
        echo(f"note: {error}", err=True)


def _from_existing(workdir: Path) -> None:
    from ralph.config.layers import resolve
    from ralph.dialects.detect import RUN_TO_BE_READ, choose
    from ralph.dialects.modules import module
    from ralph.dialects.translate import as_yaml

    for name in NAMES:
        if os.path.lexists(workdir / name):
            raise UsageError(f"{name} already exists and was not changed: rename or remove it to create a new one")
    found = next((f for f in find(workdir) if f.dialect is not Dialect.ORCHESTRATOR), None)
    if found is None:
        raise UsageError(
            "no files of another convention were found here (.ralphex/config, .ralphrc, .ralph/PROMPT.md, or "
            "agents/*.sh with config).\n  To create a new ralph.yml: ralph init"
        )
    _, notes = choose(workdir, found.dialect)
    environ = dict(os.environ)
    trust = from_environment(environ)
    trust = required(trust, of_config(workdir, found))
    if found.dialect in RUN_TO_BE_READ:
        trust = required(trust, of_dialect(found, workdir, environ))
    layer = module(found.dialect).layer(found, workdir, environ)
    resolved = resolve(workdir, {}, environ={}, dialect=layer)  # raises a UsageError if these files are wrong
    script = resolved.settings.agent_script
    if script is not None and not (workdir / script).is_file():
        origin = resolved.origins["agent_script"]
        raise UsageError(f"{script} ({origin}) does not exist, so no ralph.yml was written: correct AGENT first")
    wanted = items_to_approve(resolved, workdir)
    if write(workdir / "ralph.yml", as_yaml(found, layer)) and not trust.recalling(wanted).missing(wanted):
        _remember(workdir / "ralph.yml")
    for note in (*notes, *resolved.warnings):
        echo(f"note: {note}")
    echo(f"ralph.yml has the settings of the {found.dialect} convention's files ({found.why}).")
    echo(f"Of these files, it still needs {_STILL_NEEDED[found.dialect]}.")
    echo("Next: read ralph.yml, try `ralph run --dry-run`, then `ralph run`.")
