"""Checks and allowed paths from end to end: ralph does not accept every claim to be done."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from processes import marked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loop.conftest import Ran

    Run = Callable[..., Ran]

DONE = "echo '<promise>COMPLETE</promise>'"


# -- verify


def test_a_check_that_passes_lets_the_run_complete(run: Run) -> None:
    ran = run(DONE, "--verify", "test -e README.md")
    assert (ran.code, len(ran.iterations)) == (0, 1)
    assert [(v["baseline"], v["ok"]) for v in ran.metas("verify")] == [(True, True), (False, True)]


def test_after_a_claim_that_fails_a_check_the_run_continues_and_the_next_prompt_says_why(run: Run) -> None:
    """Iteration 1 breaks what the check looks at and claims to be done; iteration 2 repairs it."""
    script = f"if [ $RALPH_ITERATION = 1 ]; then rm README.md; else echo back > README.md; fi; {DONE}"
    ran = run(script, "--verify", "cat README.md || { echo it-is-gone; exit 3; }")
    assert (ran.code, len(ran.iterations)) == (0, 2)
    assert "but a check fails" in ran.iterations[0]["next"]
    assert ran.prompt(1) == "Do the work.\n"
    prompt = ran.prompt(2)
    assert prompt.endswith("Do the work.\n")
    before = prompt.removesuffix("Do the work.\n")
    assert "it-is-gone" in before
    assert "cat README.md" in before
    assert "exited with code 3" in before


def test_a_failed_check_is_in_one_prompt_only(run: Run) -> None:
    script = f"case $RALPH_ITERATION in 1) rm README.md; {DONE};; 2) echo hm;; 3) echo > README.md; {DONE};; esac"
    ran = run(script, "--verify", "test -e README.md")
    assert (ran.code, len(ran.iterations)) == (0, 3)
    assert "test -e README.md" in ran.prompt(2)
    assert ran.prompt(3) == "Do the work.\n"


def test_checks_are_not_run_without_a_claim(run: Run, repo: Path) -> None:
    run("echo working", "2", "--verify", "echo x >> .git/checks")
    assert (repo / ".git" / "checks").read_text() == "x\n", "the baseline alone"


def test_a_check_that_failed_before_the_run_must_pass_too(run: Run) -> None:
    """ "Fix the tests" is the commonest job: an agent that only claims it has not done it."""
    ran = run(DONE, "2", "--verify", "test -e never-there")
    assert (ran.code, len(ran.iterations)) == (2, 2)
    assert "but a check fails: `test -e never-there`" in ran.end["reason"]
    first, *claims = ran.metas("verify")
    assert "must pass" in first["note"]
    assert [claim["note"] for claim in claims] == ["it failed before the run too"] * 2
    assert "it failed before the run too" in ran.prompt(2)


def test_a_check_that_is_fixed_completes_the_run(run: Run) -> None:
    ran = run(f"touch there; {DONE}", "2", "--verify", "test -e there")
    assert (ran.code, len(ran.iterations)) == (0, 1)
    assert ", and `test -e there` passes" in ran.end["reason"]


def test_with_verify_baseline_it_may_still_fail_and_the_run_says_so(run: Run) -> None:
    ran = run(DONE, "--verify", "test -e never-there", "--verify", "test -e README.md", "--verify-baseline")
    assert ran.code == 0
    first, _, last, _ = ran.metas("verify")
    assert "does not block" in first["note"]
    assert "failed before the run too" in last["note"]
    assert last["note"] in ran.out
    seen = "`test -e README.md` passes; `test -e never-there` still fails, as before the run"
    assert f", and {seen}; nothing has changed since the start of the run" in ran.end["reason"]


def test_a_run_that_completes_without_any_change_says_so(run: Run) -> None:
    assert "nothing has changed" in run(DONE).end["reason"]
    assert "nothing has changed" not in run(f"touch new; {DONE}").end["reason"]


def test_the_retired_flag_still_works_and_says_what_became_of_it(run: Run) -> None:
    ran = run(DONE, "1", "--verify", "test -e never-there", "--verify-strict")
    assert ran.code == 2
    assert "--verify-strict: it has no effect" in ran.err


@pytest.mark.parametrize("commit", ["true", "git add -A; git commit -q -m x"])
def test_a_check_that_the_agent_changed_is_named(run: Run, repo: Path, commit: str) -> None:
    (repo / "check.sh").write_text("false\n")
    ran = run(f"echo true > check.sh; {commit}; {DONE}", "1", "--verify", "timeout 5 bash ./check.sh")
    assert ran.code == 0
    said = "check.sh, which `timeout 5 bash ./check.sh` uses, has changed since the start of the run"
    assert ran.end["reason"].endswith(f"passes; {said}")
    assert ran.metas("verify")[-1]["changed"] == ["check.sh"]
    assert said in ran.metas("verify")[-1]["note"]
    assert said in ran.out


def test_every_check_has_its_own_baseline(run: Run) -> None:
    checks = ("--verify", "test -e never-there", "--verify", "test -e README.md")
    ran = run(f"rm README.md; {DONE}", "1", *checks, "--verify-baseline")
    assert ran.code == 2
    assert "README.md" in ran.end["reason"]
    assert "never-there" not in ran.end["reason"]


def test_a_check_that_takes_too_long_fails_and_leaves_no_process(run: Run, mark: str) -> None:
    check = "test -e slow && { trap '' TERM; (setsid sleep 600 &); sleep 600; }; true"
    ran = run(f"touch slow; {DONE}", "1", "--verify", check, "--verify-timeout", "2")
    assert ran.code == 2
    last = ran.metas("verify")[-1]
    assert (last["ok"], last["baseline"]) == (False, False)
    assert "timed out" in last["why"]
    assert marked(mark) == {}


def test_a_check_that_leaves_a_daemon_is_cleaned_up(run: Run, mark: str) -> None:
    assert run(DONE, "--verify", "(setsid sleep 600 >/dev/null 2>&1 &) ; true").code == 0
    assert marked(mark) == {}


def test_a_check_does_not_outlive_the_run(run: Run, mark: str) -> None:
    """The time limit comes during the check: the run is not complete, and no process is left."""
    check = f"test ! -e .git/claimed || exec -a {mark} sleep 300"
    ran = run(f"touch .git/claimed; {DONE}", "--verify", check, "--max-runtime", "3")
    assert (ran.code, ran.end["end"], len(ran.iterations)) == (2, "limit", 1)
    assert "run time" in ran.end["reason"]
    assert ran.end["seconds"] < 60
    assert not marked(mark)


def test_a_check_before_the_run_does_not_outlive_it_either(run: Run, mark: str) -> None:
    ran = run(DONE, "--verify", f"exec -a {mark} sleep 300", "--max-runtime", "1")
    assert (ran.code, ran.end["end"], ran.iterations) == (2, "limit", [])
    assert "run time" in ran.end["reason"]
    assert not marked(mark)


def test_a_check_gets_no_stdin_and_only_the_end_of_long_output_is_kept(run: Run) -> None:
    ran = run(f"touch more; {DONE}", "1", "--verify", "cat; test ! -e more || { seq 100000; echo the-end; exit 1; }")
    tail = ran.metas("verify")[-1]["tail"]
    assert tail.endswith("99999\n100000\nthe-end")
    assert len(tail) <= 4000


def test_a_rejected_claim_does_not_count_as_a_confirmation(run: Run) -> None:
    script = f"case $RALPH_ITERATION in 1) rm README.md;; *) echo > README.md;; esac; {DONE}"
    ran = run(script, "--verify", "test -e README.md", "--confirmations", "2")
    assert (ran.code, len(ran.iterations)) == (0, 3)


def test_a_rejected_claim_in_the_last_iteration_is_a_limit_with_the_reason(run: Run) -> None:
    ran = run(f"rm README.md; {DONE}", "1", "--verify", "test -e README.md")
    assert ran.code == 2
    assert "but a check fails" in ran.end["reason"]


# -- allowed paths


@pytest.mark.parametrize("commit", ["true", "git add -A; git commit -q -m x"])
def test_a_change_outside_the_allowed_paths_is_rejected_committed_or_not(run: Run, commit: str) -> None:
    ran = run(f"echo x > README.md; mkdir -p src; echo x > src/a; {commit}; {DONE}", "1", "--allowed-paths", "src")
    assert ran.code == 2
    assert "README.md" in ran.end["reason"]
    assert "src/a" not in ran.end["reason"]


@pytest.mark.parametrize("commit", ["true", "git add -A; git commit -q -m x"])
def test_a_change_inside_the_allowed_paths_is_accepted(run: Run, commit: str) -> None:
    assert run(f"mkdir -p src; echo x > src/a; {commit}; {DONE}", "1", "--allowed-paths", "src,*.txt").code == 0


def test_changes_from_before_the_run_do_not_count(run: Run, repo: Path) -> None:
    (repo / "README.md").write_text("the user's own\n")
    assert run(f"git add -A; git commit -q -m x; {DONE}", "1", "--allowed-paths", "src").code == 0


def test_the_next_prompt_names_what_to_undo(run: Run) -> None:
    ran = run("[ $RALPH_ITERATION = 1 ] && echo x > stray.txt; echo x", "2", "--allowed-paths", "src")
    assert "stray.txt" in ran.prompt(2).removesuffix("Do the work.\n")


def test_a_trespass_that_is_not_undone_blocks_completion(run: Run) -> None:
    ran = run(f"if [ $RALPH_ITERATION = 1 ]; then echo x > stray.txt; else {DONE}; fi", "2", "--allowed-paths", "src")
    assert ran.code == 2
    assert "stray.txt" in ran.end["reason"]


@pytest.mark.parametrize("commit", ["true", "git add -A; git commit -q -m x"])
def test_a_trespass_that_is_undone_later_does_not_block(run: Run, commit: str) -> None:
    script = (
        f"if [ $RALPH_ITERATION = 1 ]; then echo x > README.md; echo x > stray; {commit}; else "
        f"echo hello > README.md; rm stray; {commit}; {DONE}; fi"
    )
    ran = run(script, "2", "--allowed-paths", "src")
    assert (ran.code, len(ran.iterations)) == (0, 2)


def test_paths_are_relative_to_the_working_directory(run: Run, repo: Path) -> None:
    sub = repo / "sub"
    sub.mkdir()
    (sub / "PROMPT.md").write_text("x\n")
    assert run(f"mkdir -p src; echo x > src/a; {DONE}", "1", "--allowed-paths", "src", cwd=sub).code == 0
    ran = run(f"echo x > ../README.md; {DONE}", "1", "--allowed-paths", ".", cwd=sub)
    assert ran.code == 2
    assert "../README.md" in ran.end["reason"]


def test_allowed_paths_work_without_git(run: Run, repo: Path) -> None:
    subprocess.run(["rm", "-rf", ".git"], cwd=repo, check=True)
    assert run(f"echo changed > README.md; {DONE}", "1", "--allowed-paths", "src").code == 2
    assert run(f"mkdir -p src; echo x > src/a; {DONE}", "1", "--allowed-paths", "src").code == 0


def test_repeated_trespassing_is_a_failure(run: Run) -> None:
    ran = run("echo $RALPH_ITERATION > stray; echo x", "--allowed-paths", "src", "--max-failures", "2")
    assert (ran.code, len(ran.iterations)) == (1, 2)


# -- progress as it is told


def test_a_run_reports_what_an_iteration_changed(run: Run) -> None:
    ran = run("echo $RALPH_ITERATION > file; git add -A; git commit -q -m x; echo ok", "2")
    assert [(i["files"], i["commits"]) for i in ran.iterations] == [(1, 1), (1, 1)]
    assert (ran.end["files"], ran.end["commits"]) == (["file"], 2)


def test_a_run_reports_that_nothing_changed(run: Run) -> None:
    ran = run("touch README.md; echo ok", "1")
    assert ran.iterations[0]["progress"] == "nothing changed"


def test_notes_that_leave_no_room_for_the_prompt_are_shortened(
    ralph: Callable[..., subprocess.CompletedProcess[str]], repo: Path
) -> None:
    """An agent that takes its prompt as an argument can take 128 KiB."""
    (repo / "ralph.yml").write_text("agent: custom\ncommand: sh\nargs: [say.sh]\nprompt_mode: arg\n")
    (repo / "say.sh").write_text("echo '<promise>COMPLETE</promise>'\n")
    (repo / "PROMPT.md").write_text("x" * 130_000 + "\n")
    done = ralph("run", "2", "--verify", "seq 1 2000; false")
    assert done.returncode == 2, done.stderr
    second = (repo / ".ralph" / "latest" / "iterations" / "0002" / "prompt.md").read_text()
    assert second.endswith("x" * 130_000 + "\n")
