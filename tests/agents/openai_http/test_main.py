"""Whole loops: `ralph run --agent openai-http`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agents.openai_http.byteserver import DONE, HANG, ByteServer, delta, environment, head, refusal
from processes import eventually, nothing_left_behind
from ralph.testing.model import FakeModel, Scenario, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Serve = Callable[..., ByteServer]

MARKER = "<promise>COMPLETE</promise>"


class Run:
    """`ralph run` in a repository. `end` is the end of the first iteration in its journal."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo

    def __call__(self, url: str | None, *flags: str, model: str | None = "m") -> subprocess.CompletedProcess[str]:
        changes = {"OPENAI_BASE_URL": url} if url else {}
        return subprocess.run(
            self.command(*flags, model=model),
            cwd=self.repo,
            env=environment(**changes),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
            check=False,
        )

    def command(self, *flags: str, model: str | None = "m") -> list[str]:
        named = ["--model", model] if model else []
        return [sys.executable, "-m", "ralph", "run", "--agent", "openai-http", *named, *flags]

    @property
    def end(self) -> dict[str, Any]:
        events = (self.repo / ".ralph" / "latest" / "events.jsonl").read_text().splitlines()
        metas = [e["meta"] for e in map(json.loads, events) if e["type"] == "meta"]
        found: dict[str, Any] = next(m for m in metas if m["kind"] == "iteration_end")
        return found


@pytest.fixture
def run(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("RALPH_LIMIT_RETRIES", "1")  # here a server that refuses keeps refusing
    monkeypatch.setenv("RALPH_RETRY_DELAY", "0.1")
    with nothing_left_behind(monkeypatch):
        yield Run(repo)


def answers(*turns: str, thinking: str = "") -> Scenario:
    return Scenario("only words", tuple(Turn(text, thinking) for text in turns), without_tools=True)


def test_a_run_completes_with_the_second_answer(serve: Serve, run: Run) -> None:
    server = serve(
        [head(), delta(reasoning=MARKER), delta(content="One thing is left."), delta("stop"), DONE],
        [head(), delta(content="All is well.\n<promise>COM"), delta(content="PLETE</promise>\n"), delta("stop"), DONE],
    )
    done = run(server.url, "5")
    assert done.returncode == 0, done.stdout
    assert f"THINK   {MARKER}" in done.stdout
    assert "AI      One thing is left." in done.stdout
    assert "━━━ Iteration 2 of 5 ━━━" in done.stdout
    assert [q.asked["messages"][0]["content"].endswith("Do the work.\n") for q in server.questions] == [True, True]


def test_with_the_scripted_model(run: Run) -> None:
    with FakeModel(answers(f"Nothing to do.\n\n{MARKER}\n", thinking="Look first.")) as model:
        done = run(f"{model.url}/v1", "3")
        assert len(model.requests) == 1
    assert done.returncode == 0, done.stdout
    assert "THINK   Look first." in done.stdout
    assert "1,200 in · 105 out · 1,305 tokens" in done.stdout
    assert run.end["outcome"] == "ok"


@pytest.mark.parametrize(
    ("status", "body", "outcome", "code"),
    [
        ("401 Unauthorized", {"error": {"message": "Wrong key"}}, "auth", 5),
        ("402 Payment Required", {"error": {"message": "Add credits"}}, "quota", 5),
        ("429 Too Many Requests", {"error": {"message": "Slow down"}}, "rate_limited", 1),
        ("500 Internal Server Error", {"error": {"message": "Oops"}}, "overloaded", 1),
        ("400 Bad Request", {"error": {"message": "x", "code": "context_length_exceeded"}}, "context_exceeded", 1),
    ],
)
def test_refusals_become_outcomes(serve: Serve, run: Run, status: str, body: object, outcome: str, code: int) -> None:
    done = run(serve(refusal(status, body)).url, "--max-failures", "1")
    assert (done.returncode, run.end["outcome"]) == (code, outcome)


def test_an_incomplete_answer_does_not_complete_a_run(serve: Serve, run: Run) -> None:
    done = run(serve([head(), delta(content=f"{MARKER}\n")]).url, "--max-failures", "1")
    assert (done.returncode, run.end["outcome"]) == (1, "failed")
    assert "the answer is incomplete" in done.stdout


def test_an_empty_answer_is_an_empty_iteration(serve: Serve, run: Run) -> None:
    done = run(serve([head(), delta("stop"), DONE]).url, "--max-failures", "1")
    assert (done.returncode, run.end["outcome"]) == (1, "empty")


@pytest.mark.parametrize("answer", [[HANG], [head(), delta(content="I beg"), HANG]])
def test_the_idle_timeout_ends_a_request_that_hangs(serve: Serve, run: Run, answer: list[bytes | float]) -> None:
    done = run(serve(answer).url, "--idle-timeout", "1", "--max-failures", "1")
    assert (done.returncode, run.end["outcome"]) == (1, "timeout_idle")


def test_a_slow_line_is_not_idle(serve: Serve, run: Run) -> None:
    trickle = [x for _ in range(20) for x in (delta(content="word "), 0.25)]
    done = run(serve([head(), *trickle, delta(content=f"\n{MARKER}"), delta("stop"), DONE]).url, "--idle-timeout", "3")
    assert (done.returncode, run.end["outcome"]) == (0, "ok")


def test_ctrl_c_ends_a_run_in_the_middle_of_an_answer(serve: Serve, run: Run) -> None:
    server = serve([head(), delta(content="I beg\nto"), HANG])
    with subprocess.Popen(
        run.command(), cwd=run.repo, env=environment(OPENAI_BASE_URL=server.url), stdout=subprocess.DEVNULL
    ) as ralph:
        raw = run.repo / ".ralph" / "latest" / "iterations" / "0001" / "stdout.raw"
        assert eventually(lambda: raw.exists() and b"I beg" in raw.read_bytes())
        ralph.send_signal(signal.SIGINT)
        assert ralph.wait(20) == 130


def test_nothing_runs_without_an_address_or_a_model(run: Run) -> None:
    done = run(None)
    assert done.returncode == 64
    assert "needs the environment variable OPENAI_BASE_URL: set it to the endpoint" in done.stderr
    done = run("http://127.0.0.1:1/v1", model=None)
    assert done.returncode == 64
    assert "set one with --model NAME" in done.stderr
    assert not (run.repo / ".ralph" / "runs").exists()


def test_the_module_alone_needs_an_address() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ralph.agents.openai_http", "--model", "m"],
        stdin=subprocess.DEVNULL,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64
    assert "OPENAI_BASE_URL is not set: set it to the endpoint" in done.stdout


def test_modules_in_the_working_directory_are_not_imported(serve: Serve, run: Run) -> None:
    for name in ("json", "ssl", "ralph", "socket"):
        (run.repo / f"{name}.py").write_text("raise SystemExit(99)\n")
    server = serve([head(), delta(content=MARKER), delta("stop"), DONE])
    started = subprocess.run(
        [sys.executable, "-P", *run.command("1")[1:]],
        cwd=run.repo,
        env=environment(OPENAI_BASE_URL=server.url),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert started.returncode == 0
