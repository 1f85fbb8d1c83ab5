"""Sends one tiny prompt to a real agent, in the same way as a run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config.settings import Ui
from ralph.launching.prompt import PromptSource
from ralph.planning.approvals import items_to_approve
from ralph.planning.prepare import prepare_launch
from ralph.system import short
from ralph.system.programs import which
from ralph.transcripts.events import Meta, Tag, Text
from ralph.transcripts.meta import Kind
from ralph.trust.approval import required

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.config.layers import Resolved
    from ralph.launching.launch import Launch
    from ralph.loop.screen import Screen, Status
    from ralph.planning.settle import Settled
    from ralph.transcripts.events import TranscriptEvent

    Run = Callable[[Launch, PromptSource, Screen], int]

PROMPT = "Reply with the single word: ready"
DEADLINE = 180.0
_TEXT_KEPT = 400


class Live(msgspec.Struct, frozen=True):
    """The agent's answer."""

    agent: str
    version: str | None
    ok: bool
    outcome: str
    why: str
    text: str
    session_id: str | None
    usage: dict[str, Any] | None
    exit: int | None
    seconds: float
    #: what its output should report (session, usage) but did not
    missing: list[str]
    #: the last messages of the program itself, if something went wrong
    messages: list[str]


class _Collector:
    """A screen that collects the events."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.system: list[str] = []
        self.iteration: dict[str, Any] = {}
        self.end: dict[str, Any] = {}

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        for event in events:
            match event:
                case Text(tag=Tag.AI, text=text):
                    self.text.append(text)
                case Text(tag=Tag.SYS, text=text):
                    self.system = [*self.system[-20:], text]
                case Meta(meta=fields) if fields.get("kind") == Kind.ITERATION_END:
                    self.iteration = fields
                case Meta(meta=fields) if fields.get("kind") == Kind.RUN_END:
                    self.end = fields

    def status(self, status: Status) -> None:
        pass

    def close(self) -> None:
        pass


def ask(settled: Settled, agent: str | None, run: Run, deadline: float = DEADLINE) -> Live:
    """Asks the agent. UsageError if it cannot be started. `run` starts a launch as `ralph run` does."""
    with tempfile.TemporaryDirectory(prefix="ralph-doctor-", ignore_cleanup_errors=True) as folder:
        workdir = Path(folder).resolve()
        _make_repository(workdir)
        resolved = _for_one_answer(settled.resolved, agent, deadline)
        trust = required(settled.trust, items_to_approve(resolved, workdir))
        launch = prepare_launch(resolved, workdir, trust)
        screen = _Collector()
        run(launch, PromptSource(PROMPT, None, "ralph doctor"), screen)
        return _result(launch, screen)


def _for_one_answer(resolved: Resolved, agent: str | None, deadline: float) -> Resolved:
    """The user's settings, changed to a single iteration without checks."""
    settings = msgspec.structs.replace(
        resolved.settings,
        max_iterations=1,
        max_runtime=0.0,
        max_failures=1,
        idle_timeout=deadline,
        wall_timeout=deadline,
        sleep=0.0,
        verify=(),
        allowed_paths=(),
        confirmations=1,
        interactive=False,
        continue_session=False,
        ui=Ui.QUIET,
    )
    origins = resolved.origins | dict.fromkeys(("idle_timeout", "wall_timeout"), "--live")
    if agent is not None and agent != settings.agent:
        settings = msgspec.structs.replace(settings, agent=agent, agent_cmd=None, command=None)
    return msgspec.structs.replace(resolved, settings=settings, origins=origins)


def _make_repository(folder: Path) -> None:
    """Some agents refuse to work outside a git repository. Without git, we ask anyway."""
    git = which("git")
    if git is None:
        return
    try:
        short.run([git, "init", "-q", str(folder)], timeout=30)
    except OSError:
        pass


def _result(launch: Launch, screen: _Collector) -> Live:
    seen = screen.iteration
    text = "\n".join(screen.text).strip()
    outcome = seen.get("outcome", "failed")
    ok = outcome == "ok" and bool(text)
    reported = {"session": seen.get("session_id"), "usage": seen.get("usage")}
    return Live(
        agent=launch.agent,
        version=launch.version,
        ok=ok,
        outcome=outcome,
        why=seen.get("why") or screen.end.get("reason", ""),
        text=text[:_TEXT_KEPT],
        session_id=seen.get("session_id"),
        usage=seen.get("usage"),
        exit=seen.get("exit"),
        seconds=seen.get("seconds", 0.0),
        missing=[name for name, value in reported.items() if ok and launch.spec and name in launch.tells and not value],
        messages=[] if ok else screen.system[-8:],
    )
