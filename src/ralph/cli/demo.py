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
A demo agent works on a small library, in a git repository made for this: one
task an iteration, each time with a fresh context. No model is asked and its
words are scripted, but the process, the files, the tests and the commits are
real. Once it says that all is done when it is not: see what ralph makes of it.
"""

#: Settings of the user's own runs stay out of it; how the screen looks, and how fast, does not.
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
        store.remember_file(workdir / "ralph.yml")  # for `ralph run` there, later
    except RunError as error:
        echo(f"ralph demo: {error}", err=True)
    loud = ui != Ui.QUIET
    if loud:
        echo(_INTRO, err=True)
    flags = {"cwd": str(workdir), "agent": "demo"} | ({"ui": ui} if ui is not None else {})
    code = run(flags, trust=True, environ=_environment(workdir, fast=fast))
    echo(_afterwards(workdir, code) if loud else f"The demo is in {workdir}", err=True)
    return code


def _environment(workdir: Path, *, fast: bool) -> dict[str, str]:
    """The demo looks the same for everybody: no settings, no git variables, no ralph.yml of the user's."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or not (name.startswith(("RALPH_", "GIT_")) or name == "AGENT_CMD")
    }
    config = {"XDG_CONFIG_HOME": str(workdir / ".ralph" / "no-config")}
    return kept | config | ({FAST: "1"} if fast else {})


def _afterwards(workdir: Path, code: int) -> str:
    ralph = _our_name()
    here = Path.cwd()
    place = workdir.relative_to(here) if workdir.is_relative_to(here) and workdir != here else workdir
    look = [
        ("git log --oneline", "what the agent committed"),
        (f"{ralph} show", "the run again, from its journal"),
        (f"{ralph} show --iteration 4", "where the agent said it too early"),
        (f"{ralph} run --dry-run", "how the agent is started"),
    ]
    go_on = [(f"{ralph} run", "go on where it stopped")]
    commands = look if code == 0 else go_on
    width = max(len(command) for command, _ in commands)
    lines = [f"  {command:<{width}}   {what}" for command, what in commands]
    return "\n".join(
        [
            f"\nEverything is still there. Have a look:\n\n  cd {shlex.quote(str(place))}",
            *lines,
            "\nWith an agent of yours, in a repository of yours: `ralph init`, then `ralph run`.",
        ]
    )


def _our_name() -> str:
    """How the user can call us again: `ralph` only if that is what the shell would find."""
    script = Path(sys.argv[0])
    if script.name != "ralph":
        return f"{shlex.quote(sys.executable)} -m ralph"
    found = shutil.which("ralph")
    if found is not None and Path(found).resolve() == script.resolve():
        return "ralph"
    return shlex.quote(str(script.absolute()))
