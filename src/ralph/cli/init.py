"""`ralph init`."""

from __future__ import annotations

import click

from ralph.cli.run import working_directory
from ralph.errors import UsageError

_CONFIG = """\
# ralph.yml: `ralph config` shows every setting, `ralph run --help` explains them.

# Which agent: auto takes the first that is installed; claude, codex, gemini, … or custom.
agent: auto

prompt_file: PROMPT.md

# When to stop. The agent prints the first of these lines when all is done:
#   <promise>COMPLETE</promise>   or   LOOP_COMPLETE
max_iterations: 30
# max_runtime: 8h
# max_cost: 10          # dollars, as far as the agent reports them

# What ralph runs itself before it believes that the work is done:
# verify:
#   - make test

# What the agent may change:
# allowed_paths: [src, tests, docs]
"""

_PROMPT = """\
# Task

Say here what you want. The agent reads this text afresh in every iteration and remembers nothing of the last one,
so keep the state of the work in files (a task list such as TODO.md, and commits).

1. Look at the repository and at TODO.md. Choose the most important open task.
2. Do that one task, with tests. Run the tests.
3. Tick it off in TODO.md and commit.

When every task is done and all tests pass, and only then, end your answer with this line alone:

<promise>COMPLETE</promise>
"""


@click.command("init", context_settings={"help_option_names": ["-h", "--help"]})
def init_command() -> None:
    """Write a small ralph.yml and PROMPT.md here. Files that exist stay as they are."""
    workdir = working_directory(None)
    for name, text in (("ralph.yml", _CONFIG), ("PROMPT.md", _PROMPT)):
        path = workdir / name
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            click.echo(f"{name} exists already and stays as it is")
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None
        else:
            click.echo(f"wrote {name}")
    click.echo("Next: say in PROMPT.md what to do, try `ralph run --dry-run`, then `ralph run`.")
