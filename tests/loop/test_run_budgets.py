"""Budgets and usage while an agent works: real recordings, whose agent never gets beyond its first answer."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loop.conftest import Ran, ai, rtf1
from ralph.agents import adapters
from ralph.judging.observe import Observation
from ralph.judging.signals import Markers
from ralph.judging.usage import known_total

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Run = Callable[..., Ran]
    Ralph = Callable[..., subprocess.CompletedProcess[str]]

FIXTURES = Path(__file__).parent.parent / "fixtures"
#: Every format that reports usage before the end of a run.
RECORDINGS = {
    "amp": "amp/0.0.1767830505/stream-json-success.jsonl",
    "claude": "claude/2.1.325/stream-json-success.jsonl",
    "claude-partial": "claude/2.1.325/partial-success.jsonl.gz",
    "cline": "cline/3.0.65/json-success.jsonl",
    "codex-0.36": "codex/0.36.0/json-success.jsonl",
    "kimi-cli": "kimi-cli/1.51.0/text-success.txt",
    "opencode": "opencode/1.18.33/json-success.jsonl",
    "pi": "pi/0.73.1/json-success.jsonl.gz",
    "qwen": "qwen/0.24.4/stream-json-success.jsonl",
}
#: Ends only if somebody ends it.
HANG = "exec sleep 60"
#: what an unlucky night does, at the moment we want
KILL = 'kill -9 $(sed -n \'s/.*"pid": *\\([0-9]*\\).*/\\1/p\' "$RALPH_RUN_DIR/run.json"); sleep 30'


class FirstAnswer:
    """A recording up to the first line that reports usage."""

    def __init__(self, name: str, folder: Path) -> None:
        path = FIXTURES / RECORDINGS[name]
        self.transcript = path.parent.parent.name
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        adapter, seen = adapters.create(self.transcript, prompt=None), Observation(Markers())
        self._file = folder / "first-answer"
        with self._file.open("wb") as file:
            for line in data.split(b"\n"):
                file.write(line + b"\n")
                seen.feed(adapter.feed(line.decode()))
                if known_total(seen.usage):
                    break
        assert seen.result is None, "this format reports usage only at its end"
        self.tokens = known_total(seen.usage) or 0

    def then(self, *script: str) -> str:
        return "\n".join([f"cat {shlex.quote(str(self._file))}", *script])

    def check(self, usage: dict[str, Any]) -> None:
        assert usage["at_least"] is True
        assert usage.get("total_tokens", usage["prompt_tokens"] + usage["completion_tokens"]) == self.tokens


@pytest.fixture(params=RECORDINGS)
def answer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FirstAnswer:
    return FirstAnswer(request.param, tmp_path_factory.mktemp("recording"))


@pytest.fixture
def claude(tmp_path_factory: pytest.TempPathFactory) -> FirstAnswer:
    return FirstAnswer("claude", tmp_path_factory.mktemp("recording"))


def test_a_token_ceiling_ends_the_iteration_that_passes_it(run: Run, answer: FirstAnswer) -> None:
    limit = str(answer.tokens - 1)
    ran = run(answer.then(HANG), "--transcript", answer.transcript, "--max-tokens", limit, timeout=45)
    assert (ran.code, ran.outcomes) == (2, ["interrupted"]), ran.out + ran.err
    answer.check(ran.iterations[0]["usage"])
    answer.check(ran.end["usage"])
    assert ran.end["reason"] == f"at least {answer.tokens:,} tokens were used (limit {answer.tokens - 1:,})"
    assert f"≥ {answer.tokens:,} tokens" in ran.end["summary"]["Tokens"]
    assert "incomplete in 1 of 1 iteration" in ran.end["summary"]["Tokens"]


def test_an_iteration_that_a_deadline_ends_keeps_what_was_seen(run: Run, answer: FirstAnswer) -> None:
    ran = run(answer.then(HANG), "--transcript", answer.transcript, "--wall-timeout", "2s", "1", timeout=45)
    assert ran.outcomes == ["timeout_wall"], ran.out + ran.err
    answer.check(ran.iterations[0]["usage"])
    assert f"≥ {answer.tokens:,} tokens" in ran.out


def test_what_was_seen_before_ralph_died_counts_when_the_run_is_resumed(
    run: Run, ralph: Ralph, repo: Path, claude: FirstAnswer
) -> None:
    assert run(claude.then(KILL), "--transcript", "claude", "3").code == -9
    ran = Ran(ralph("run", "--resume", "--max-tokens", str(claude.tokens)), repo)
    assert ran.code == 2, ran.out + ran.err
    claude.check(ran.iterations[0]["usage"])
    assert ran.end["reason"] == (
        f"at least {claude.tokens:,} tokens were used (limit {claude.tokens:,}): raise the limit to continue"
    )


def test_a_run_that_died_has_used_at_least_what_its_iterations_used(run_rtf1: Run, ralph: Ralph) -> None:
    usage = rtf1("usage", usage={"prompt_tokens": 1000, "completion_tokens": 1})
    assert run_rtf1(f"{usage}\n[ $RALPH_ITERATION = 1 ] && exit\n{KILL}", "3").code == -9
    assert " ≥ 1,001 tokens" in ralph("runs").stdout


def test_the_cost_is_computed_while_the_agent_works(run: Run, repo: Path, claude: FirstAnswer) -> None:
    table = repo.parent / f"{repo.name}-prices.toml"
    table.write_text('["*"]\ninput = 1000\noutput = 1000\n')  # a tenth of a cent for each token
    ran = run(
        claude.then(HANG), "--transcript", "claude", "--max-cost", "1", env={"RALPH_PRICES": str(table)}, timeout=45
    )
    assert (ran.code, ran.outcomes) == (2, ["interrupted"]), ran.out + ran.err
    assert ran.end["cost"]["usd"] == pytest.approx(claude.tokens / 1000)
    assert ran.end["cost"]["at_least"] is True
    assert ran.end["summary"]["Cost"].startswith(f"≥ ${claude.tokens / 1000:.4f} (by price table")
    assert ran.end["reason"].startswith("the cost has reached at least $")


def test_a_total_below_what_the_messages_reported_lets_the_run_continue(run_rtf1: Run) -> None:
    script = "\n".join(
        [
            rtf1("usage", usage={"prompt_tokens": 500, "completion_tokens": 600, "interim": True}),
            rtf1("usage", usage={"prompt_tokens": 500, "completion_tokens": 100}),
            "sleep 3",
            ai("<promise>COMPLETE</promise>"),
        ]
    )
    ran = run_rtf1(script, "--max-tokens", "1000")
    assert (ran.code, ran.end["usage"]["total_tokens"]) == (0, 600)
    assert "at_least" not in ran.end["usage"]


def test_unknown_and_lower_bounds_are_listed_as_such(
    run: Run, ralph: Ralph, run_rtf1: Run, claude: FirstAnswer
) -> None:
    run(ai("nothing is known"), "1")
    run_rtf1(rtf1("usage", usage={"prompt_tokens": 1000, "completion_tokens": 1}), "1")
    run(claude.then(HANG), "--transcript", "claude", "--wall-timeout", "2s", "1")
    unknown, known, lower = ralph("runs").stdout.splitlines()
    assert "tokens unknown" in unknown
    assert " 1,001 tokens" in known
    assert f" ≥ {claude.tokens:,} tokens" in lower
    rows = [json.loads(line)["usage"] for line in ralph("runs", "--json").stdout.splitlines()]
    assert rows[0] is None
    assert (rows[1]["total_tokens"], rows[1].get("at_least")) == (1001, None)
    assert (rows[2]["total_tokens"], rows[2]["at_least"]) == (claude.tokens, True)
    assert f"≥ {claude.tokens:,} tokens" in ralph("show").stdout
