"""Decides what a request is answered with. Pure: the same request always gets the same turn."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ralph.testing.model.exchange import ModelRequest, Reply
from ralph.testing.model.script import Cut, Fault, Refuse, Scenario, Turn, When, usage_of
from ralph.testing.model.tools import call_for, sample


@dataclass(frozen=True)
class Director:
    """A scenario, and the directory where its files are written."""

    scenario: Scenario
    directory: str | None = None

    def is_main(self, asked: ModelRequest) -> bool:
        """Whether this is the agent's own work. Requests for titles, routers and summaries offer no tools."""
        return bool(asked.tools) or self.scenario.without_tools

    def step(self, asked: ModelRequest) -> int:
        return self.scenario.step(asked.results) if self.is_main(asked) else 0

    def fault(self, asked: ModelRequest, main_requests: int) -> Fault | None:
        """What goes wrong with this request. `main_requests` counts the agent's own requests, with this one."""
        match self.scenario.fault:
            case Refuse(when=When.FIRST) as refuse:
                return refuse if self.is_main(asked) and main_requests == 1 else None
            case Cut() as cut:
                return cut if self.is_main(asked) else None
            case fault:
                return fault

    def reply(self, asked: ModelRequest) -> Reply:
        step = self.step(asked)
        turn = self.scenario.turns[step] if self.is_main(asked) else Turn(_aside(asked))
        calls = tuple(call_for(act, asked.tools, self.directory) for act in turn.acts)
        return Reply(asked.model, turn.thinking, turn.text, calls, usage_of(step))


def _aside(asked: ModelRequest) -> str:
    return json.dumps(sample(asked.schema)) if asked.schema else "A scripted session"
