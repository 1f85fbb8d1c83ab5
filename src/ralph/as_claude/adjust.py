"""Adjusts a launch to Claude's flags. What the agent cannot do is an error or is named; nothing is lost silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.agents.compose import arguments, effort_flags
from ralph.errors import UsageError

if TYPE_CHECKING:
    from ralph.agents.spec import SessionFlags
    from ralph.as_claude.flags import Asked
    from ralph.launching.launch import Launch

#: Flags that decide what Claude may do. With one of them, it must not skip its permissions unless that was asked for.
_PERMISSIONS = frozenset({"--allowedTools", "--allowed-tools", "--permission-mode", "--restricted"})


class Adjusted(msgspec.Struct, frozen=True):
    launch: Launch
    #: what was asked for and is not done, for the user
    ignored: tuple[str, ...] = ()
    #: the result may have the usage or the cost of earlier runs in it
    whole_usage: bool = False
    whole_cost: bool = False


def adjust(launch: Launch, asked: Asked) -> Adjusted:
    """The launch that does what these flags ask for. UsageError if the session cannot be resumed."""
    flags, ignored = _effort(launch, asked.effort)
    if launch.agent == "claude":
        flags += [word for flag in asked.others for word in flag.words]
        for text, is_file in asked.system:
            flags += ["--append-system-prompt-file" if is_file else "--append-system-prompt", text]
        if not asked.skip_permissions and any(flag.name in _PERMISSIONS for flag in asked.others):
            launch = _with_approve(launch, ())
    else:
        ignored += [" ".join(flag.words) for flag in asked.others]
    launch = _with_flags(launch, "{model}", flags)
    if asked.resume is None and not asked.continue_last:
        return Adjusted(launch, tuple(ignored))
    session = _session(launch, asked)
    if asked.resume is None:
        launch = _with_flags(launch, "{session}", list(session.last))
    return Adjusted(launch, tuple(ignored), session.cumulative_usage, session.cumulative_cost)


def with_sandbox(launch: Launch, mode: str) -> Launch:
    """The same launch of Codex, but in a sandbox."""
    return _with_approve(launch, ("--sandbox", mode))


def _session(launch: Launch, asked: Asked) -> SessionFlags:
    """How the agent resumes sessions. A fresh one instead would work without everything it is meant to know."""
    flags = (launch.invocation.session or launch.spec.session) if launch.spec else None
    if asked.resume == "":
        raise UsageError("--resume needs the ID of a session")
    if flags is None:
        raise UsageError(f"{launch.title} cannot resume a session: leave out --resume and --continue")
    if asked.resume is None and not flags.last:
        raise UsageError(
            f"{launch.title} cannot resume its latest session: name the session with --resume ID (the result of each "
            "run has its session_id)"
        )
    return flags


def _effort(launch: Launch, level: str | None) -> tuple[list[str], list[str]]:
    """The agent's flags for an effort, or the flag in the list of those that are ignored."""
    if level is None:
        return [], []
    flags = effort_flags(launch.spec, level) if launch.spec else []
    return (flags, []) if flags else ([], [f"--effort {level}"])


def _with_flags(launch: Launch, before: str, flags: list[str]) -> Launch:
    """With more flags, at the place where the agent expects them."""
    if not flags or launch.spec is None:
        return launch
    given = launch.invocation.args
    at = given.index(before) if before in given else len(given)
    return _recomposed(launch, args=(*given[:at], *flags, *given[at:]))


def _with_approve(launch: Launch, approve: tuple[str, ...]) -> Launch:
    return launch if launch.spec is None else _recomposed(launch, approve=approve)


def _recomposed(launch: Launch, **changes: tuple[str, ...]) -> Launch:
    assert launch.spec is not None
    invocation = msgspec.structs.replace(launch.invocation, **changes)
    settings = launch.settings
    flags = arguments(launch.spec, invocation, model=settings.model, tools=settings.allowed_tools)
    return msgspec.structs.replace(launch, invocation=invocation, base=[launch.base[0], *flags])
