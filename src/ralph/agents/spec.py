"""The schema of an agent's TOML file. docs/how-to/add-an-agent.md explains it to people."""

from __future__ import annotations

from enum import StrEnum

import msgspec

#: The kernel's limit for one argument, its final NUL included (128 KiB).
MAX_ARGUMENT = 131_071
#: The command of an agent that is a module of ralph's own: the Python that runs ralph.
PYTHON = "{python}"


class Delivery(StrEnum):
    """How the prompt gets to the agent."""

    STDIN = "stdin"
    ARGUMENT = "argument"
    FILE = "file"  # `{prompt_file}` in args, or appended


class SessionFlags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to go on with the agent's own session; `{session}` is its id."""

    resume: tuple[str, ...]
    #: how to name a new one, for agents that tell their id too late or not at all
    start: tuple[str, ...] = ()
    #: the tokens it tells after a resume are those of the whole session
    cumulative_usage: bool = False
    #: only the cost is
    cumulative_cost: bool = False


class Invocation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to start the agent, for the versions named (all, if none are).

    In `args`, `{approve}`, `{model}`, `{session}` and `{tools}` stand for the flags of those names, or for nothing;
    what has no place in it is appended.
    """

    args: tuple[str, ...] = ()
    prompt: Delivery = Delivery.STDIN
    #: in front of the prompt (or its file), as `-p`
    prompt_flag: str | None = None
    transcript: str = "plain"
    #: like `>=0.50,<1`
    versions: str = ""
    #: only if the agent's `--help` mentions this, where a version number does not tell
    help_mentions: str | None = None
    help_args: tuple[str, ...] = ("--help",)
    env: dict[str, str] = {}
    #: the same, but what the user has set stays
    env_unless_set: dict[str, str] = {}
    pty: bool = False
    #: where these versions differ from the agent's others
    session: SessionFlags | None = None
    approve: tuple[str, ...] | None = None


class VersionProbe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    args: tuple[str, ...] = ("--version",)
    pattern: str = r"(\d+\.\d+(?:\.\d+)*)"
    minimum: str | None = None
    #: what the adapter and the flags were tried with
    tested: tuple[str, ...] = ()


class ToolFlags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to restrict the tools: `{tools}` is the list; with `{tool}` the flags are given once a tool.

    `names` are those it knows, if they are known; `Bash(git *)` is Bash with arguments.
    """

    allow: tuple[str, ...]
    names: tuple[str, ...] = ()
    separator: str = ","


class AgentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    #: programs to look for, in order; `{python}` is the one that runs ralph, which is always there
    commands: tuple[str, ...]
    invocation: tuple[Invocation, ...]
    aliases: tuple[str, ...] = ()
    #: how to get it, in one line
    install: str = ""
    link: str = ""
    #: place in the order of auto-detection; agents without one are used only when they are named
    detect: int | None = None
    version: VersionProbe = VersionProbe()
    #: flags that let it work without asking; left out where the tools are restricted
    approve: tuple[str, ...] = ()
    #: `{model}` is the model
    model: tuple[str, ...] = ()
    model_required: bool = False
    session: SessionFlags | None = None
    tools: ToolFlags | None = None
    #: variables that carry its login, and files below HOME that do
    login_env: tuple[str, ...] = ()
    login_files: tuple[str, ...] = ()
    #: variables without which it cannot work, each with what it holds: a run is refused where one is missing
    needs_env: dict[str, str] = {}
    #: variables that must not reach it
    unset_env: tuple[str, ...] = ()
    #: what its output tells, beyond words: thinking, tools, usage, cost, session
    tells: tuple[str, ...] = ()
    idle_timeout: float | None = None
    wall_timeout: float | None = None
    #: for agents that wait for a login for ever: nothing at all within this time is the end
    first_output_timeout: float | None = None
    #: how long it may live on after its own last word
    linger: float | None = 30.0
    #: what a user should know, shown by `ralph doctor`
    notes: tuple[str, ...] = ()
