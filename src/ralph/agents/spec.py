"""The schema of an agent's TOML file, which docs/how-to/add-an-agent.md explains."""

from __future__ import annotations

from enum import StrEnum

import msgspec

#: The longest argument that the kernel accepts: 128 KiB with the final NUL.
MAX_ARGUMENT = 131_071
#: The command of an agent that is part of ralph. It stands for the Python that runs ralph.
PYTHON = "{python}"


class Delivery(StrEnum):
    """How the agent receives the prompt."""

    STDIN = "stdin"
    ARGUMENT = "argument"
    FILE = "file"  # `{prompt_file}` in args, or appended


class SessionFlags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to resume the agent's own session; `{session}` is its id."""

    resume: tuple[str, ...]
    #: how to choose the id of a new session, for agents that report it too late or not at all
    start: tuple[str, ...] = ()
    #: how to resume the latest session of the working directory
    last: tuple[str, ...] = ()
    #: after a resume, it reports the tokens of the whole session
    cumulative_usage: bool = False
    #: after a resume, it reports the cost of the whole session
    cumulative_cost: bool = False


class Invocation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to start the agent, for the given versions or for all.

    In `args`, `{approve}`, `{model}`, `{session}` and `{tools}` are replaced by the flags of those names. Flags without
    a placeholder are appended.
    """

    args: tuple[str, ...] = ()
    prompt: Delivery = Delivery.STDIN
    #: the flag before the prompt or its file, such as `-p`
    prompt_flag: str | None = None
    transcript: str = "plain"
    #: a range such as `>=0.50,<1`
    versions: str = ""
    #: use this only if the agent's `--help` contains this text, where the version number is not enough
    help_mentions: str | None = None
    help_args: tuple[str, ...] = ("--help",)
    env: dict[str, str] = {}
    #: the same, but the user's own values have precedence
    env_unless_set: dict[str, str] = {}
    pty: bool = False
    #: if these versions differ from the others
    session: SessionFlags | None = None
    approve: tuple[str, ...] | None = None


class VersionProbe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    args: tuple[str, ...] = ("--version",)
    pattern: str = r"(\d+\.\d+(?:\.\d+)*)"
    minimum: str | None = None
    #: the versions that the adapter and the flags were tested with
    tested: tuple[str, ...] = ()


class ToolFlags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to restrict the tools: `{tools}` is the list; with `{tool}`, the flags are repeated for each tool.

    `names` are the agent's tools, if they are known. `Bash(git *)` is Bash with arguments.
    """

    allow: tuple[str, ...]
    names: tuple[str, ...] = ()
    separator: str = ","


class EffortFlags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to set the effort: `{effort}` is low, medium, high, xhigh or max, or what `levels` has for it."""

    flags: tuple[str, ...]
    levels: dict[str, str] = {}


class AgentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    #: programs to look for, in order; `{python}` is the Python that runs ralph
    commands: tuple[str, ...]
    invocation: tuple[Invocation, ...]
    aliases: tuple[str, ...] = ()
    #: how to install it, in one line
    install: str = ""
    link: str = ""
    #: position in the order of auto-detection; agents without one are used only by name
    detect: int | None = None
    version: VersionProbe = VersionProbe()
    #: flags that let it work without asking; not used if the tools are restricted
    approve: tuple[str, ...] = ()
    #: flags for the model; `{model}` is its name
    model: tuple[str, ...] = ()
    model_required: bool = False
    #: flags for the effort that a tool asks `ralph as-claude` for
    effort: EffortFlags | None = None
    session: SessionFlags | None = None
    tools: ToolFlags | None = None
    #: variables, and files below HOME, that hold its login
    login_env: tuple[str, ...] = ()
    login_files: tuple[str, ...] = ()
    #: required variables, each with a description; ralph refuses to run if one is missing
    needs_env: dict[str, str] = {}
    #: variables that it must not inherit
    unset_env: tuple[str, ...] = ()
    #: what its output reports besides text: thinking, tools, usage, cost, session
    tells: tuple[str, ...] = ()
    idle_timeout: float | None = None
    wall_timeout: float | None = None
    #: end the iteration if nothing at all is printed for this long, for agents that wait forever for a login
    first_output_timeout: float | None = None
    #: how many seconds it may keep running after it reported its result
    linger: float | None = 30.0
    #: hints for users, shown by `ralph doctor`
    notes: tuple[str, ...] = ()
