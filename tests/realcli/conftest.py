"""Whole loops of `ralph run` with a real CLI and a scripted model behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from roster import RealAgent, chosen

from processes import MARK, nothing_left_behind
from ralph.testing.model import FakeModel, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ralph.testing.model.script import Scenario

#: Longer than any CLI takes with our settings; after this time a hang fails the test.
BOUND = 150


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "real" in metafunc.fixturenames:
        agents = chosen(os.environ.get("REALCLI_AGENTS"))
        metafunc.parametrize("real", [pytest.param(a, id=a.folder, marks=_marks(a)) for a in agents])


def _marks(agent: RealAgent) -> list[pytest.MarkDecorator]:
    """A CLI with a fixed port runs only once at a time (`--dist loadgroup`)."""
    return [pytest.mark.xdist_group(agent.folder)] if agent.alone else []


class Loop:
    """The result of a run."""

    def __init__(self, workdir: Path, code: int, shown: str, requests: list[Request]) -> None:
        self.workdir = workdir
        self.code = code
        self.shown = shown
        self.requests = requests

    @property
    def iterations(self) -> list[dict[str, Any]]:
        lines = (self.workdir / ".ralph" / "latest" / "events.jsonl").read_bytes().split(b"\n")
        events = [json.loads(line) for line in lines if line]
        return [e["meta"] for e in events if e["type"] == "meta" and e["meta"].get("kind") == "iteration_end"]

    @property
    def prompts(self) -> list[str]:
        """The prompts that reached the model, from the agent's main requests."""
        return [r.prompt for r in self.requests if r.main]


class Bench:
    """A repository, an isolated HOME, and one CLI."""

    def __init__(self, real: RealAgent, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.real = real
        self.workdir = repo
        self._monkeypatch = monkeypatch

    def command(self, *flags: str) -> list[str]:
        model = ["--model", self.real.model] if self.real.model else []
        return [sys.executable, "-m", "ralph", "run", "--agent", self.real.agent, *model, *flags]

    def environment(self, model: FakeModel) -> dict[str, str]:
        home = Path(os.environ["HOME"])
        return os.environ | {"PATH": self.real.path} | self.real.prepare(home, model.url)

    def run(self, scenario: str | Scenario, *flags: str, prompt: str | None = None) -> Loop:
        """Runs a whole loop and checks that it leaves no process behind."""
        if prompt is not None:
            (self.workdir / "PROMPT.md").write_text(prompt)
        with self.model(scenario) as model, nothing_left_behind(self._monkeypatch):
            done = subprocess.run(
                self.command(*flags),
                cwd=self.workdir,
                env=self.environment(model),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=BOUND,
                check=False,
            )
            return Loop(self.workdir, done.returncode, done.stdout + done.stderr, model.requests)

    @contextmanager
    def model(self, scenario: str | Scenario) -> Iterator[FakeModel]:
        with FakeModel(scenario, directory=self.workdir) as model:
            yield model


@pytest.fixture
def bench(real: RealAgent, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    if not real.bin.is_dir():
        pytest.fail(f"{real.folder} is not installed here: run `make realcli AGENTS={real.agent}`")
    for name in list(os.environ):
        if name.startswith(
            ("ANTHROPIC_", "CLAUDE", "OPENAI_", "GEMINI_", "GOOGLE_", "CODEX_", "OPENCODE", "COPILOT_", "GOOSE_")
        ):
            monkeypatch.delenv(name)
    assert MARK not in os.environ
    return Bench(real, repo, monkeypatch)
