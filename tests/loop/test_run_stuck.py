"""Stuck runs from end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loop.conftest import Ran, ai, meta

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Ran]

MARK = "<promise>COMPLETE</promise>"


def test_a_run_that_changes_nothing_ends_with_4_and_the_evidence(run: Run) -> None:
    ran = run("echo still thinking $RALPH_ITERATION", "20")
    assert (ran.code, ran.end["end"], len(ran.iterations)) == (4, "stuck", 10)
    assert "no progress in 10 iterations in a row (since iteration 1)" in ran.end["reason"]
    assert ran.iterations[-1]["breaker"]["state"] == "open"


def test_a_few_iterations_without_a_change_are_not_stuck(run: Run) -> None:
    ran = run('echo "I will not print <promise>COMPLETE</promise> yet"', "3")
    assert (ran.code, len(ran.iterations)) == (2, 3)


def test_the_user_sets_the_limit_and_0_disables_it(run: Run) -> None:
    ran = run("[ $RALPH_ITERATION = 1 ] && touch new; echo x", "--stuck-after", "2")
    assert (ran.code, len(ran.iterations)) == (4, 3)
    assert "since iteration 2" in ran.end["reason"]
    ran = run("echo x", "7", "--stuck-after", "0")
    assert (ran.code, len(ran.iterations)) == (2, 7)


def test_an_iteration_that_only_commits_is_progress(run: Run) -> None:
    script = "echo x; [ $RALPH_ITERATION = 1 ] && echo 1 > new; [ $RALPH_ITERATION = 3 ] && git add -A && "
    script += f"git commit -qm 'so far'; [ $RALPH_ITERATION = 5 ] && echo '{MARK}'; true"
    ran = run(script, "--stuck-after", "2")
    assert (ran.code, len(ran.iterations)) == (0, 5), ran.end


def test_confirming_completion_is_not_stuck(run: Run) -> None:
    ran = run(f"echo '{MARK}'", "--confirmations", "4", "--stuck-after", "2")
    assert (ran.code, len(ran.iterations)) == (0, 4)


def test_a_claim_that_checks_reject_repeatedly_is_stuck(run: Run) -> None:
    ran = run(f"echo '{MARK}'", "--verify", "false", "--stuck-after", "3")
    assert (ran.code, len(ran.iterations)) == (4, 3)
    assert "but a check fails" in ran.end["reason"]


def test_limited_iterations_do_not_make_a_run_stuck(run_rtf1: Run) -> None:
    limited = "\n".join(
        [meta("rate_limit", retry_after=0), meta("error", message="slow", **{"class": "rate_limited"}), "exit 1"]
    )
    ran = run_rtf1(f"if [ $RALPH_ITERATION -le 2 ]; then\n{limited}\nfi\n{ai('x')}", "2", "--stuck-after", "3")
    assert (ran.code, ran.outcomes) == (2, ["rate_limited", "rate_limited", "ok", "ok"])


def test_too_many_failures_are_still_failures(run: Run) -> None:
    assert run("echo x; exit 3", "9").code == 1
    ran = run("echo x; exit 3", "9", "--max-failures", "0", "--stuck-after", "3")
    assert (ran.code, len(ran.iterations)) == (4, 3)


def test_the_same_error_and_the_same_answer_are_stuck_even_if_a_file_grows(run: Run) -> None:
    ran = run(
        "date +%N >> log.txt; echo $RALPH_ITERATION; exit 3",
        "--max-failures",
        "0",
        env={"RALPH_SAME_ERROR_AFTER": "3"},
    )
    assert (ran.code, len(ran.iterations)) == (4, 3)
    assert "the same error in 3 iterations" in ran.end["reason"]
    assert "exited with code 3" in ran.end["reason"]
    ran = run("date +%N >> log.txt; echo I cannot do it", env={"RALPH_SAME_ANSWER_AFTER": "3"})
    assert (ran.code, len(ran.iterations)) == (4, 3)
    assert "the same answer in 3 iterations" in ran.end["reason"]


def test_with_auto_reset_it_cools_down_and_tries_again(run: Run) -> None:
    script = f"echo x; [ $RALPH_ITERATION = 4 ] && touch new; [ $RALPH_ITERATION = 5 ] && echo '{MARK}'; true"
    env = {"RALPH_BREAKER_AUTO_RESET": "true", "RALPH_BREAKER_COOLDOWN": "0.5"}
    ran = run(script, "--stuck-after", "2", env=env)
    assert (ran.code, len(ran.iterations)) == (0, 5)
    states = [i.get("breaker", {}).get("state", "closed") for i in ran.iterations]
    assert states == ["closed", "open", "open", "closed", "closed"]
    assert [w["seconds"] for w in ran.metas("wait")] == [0.5, 0.5]
