"""`ralph demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import click

from ralph.cli.echo import echo
from ralph.cli.run import run
from ralph.config.settings import Ui
from ralph.errors import RunError
from ralph.testing import demo_project
from ralph.testing.demo_agent import FAST
from ralph.trust import store

_INTRO = """\
A demo agent works on a small library in a new git repository: one task per
iteration, each time with a fresh context. It calls no model, and its words are
scripted; the process, the files, the tests and the commits are real. At one
point it claims to be done when it is not. Watch what ralph does about it.
"""

#: Of the user's own settings, only those for the screen and the speed apply to the demo.
_KEPT = ("RALPH_UI", "RALPH_DEBUG", FAST)


@click.command("demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    help="Directory for the demo; replaces an earlier demo. [default: a new temporary one]",
)
@click.option("--fast", is_flag=True, help="Skip the pauses that let you read along.")
@click.option("--ui", metavar="KIND", help="What the screen shows: auto, rich, plain, json or quiet. [default: auto]")
def demo_command(folder: str | None, fast: bool, ui: str | None) -> int:
    """Watch a loop work through a small task list.

    It runs in a throw-away git repository and needs no agent, no key and no network.
    """
    demo_project.need_git()
    if folder is None:
        workdir = Path(tempfile.mkdtemp(prefix="ralph-demo-"))
    else:
        workdir = Path.cwd() / Path(folder).expanduser()
        demo_project.claim_folder(workdir)
    demo_project.create(workdir)
    try:
        store.remember_file(workdir / "ralph.yml")  # so that the user can `ralph run` there later
    except RunError as error:
        echo(f"ralph demo: {error}", err=True)
    quiet = ui == Ui.QUIET
    if not quiet:
        echo(_INTRO, err=True)
    flags = {"cwd": str(workdir), "agent": "demo"} | ({"ui": ui} if ui is not None else {})
    code = run(flags, trust=True, environ=_environment(workdir, fast=fast))
    echo(f"The demo is in {workdir}" if quiet else _next_steps(workdir, code), err=True)
    return code


def _environment(workdir: Path, *, fast: bool) -> dict[str, str]:
    """Without the user's settings, git variables and ralph.yml, so that the demo is the same for everybody."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or not (name.startswith(("RALPH_", "GIT_")) or name == "AGENT_CMD")
    }
    config = {"XDG_CONFIG_HOME": str(workdir / ".ralph" / "no-config")}
    return kept | config | ({FAST: "1"} if fast else {})


def _next_steps(workdir: Path, code: int) -> str:
    ralph = _own_command()
    here = Path.cwd()
    place = workdir.relative_to(here) if workdir.is_relative_to(here) and workdir != here else workdir
    explore = [
        ("git log --oneline", "what the agent committed"),
        (f"{ralph} show", "the run again, from its journal"),
        (f"{ralph} show --iteration 4", "the iteration with the false claim"),
        (f"{ralph} run --dry-run", "how ralph starts the agent"),
    ]
    finish = [(f"{ralph} run", "finish the remaining tasks")]
    commands = explore if code == 0 else finish
    width = max(len(command) for command, _ in commands)
    lines = [f"  {command:<{width}}   {what}" for command, what in commands]
    return "\n".join(
        [
            f"\nThe demo's files are still there. Have a look:\n\n  cd {shlex.quote(str(place))}",
            *lines,
            "\nTo use your own agent in your own repository: `ralph init`, then `ralph run`.",
        ]
    )


def _own_command() -> str:
    """The command that starts this ralph again: `ralph` only if the shell would find this one."""
    script = Path(sys.argv[0])
    if script.name != "ralph":
        return f"{shlex.quote(sys.executable)} -m ralph"
    found = shutil.which("ralph")
    if found is not None and Path(found).resolve() == script.resolve():
        return "ralph"
    return shlex.quote(str(script.absolute()))
