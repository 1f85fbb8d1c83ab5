"""Continuing the agent's own session from one iteration to the next (`--continue-session`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.judging.judge import Outcome
from ralph.launching.launcher import SessionMode
from ralph.system.files import open_regular
from ralph.transcripts.events import Usage, decode_json

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.judging.judge import Verdict
    from ralph.launching.launch import Launch
    from ralph.launching.launcher import Launcher

#: How much of a recording is searched for an id that no event carried.
_SEARCHED = 4 << 20
#: A resumed session that ends like this is not resumed again.
_ABANDONED = frozenset({Outcome.FAILED, Outcome.EMPTY, Outcome.CONTEXT_EXCEEDED, Outcome.NOT_FOUND})


class Session(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent's own session, as far as the next iteration needs it."""

    id: str | None = None
    #: when it began, seconds since the epoch
    since: float = 0.0
    #: the usage that the agent reported last
    reported: Usage | None = None


class SessionRequest(msgspec.Struct, frozen=True):
    """What a command line says about a session: nothing, a new one that we name, or one to resume."""

    id: str | None = None
    resume: bool = False


def next_request(mode: SessionMode, session: Session, expiry: float, now: float) -> SessionRequest:
    """For the next iteration, after `session`. `expiry` 0: a session never gets too old."""
    if mode is SessionMode.FRESH:
        return SessionRequest()
    expired = bool(expiry) and now - session.since > expiry  # what it knew may no longer be true
    if session.id is not None and not expired:
        return SessionRequest(session.id, resume=True)
    import uuid  # late: it takes milliseconds, and few agents need a name

    return SessionRequest(str(uuid.uuid4())) if mode is SessionMode.NAME else SessionRequest()


def session_after(
    session: Session,
    request: SessionRequest,
    found: str | None,
    verdict: Verdict,
    reported: Usage | None,
    started: float,
) -> Session:
    """The session to resume next time; one without an id if there is none.

    `found` is the id in the agent's output, `reported` its usage, `started` when the iteration began.
    """
    if request.resume and verdict.outcome in _ABANDONED:
        return Session()
    new = found or request.id
    if new is None:
        return Session()
    if request.resume:
        return Session(new, session.since, reported or session.reported)
    return Session(new, started, reported)


def repeated_usage(launch: Launch, reported: Usage | None) -> Usage | None:
    """The part of a session's usage that the agent will report once more when the session is resumed."""
    flags = launch.invocation.session or (launch.spec.session if launch.spec else None)
    if reported is None or flags is None:
        return None
    if flags.cumulative_usage:
        return reported
    return Usage(cost_usd=reported.cost_usd) if flags.cumulative_cost else None


def find_session(launcher: Launcher | None, reported: str | None, stdout: Path) -> str | None:
    """Tries in order: the launcher's own way, the adapter, the raw output, the launcher's fallback."""
    own = launcher.find_session(stdout) if launcher else None
    return own or reported or find_session_id(stdout) or (launcher.fallback_session(stdout) if launcher else None)


def find_session_id(recording: Path) -> str | None:
    """An id in the raw output: `sessionId`, `metadata.session_id`, `session_id`, Codex's `thread_id`."""
    try:
        with open_regular(recording) as file:
            lines = file.read(_SEARCHED).split(b"\n")
    except OSError:
        return None
    found: dict[str, str] = {}
    for line in lines:
        if not line.startswith(b"{") or (b"ession" not in line and b"thread_id" not in line):
            continue
        try:
            value = decode_json(line)
        except (ValueError, RecursionError):
            continue
        for name, candidate in _candidates(value):
            if isinstance(candidate, str) and candidate:
                found.setdefault(name, candidate)
    return next((found[name] for name in ("sessionId", "metadata", "session_id", "thread_id") if name in found), None)


def _candidates(value: dict[str, Any]) -> list[tuple[str, Any]]:
    metadata = value.get("metadata")
    return [
        ("sessionId", value.get("sessionId")),
        ("metadata", metadata.get("session_id") if isinstance(metadata, dict) else None),
        ("session_id", value.get("session_id")),
        ("thread_id", value.get("thread_id") if value.get("type") == "thread.started" else None),
    ]
