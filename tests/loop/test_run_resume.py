"""`ralph run --resume` after a kill, a stop, a limit: as if nothing had happened."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loop.conftest import Ran, ai, meta, rtf1

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Ran]
    Ralph = Callable[..., subprocess.CompletedProcess[str]]

DONE = ai("<promise>COMPLETE</promise>")
#: what an unlucky night does, at the moment we want
KILL = 'kill -9 $(sed -n \'s/.*"pid": *\\([0-9]*\\).*/\\1/p\' "$RALPH_RUN_DIR/run.json"); sleep 30'
USAGE = rtf1("usage", usage={"prompt_tokens": 100, "completion_tokens": 7, "cost_usd": 0.25})


def once(iteration: int, script: str) -> str:
    return f"if [ $RALPH_ITERATION = {iteration} ]; then\n{script}\nfi"


@pytest.fixture
def resume(ralph: Ralph, repo: Path, mark: str) -> Run:
    def start(*flags: str, most: str | None = None, **how: Any) -> Ran:
        done = ralph("run", *([most] if most else []), "--resume", *flags, **how)
        assert "Traceback" not in done.stderr, done.stderr
        assert "bug in ralph" not in done.stderr, done.stderr
        return Ran(done, repo)

    return start


def test_after_a_kill_a_run_resumes_with_the_next_number_and_every_token(run_rtf1: Run, resume: Run) -> None:
    script = "\n".join([USAGE, ai("working"), "date +%N > f$RALPH_ITERATION", once(3, KILL), once(5, DONE)])
    dead = run_rtf1(script, "10", "--max-cost", "5")
    assert dead.code == -9
    ran = resume()
    assert (ran.code, ran.end["end"], ran.err) == (0, "complete", "")
    assert ran.outcomes == ["ok", "ok", "crashed", "ok", "ok"]
    assert [i["n"] for i in ran.iterations] == [1, 2, 3, 4, 5]
    assert ran.end["usage"]["prompt_tokens"] == 500
    assert ran.end["usage"]["completion_tokens"] == 35
    assert ran.end["cost"]["usd"] == pytest.approx(1.25)
    assert [e["seq"] for e in ran.events] == list(range(1, len(ran.events) + 1))
    (resumed,) = ran.metas("run_resume")
    assert (resumed["after"], resumed["iterations"]) == ("died", 2)
    assert {"f1", "f2", "f3", "f4", "f5"} <= set(ran.end["files"])  # since the run began, not since it was resumed


def test_an_unfinished_iteration_does_not_count(run_rtf1: Run, resume: Run) -> None:
    script = "\n".join([ai("working"), "date +%N > f", once(2, KILL)])
    assert run_rtf1(script, "3").code == -9
    ran = resume()
    assert ran.code == 2
    assert ran.outcomes == ["ok", "crashed", "ok", "ok"]
    assert "reached the limit of 3 iterations" in ran.end["reason"]


@pytest.mark.endurance
def test_killed_again_and_again(run_rtf1: Run, resume: Run) -> None:
    script = "\n".join([USAGE, "date +%N > f", once(1, KILL), once(2, KILL), ai("x"), once(3, KILL), once(4, DONE)])
    assert run_rtf1(script, "2").code == -9
    assert resume().code == -9
    assert resume().code == -9
    ran = resume()
    assert (ran.code, ran.outcomes) == (0, ["crashed", "crashed", "crashed", "ok"])
    assert ran.end["usage"]["prompt_tokens"] == 400
    run_json = json.loads((ran.root / "run.json").read_bytes())
    assert len(run_json["resumed"]) == 3


def test_a_budget_that_was_nearly_used_up_is_still_nearly_used_up(run_rtf1: Run, resume: Run) -> None:
    script = "\n".join([USAGE, ai("x"), "date +%N > f", once(2, KILL)])
    assert run_rtf1(script, "--max-tokens", "400").code == -9
    ran = resume()
    assert ran.code == 2
    assert "428 tokens were used (limit 400)" in ran.end["reason"]
    assert len(ran.iterations) == 4


def test_a_limit_that_is_reached_stays_reached_until_it_is_raised(run_rtf1: Run, resume: Run) -> None:
    script = "\n".join([ai("x"), "date +%N > f", once(4, DONE)])
    assert run_rtf1(script, "2").code == 2
    again = resume()
    assert (again.code, len(again.iterations)) == (2, 2)
    assert "reached the limit of 2 iterations: raise the limit to continue" in again.out
    more = resume(most="5")
    assert (more.code, len(more.iterations)) == (0, 4)


def test_the_number_of_iterations_may_stand_before_resume(ralph: Ralph, run_rtf1: Run) -> None:
    assert run_rtf1("\n".join([ai("x"), "date +%N > f", once(3, DONE)]), "1").code == 2
    assert ralph("run", "5", "--resume").returncode == 0


def test_a_complete_run_has_nothing_left_to_do(run_rtf1: Run, resume: Run) -> None:
    first = run_rtf1(DONE)
    before = first.events
    again = resume()
    assert (again.code, again.events) == (0, before)
    assert "is complete: there is nothing to resume" in again.out


def test_a_resumed_run_keeps_its_breaker(run_rtf1: Run, resume: Run) -> None:
    script = "\n".join([ai("nothing to see"), once(3, KILL)])
    assert run_rtf1(script, "--stuck-after", "4").code == -9
    ran = resume()
    assert ran.code == 4
    assert ran.outcomes == ["ok", "ok", "crashed", "ok", "ok"]
    assert "4 iterations in a row (since iteration 1)" in ran.end["reason"]


def test_failures_in_a_row_continue_after_a_kill_but_not_after_an_end(run_rtf1: Run, resume: Run) -> None:
    script = "\n".join(["date +%N > f", once(2, KILL), "exit 1"])
    assert run_rtf1(script, "--max-failures", "3").code == -9
    died = resume()
    assert (died.code, died.outcomes) == (1, ["failed", "crashed", "failed", "failed"])
    ended = resume()
    assert (ended.code, ended.outcomes[4:]) == (1, ["failed", "failed", "failed"])


def test_a_resumed_run_continues_to_wait(run_rtf1: Run, repo: Path, resume: Run) -> None:
    # The one that kills is left by the agent's first iteration: it strikes while ralph waits.
    limited = "\n".join(
        [
            meta("error", message="usage limit", **{"class": "rate_limited"}),
            "reset=$(( $(date +%s) + 4 ))",
            'printf \'@@RALPH@@ {"type":"meta","meta":{"kind":"rate_limit","resets_at":%s}}\\n\' $reset',
        ]
    )
    script = "\n".join([once(1, limited), once(2, DONE)])
    agent = repo.parent / f"{repo.name}-agent.sh"
    agent.write_text(script)
    command = [sys.executable, "-m", "ralph", "run", "--transcript", "rtf1", "--agent-cmd", f"bash {agent}"]
    with subprocess.Popen(command, cwd=repo, stdout=subprocess.PIPE, text=True) as ralph:
        assert ralph.stdout is not None
        for line in ralph.stdout:
            if "waiting" in line:
                break
        ralph.kill()
    ran = resume()
    assert (ran.code, ran.outcomes) == (0, ["rate_limited", "ok"])
    first, second = ran.metas("wait")
    assert second["until"] == pytest.approx(first["until"], abs=0.1)
    started = [e["time"] for e in ran.events if e["type"] == "meta" and e["meta"]["kind"] == "iteration_start"]
    assert started[1] >= first["until"] - 0.1


def test_an_iteration_ended_by_ctrl_c_is_no_failure_and_runs_again(run_rtf1: Run, resume: Run) -> None:
    stop = KILL.replace("-9", "-INT", 1)
    script = "\n".join([ai("x"), "date +%N > f", once(2, stop), once(3, DONE)])
    stopped = run_rtf1(script, "2")
    assert (stopped.code, stopped.outcomes) == (130, ["ok", "interrupted"])
    ran = resume()
    assert (ran.code, ran.outcomes) == (0, ["ok", "interrupted", "ok"])


def test_a_resumed_run_keeps_the_baseline_of_its_checks(run_rtf1: Run, repo: Path, resume: Run) -> None:
    script = "\n".join([ai("x"), "date +%N > f; echo broken > ok.txt", once(1, KILL), once(2, DONE), "rm -f ok.txt"])
    (repo / "ok.txt").write_text("fine\n")
    check = "test ! -e ok.txt || grep -q fine ok.txt"
    assert run_rtf1(script, "3", "--verify", check).code == -9
    ran = resume()
    assert ran.code == 0  # the agent mended it in the end
    assert len([v for v in ran.metas("verify") if v.get("baseline")]) == 1


def test_notes_for_the_next_prompt_survive_a_kill(run_rtf1: Run, resume: Run) -> None:
    script = "\n".join(
        ["date +%N > f", once(1, DONE), once(2, KILL), once(3, f"touch good\n{DONE}")],
    )
    assert run_rtf1(script, "5", "--verify", "test -e good").code == -9
    ran = resume()
    assert ran.code == 0
    assert "test -e good" in ran.prompt(2)
    assert "test -e good" in ran.prompt(3)


def test_flags_of_the_resume_beat_those_of_the_run(run_rtf1: Run, agent: Callable[..., str], resume: Run) -> None:
    assert run_rtf1(ai("x"), "1", "-p", "the old prompt").code == 2
    ran = resume("--agent-cmd", agent(DONE), "-p", "the new prompt", most="3")
    assert ran.code == 0
    assert ran.prompt(1) == "the old prompt"
    assert ran.prompt(2) == "the new prompt"


def test_a_prompt_from_a_pipe_is_remembered(ralph: Ralph, agent: Callable[..., str], repo: Path, mark: str) -> None:
    flags = ["--transcript", "rtf1", "--agent-cmd", agent("\n".join([ai("x"), once(2, DONE)]))]
    command = [sys.executable, "-m", "ralph", "run", "1", "-P", "-", *flags]
    assert subprocess.run(command, cwd=repo, input=b"from a pipe", capture_output=True, check=False).returncode == 2
    done = ralph("run", "3", "--resume")
    assert done.returncode == 0, done.stderr
    assert Ran(done, repo).prompt(2) == "from a pipe"


def test_a_torn_line_is_kept_and_the_journal_is_repaired(run_rtf1: Run, resume: Run) -> None:
    dead = run_rtf1("\n".join([ai("x"), "date +%N > f", once(2, KILL), once(3, DONE)]))
    with (dead.root / "events.jsonl").open("ab") as file:
        file.write(b'{"seq":99,"time":1')
    ran = resume()
    assert ran.code == 0
    assert [e["seq"] for e in ran.events] == list(range(1, len(ran.events) + 1))
    assert ran.metas("run_resume")[0]["torn"] == '{"seq":99,"time":1'


def test_an_older_run_is_resumed_by_its_name(ralph: Ralph, run_rtf1: Run, repo: Path) -> None:
    script = "\n".join([ai("x"), "date +%N > f", once(2, DONE)])
    older = json.loads((run_rtf1(script, "1").root / "run.json").read_bytes())["run"]
    run_rtf1(script, "1")
    assert ralph("run", "3", "--resume", older).returncode == 0
    rows = [json.loads(line) for line in ralph("runs", "--json").stdout.splitlines()]
    assert [(row["run"] == older, row["end"]) for row in rows] == [(True, "complete"), (False, "limit")]


def test_mistakes(ralph: Ralph, run_rtf1: Run) -> None:
    nothing = ralph("run", "--resume")
    assert nothing.returncode == 64
    assert "there are no runs here" in nothing.stderr
    run_rtf1(ai("x"), "1")
    unknown = ralph("run", "--resume", "1999")
    assert unknown.returncode == 64
    assert "there is no run '1999'" in unknown.stderr
    assert "ralph run 1999 --resume" in unknown.stderr


def test_a_running_run_cannot_be_resumed(run_rtf1: Run, repo: Path, resume: Run) -> None:
    inner = f"{sys.executable} -m ralph run --resume > second.txt 2>&1; echo $? >> second.txt"
    ran = run_rtf1(f"{inner}\n{DONE}")
    assert ran.code == 0
    told = (repo / "second.txt").read_text()
    assert "already active" in told
    assert told.endswith("64\n")


def test_what_a_killed_ralph_had_not_read_is_saved(run_rtf1: Run, resume: Run) -> None:
    pid = 'pid=$(sed -n \'s/.*"pid": *\\([0-9]*\\).*/\\1/p\' "$RALPH_RUN_DIR/run.json")'
    words = "seq 1 60000; seq 1 1000 >&2"
    first = "\n".join([pid, "kill -STOP $pid", words, USAGE, "kill -9 $pid", "sleep 30"])
    dead = run_rtf1("\n".join([once(1, first), once(2, DONE)]))
    assert dead.code == -9
    ran = resume()
    assert (ran.code, ran.end["usage"]["prompt_tokens"]) == (0, 100)
    out = (ran.root / "iterations" / "0001" / "stdout.raw").read_bytes()
    assert out.splitlines()[:60000] == [b"%d" % n for n in range(1, 60001)]
    err = (ran.root / "iterations" / "0001" / "stderr.raw").read_bytes()
    assert err.splitlines() == [b"%d" % n for n in range(1, 1001)]


def test_no_run_starts_beside_the_agent_of_a_dead_ralph(run_rtf1: Run, ralph: Ralph, agent: Callable[..., str]) -> None:
    stubborn = "\n".join(["trap '' TERM", "echo $$ > first.pid", KILL])
    assert run_rtf1(stubborn).code == -9
    second = agent('kill -0 "$(cat first.pid)" && echo alive || echo gone', DONE)
    done = ralph("run", "1", "--agent-cmd", second, "--transcript", "rtf1")
    assert done.returncode == 0, done.stderr
    assert "gone" in done.stdout
    assert "alive" not in done.stdout
