"""Going on with the agent's own session from one iteration to the next (`--continue-session`)."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.launching.launcher import SessionMode
from ralph.loop.state import Session
from ralph.transcripts.events import Usage, decode_json

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.judging.judge import Verdict
    from ralph.launching.launch import Launch
    from ralph.launching.launcher import Launcher

#: How much of a recording is searched for an id that no event told.
_SEARCHED = 4 << 20


class Ticket(msgspec.Struct, frozen=True):
    """What the next command line says about a session."""

    session: str | None = None
    resume: bool = False


class Sessions:
    """Which session the next iteration belongs to: none, a new one that we name, or the last one again."""

    def __init__(self, mode: SessionMode, expiry: float, now: float | None = None) -> None:
        self._mode = mode
        self._expiry = expiry
        self._session: str | None = None
        #: the usage that the agent told last, of the session that is gone on with
        self.told: Usage | None = None
        self._since = time.monotonic() if now is None else now

    def saved(self) -> Session:
        """As it can be written down: times of the day outlive the process."""
        age = time.monotonic() - self._since
        return Session(self._session, round(time.time() - age, 3), self.told) if self._session else Session()

    def go_on(self, session: Session) -> None:
        """With one of another process."""
        if session.id is not None and self._mode is not SessionMode.FRESH:
            self._session, self.told = session.id, session.told
            self._since = time.monotonic() - max(0.0, time.time() - session.since)

    def next(self, now: float | None = None) -> Ticket:
        if self._mode is SessionMode.FRESH:
            return Ticket()
        moment = time.monotonic() if now is None else now
        if self._session is not None and self._expiry and moment - self._since > self._expiry:
            self._session = None  # too old: what it knew may not be true any more
        if self._session is not None:
            return Ticket(self._session, resume=True)
        self._since = moment
        return Ticket(str(uuid.uuid4())) if self._mode is SessionMode.NAME else Ticket()

    def after(self, ticket: Ticket, found: str | None, verdict: Verdict) -> None:
        """Remembers the session for the next time; a resumed one that failed is given up."""
        if ticket.resume and verdict.outcome.value in ("failed", "empty", "context_exceeded", "not_found"):
            self._session = None
            return
        self._session = found or ticket.session


def told_again(launch: Launch, told: Usage | None) -> Usage | None:
    """Of what a session told until now, that which it will tell once more when it is gone on with."""
    flags = launch.invocation.session or (launch.spec.session if launch.spec else None)
    if told is None or flags is None:
        return None
    if flags.cumulative_usage:
        return told
    return Usage(cost_usd=told.cost_usd) if flags.cumulative_cost else None


def session_of(launcher: Launcher | None, told: str | None, stdout: Path) -> str | None:
    """The chain: the convention's own way, what the adapter or the raw output tells, the last resort."""
    own = launcher.find_session(stdout) if launcher else None
    return own or told or find_session_id(stdout) or (launcher.fallback_session(stdout) if launcher else None)


def find_session_id(recording: Path) -> str | None:
    """An id that stands in the raw output: `sessionId`, `metadata.session_id`, `session_id`, Codex's `thread_id`."""
    try:
        with recording.open("rb") as file:
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
