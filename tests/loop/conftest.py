"""Agents that are real shell scripts, run by the real command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from processes import nothing_left_behind

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path


def rtf1(event_type: str, **fields: Any) -> str:
    """A shell command that prints one RTF1 event."""
    body = json.dumps({"type": event_type, **fields})
    return f"cat <<'RTF1'\n@@RALPH@@ {body}\nRTF1"


def ai(text: str) -> str:
    return rtf1("text", tag="AI", text=text)


def meta(kind: str, **fields: Any) -> str:
    return rtf1("meta", meta={"kind": kind, **fields})


class Ran:
    """What a run printed and wrote."""

    def __init__(self, done: subprocess.CompletedProcess[str], workdir: Path) -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        self.root = workdir / ".ralph" / "latest"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / "events.jsonl").read_bytes().splitlines()]

    def metas(self, kind: str) -> list[dict[str, Any]]:
        return [e["meta"] for e in self.events if e["type"] == "meta" and e["meta"].get("kind") == kind]

    @property
    def iterations(self) -> list[dict[str, Any]]:
        return self.metas("iteration_end")

    @property
    def outcomes(self) -> list[str]:
        return [i["outcome"] for i in self.iterations]

    @property
    def end(self) -> dict[str, Any]:
        """The last end: a resumed run has several."""
        ends = self.metas("run_end")
        assert len(ends) <= 1 + len(self.metas("run_resume"))
        return ends[-1]

    def prompt(self, iteration: int) -> str:
        return (self.root / "iterations" / f"{iteration:04d}" / "prompt.md").read_text()


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with nothing_left_behind(monkeypatch) as value:
        yield value


@pytest.fixture
def agent(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A script outside the repository, as a command for `--agent-cmd`; it can read $RALPH_ITERATION."""

    def make(*script: str) -> str:
        path = tmp_path_factory.mktemp("agent") / "agent.sh"
        path.write_text("\n".join(script) + "\n")
        return f"bash {path}"

    return make


@pytest.fixture
def run(
    ralph: Callable[..., subprocess.CompletedProcess[str]], repo: Path, agent: Callable[[str], str], mark: str
) -> Callable[..., Ran]:
    """`run("script", "flag", …)`: a whole run of a script as the agent, after which no process may be left."""

    def start(script: str, *flags: str, cwd: Path | None = None, **how: Any) -> Ran:
        done = ralph("run", "--agent-cmd", agent(script), *flags, cwd=cwd, **how)
        assert "Traceback" not in done.stderr, done.stderr
        assert "bug in ralph" not in done.stderr, done.stderr
        return Ran(done, cwd or repo)

    return start


@pytest.fixture
def run_rtf1(run: Callable[..., Ran]) -> Callable[..., Ran]:
    def start(script: str, *flags: str, **how: Any) -> Ran:
        return run(script, "--transcript", "rtf1", *flags, **how)

    return start
