"""Provider limits from end to end, with agents that really run into them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loop.conftest import Ran, ai, meta, rtf1
from processes import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Ran]

MARK = "<promise>COMPLETE</promise>"


def limited(name: str = "rate_limited", ahead: float | None = None, **told: Any) -> str:
    """A script that fails with a limit. `ahead`: the limit ends this many seconds after the script runs."""
    if ahead is not None:
        event = '@@RALPH@@ {"type":"meta","meta":{"kind":"rate_limit","resets_at":%s}}\\n'
        lines = [f"printf '{event}' $(( $(date +%s) + {ahead} ))"]
    else:
        lines = [meta("rate_limit", **told)] if told else []
    return "\n".join([*lines, meta("error", message="slow down", **{"class": name}), "exit 1"])


def first(times: int, script: str, then: str = ai(MARK)) -> str:
    return f"if [ $RALPH_ITERATION -le {times} ]; then\n{script}\nfi\n{then}"


def starts(ran: Ran) -> list[float]:
    return [e["time"] for e in ran.events if e.get("meta", {}).get("kind") == "iteration_start"]


@pytest.mark.parametrize("name", ["rate_limited", "quota"])
def test_a_run_waits_for_a_reset_time_and_that_iteration_does_not_count(run_rtf1: Run, name: str) -> None:
    ran = run_rtf1(first(1, limited(name, ahead=2)), "1", "--max-failures", "1")
    assert (ran.code, ran.outcomes) == (0, [name, "ok"])
    one, two = starts(ran)
    (resets_at,) = [m["resets_at"] for m in ran.metas("rate_limit")]
    (wait,) = ran.metas("wait")
    assert wait["until"] == pytest.approx(resets_at + 1.5, abs=0.01)
    assert "slow down" in wait["why"]
    assert two >= resets_at > one
    assert two - wait["until"] < 2
    assert [i.get("counted", True) for i in ran.iterations] == [False, True]
    assert [m["n"] for m in ran.metas("iteration_start")] == [1, 2]
    assert [m["max"] for m in ran.metas("iteration_start")] == [1, 2]
    assert "waiting" in ran.out
    assert "2 (1 not counted: provider limit, pause, or cut short)" in ran.out


def test_a_reported_retry_time_is_respected(run_rtf1: Run) -> None:
    ran = run_rtf1(first(1, limited(retry_after=1)))
    assert (ran.code, ran.outcomes) == (0, ["rate_limited", "ok"])
    assert 2 <= ran.metas("wait")[0]["seconds"] <= 3


def test_without_a_time_the_pauses_double_and_then_the_run_ends(run_rtf1: Run) -> None:
    env = {"RALPH_RETRY_DELAY": "0.1", "RALPH_RETRY_DELAY_MAX": "0.3", "RALPH_LIMIT_RETRIES": "4"}
    ran = run_rtf1(limited("overloaded"), "2", "--max-failures", "1", env=env)
    assert (ran.code, ran.outcomes, ran.end["end"]) == (1, ["overloaded"] * 5, "failed")
    assert "5 iterations in a row, since iteration 1" in ran.end["reason"]
    assert "slow down" in ran.end["reason"]
    pauses = [w["seconds"] for w in ran.metas("wait")]
    assert len(pauses) == 4
    assert 0.1 <= pauses[0] <= 0.125
    assert 0.2 <= pauses[1] <= 0.25
    assert pauses[2:] == [0.3, 0.3]


def test_a_broken_stream_is_retried_like_a_busy_provider(run_rtf1: Run) -> None:
    cut = meta("error", message="stream disconnected before completion", **{"class": "failed"}) + "\nexit 1"
    ran = run_rtf1(first(2, cut), "1", "--max-failures", "1", env={"RALPH_RETRY_DELAY": "0.1"})
    assert (ran.code, ran.outcomes) == (0, ["failed", "failed", "ok"])
    assert len(ran.metas("wait")) == 2


def test_a_quota_without_a_time_needs_a_person(run_rtf1: Run) -> None:
    ran = run_rtf1(limited("quota"))
    assert (ran.code, ran.outcomes, ran.metas("wait")) == (5, ["quota"], [])
    assert "add credit" in ran.end["reason"]


def test_on_limit_stop_ends_the_run(run_rtf1: Run) -> None:
    ran = run_rtf1(limited(ahead=3600), "--on-limit", "stop")
    assert (ran.code, ran.end["end"], ran.metas("wait")) == (5, "needs_person", [])
    assert "the limit ends at" in ran.end["reason"]


def test_a_longer_wait_than_allowed_ends_the_run(run_rtf1: Run) -> None:
    ran = run_rtf1(limited(ahead=3600), "--max-wait", "30m")
    assert (ran.code, ran.metas("wait")) == (5, [])
    assert "--max-wait" in ran.end["reason"]


def test_a_wait_does_not_exceed_the_run_time_limit(run_rtf1: Run) -> None:
    ran = run_rtf1(limited(ahead=3600), "--max-runtime", "60")
    assert (ran.code, ran.end["end"], ran.metas("wait")) == (2, "limit", [])
    assert "run time limit of 1 m 00 s" in ran.end["reason"]
    assert ran.end["seconds"] < 30


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_wait_at_once(
    repo: Path, agent: Callable[[str], str], mark: str, number: int, code: int
) -> None:
    command = agent(limited(ahead=3600))
    going = subprocess.Popen(
        [sys.executable, "-m", "ralph", "run", "--agent-cmd", command, "--transcript", "rtf1"],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    events = repo / ".ralph" / "latest" / "events.jsonl"
    assert eventually(lambda: events.exists() and b'"kind":"wait"' in events.read_bytes())
    told = time.monotonic()
    going.send_signal(number)
    out, err = going.communicate(timeout=60)
    assert time.monotonic() - told < 10
    assert (going.returncode, err) == (code, "")
    assert f"exit code {code}" in out


def test_notes_for_the_next_prompt_survive_a_limit(run_rtf1: Run, repo: Path) -> None:
    """A check failed, and the iteration that should fix it ran into a limit at once."""
    script = f"if [ $RALPH_ITERATION = 2 ]; then\n{limited(retry_after=0)}\nfi\n"
    script += f"[ $RALPH_ITERATION = 3 ] && touch done.txt\n{ai(MARK)}"
    ran = run_rtf1(script, "--verify", "test -e done.txt")
    assert (ran.code, ran.outcomes) == (0, ["ok", "rate_limited", "ok"])
    assert "test -e done.txt" in ran.prompt(2)
    assert ran.prompt(3) == ran.prompt(2)


def test_the_limit_of_calls_an_hour_holds(run: Run) -> None:
    ran = run("echo x", "3", "--max-calls-per-hour", "2", "--max-runtime", "60")
    assert (ran.code, len(ran.iterations), ran.end["end"]) == (2, 2, "limit")
    assert "reached the limit of 2 calls an hour" in ran.end["reason"]
    assert "2 calls an hour" in ran.out


# -- others take over


@pytest.fixture
def turns(tmp_path_factory: pytest.TempPathFactory, repo: Path, mark: str) -> Callable[..., Ran]:
    """Two agents with a file each, `one` and `two`, that run the given scripts."""
    programs = tmp_path_factory.mktemp("programs")
    folder = Path(os.environ["HOME"]) / ".config" / "ralph" / "agents"
    folder.mkdir(parents=True)

    def start(one: str, two: str, *flags: str, delivery: str = "stdin") -> Ran:
        for name, script in (("one", one), ("two", two)):
            program = programs / name
            program.write_text(f"#!/bin/bash\n{script}\n")
            program.chmod(0o755)
            (folder / f"{name}.toml").write_text(
                f'name = "{name}"\ntitle = "{name.title()}"\ncommands = ["{program}"]\ninstall = "x"\n'
                f'link = "https://agent.invalid"\n'
                f'[version]\nargs = []\n[[invocation]]\nargs = []\nprompt = "{delivery}"\ntranscript = "rtf1"\n'
            )
        done = subprocess.run(
            [sys.executable, "-m", "ralph", "run", *flags],
            cwd=repo,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done, repo)

    return start


def agents_of(ran: Ran) -> list[str]:
    return [m["agent"] for m in ran.metas("iteration_start")]


def test_a_fallback_takes_over_and_the_first_agent_returns(turns: Callable[..., Ran]) -> None:
    ran = turns(
        first(1, limited(ahead=3)), f"echo $RALPH_ITERATION >> work.txt\nsleep 1\n{ai('worked')}", "--agents", "one,two"
    )
    assert ran.code == 0, ran.err + ran.out
    names = agents_of(ran)
    assert (names[0], names[-1]) == ("one", "one")
    assert set(names[1:-1]) == {"two"}
    assert ran.metas("wait") == []
    assert json.loads((ran.root / "run.json").read_text())["agent"] == "one"
    assert "two takes over" in ran.out
    assert "one takes over again" in ran.out


def test_the_tokens_of_a_fallback_do_not_carry_the_first_agents_model(turns: Callable[..., Ran]) -> None:
    mine = rtf1("usage", usage={"prompt_tokens": 10, "completion_tokens": 1, "model": "one-large"})
    others = rtf1("usage", usage={"prompt_tokens": 200, "completion_tokens": 2})
    ran = turns("\n".join([mine, limited(ahead=3600)]), "\n".join([others, ai(MARK)]), "--agents", "one,two")
    assert (ran.code, agents_of(ran)) == (0, ["one", "two"]), ran.err + ran.out
    assert [i["usage"].get("model") for i in ran.iterations] == ["one-large", None]
    assert (ran.end["usage"]["prompt_tokens"], ran.end["usage"].get("model")) == (210, None)
    assert "one-large" not in ran.end["summary"]["Tokens"]


def test_if_all_agents_are_limited_the_run_waits_for_the_first_to_be_free(turns: Callable[..., Ran]) -> None:
    ran = turns(limited(ahead=3600), first(2, limited(retry_after=1)), "--agents", "one,two", "--on-limit", "fallback")
    assert ran.code == 0, ran.err + ran.out
    assert agents_of(ran) == ["one", "two", "two"]
    assert len(ran.metas("wait")) == 1


def test_a_list_without_fallback_waits(turns: Callable[..., Ran]) -> None:
    ran = turns(first(1, limited(retry_after=0)), "exit 1", "--agents", "one,two", "--on-limit", "wait")
    assert (ran.code, agents_of(ran)) == (0, ["one", "one"])


def test_a_missing_fallback_is_an_error_before_the_start(turns: Callable[..., Ran], repo: Path) -> None:
    ran = turns("exit 1", "exit 1", "--agents", "one,nobody")
    assert ran.code == 64
    assert "nobody" in ran.err
    assert not (repo / ".ralph" / "latest").exists()


def test_a_prompt_that_a_fallback_cannot_take_is_an_error_before_the_start(
    turns: Callable[..., Ran], repo: Path
) -> None:
    (repo / "PROMPT.md").write_text("x" * 200_000)
    ran = turns("exit 1", "exit 1", "--agents", "demo,two", delivery="argument")
    assert ran.code == 64
    assert "Two takes it as one argument" in ran.err
