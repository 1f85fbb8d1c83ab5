"""The loop as a whole: what does not fit under completion, outcomes or gates."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from loop.conftest import ai, rtf1
from processes import marked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loop.conftest import Ran

    Run = Callable[..., Ran]

MARK = "<promise>COMPLETE</promise>"


def test_the_prompt_is_read_again_each_iteration(run: Run) -> None:
    ran = run("cat; echo more >> PROMPT.md", "3")
    assert [ran.prompt(n) for n in (1, 2, 3)] == [
        "Do the work.\n",
        "Do the work.\nmore\n",
        "Do the work.\nmore\nmore\n",
    ]


def test_a_prompt_that_is_not_utf8_arrives_unchanged(run: Run, repo: Path) -> None:
    (repo / "PROMPT.md").write_bytes(b"caf\xe9 end\n")
    ran = run("cat > .git/got; echo x", "1")
    assert (repo / ".git" / "got").read_bytes() == b"caf\xe9 end\n"
    assert (ran.root / "iterations" / "0001" / "prompt.md").read_bytes() == b"caf\xe9 end\n"


def test_a_prompt_of_3_megabytes_arrives(run: Run, repo: Path) -> None:
    (repo / "PROMPT.md").write_bytes(b"p" * 3_000_000)
    run("wc -c > .git/got; echo x", "1")
    assert (repo / ".git" / "got").read_text().strip() == "3000000"


def test_a_prompt_that_vanishes_is_used_again_with_a_notice(run: Run) -> None:
    """An agent that cleans up deletes what git does not track; that must not end a long run."""
    ran = run("rm -f PROMPT.md; echo x", "3")
    assert (ran.code, len(ran.iterations)) == (2, 3)
    assert [ran.prompt(n) for n in (1, 2, 3)] == ["Do the work.\n"] * 3
    assert (ran.out + ran.err).count("PROMPT.md is gone") == 2


def test_a_prompt_that_becomes_empty_ends_the_run_with_a_reason(run: Run) -> None:
    ran = run(": > PROMPT.md; echo x", "3")
    assert (ran.code, len(ran.iterations)) == (1, 1)
    assert "PROMPT.md is empty" in ran.out + ran.err


def test_sequence_numbers_have_no_gap_and_iterations_are_right(run: Run) -> None:
    ran = run("echo a; echo b >&2", "2")
    assert [e["seq"] for e in ran.events] == list(range(1, len(ran.events) + 1))
    words = [(e["iteration"], e["text"]) for e in ran.events if e["type"] == "text" and e["tag"] == "AI"]
    assert words == [(1, "a"), (2, "a")]


def test_stderr_is_shown_and_kept_but_never_scanned(run: Run) -> None:
    ran = run(f"echo words; echo '{MARK}' >&2", "1")
    assert ran.code == 2
    assert MARK in ran.out
    assert (ran.root / "iterations" / "0001" / "stderr.raw").read_text() == f"{MARK}\n"


def test_callouts_appear_only_if_the_transcript_has_such_events(run: Run, run_rtf1: Run) -> None:
    script = "\n".join(
        [
            rtf1("text", tag="THINK", text="Plan: look first"),
            rtf1("tool_start", tool={"id": "1", "name": "shell", "input": {"cmd": "ls"}}),
            rtf1("tool_end", tool={"id": "1", "status": "ok", "duration_ms": 5}),
            rtf1("usage", usage={"prompt_tokens": 10, "completion_tokens": 5}),
            ai("words"),
        ]
    )
    (end,) = run_rtf1(script, "1").iterations
    assert end["plan"] == "Plan: look first"
    assert "shell" in end["actions"]
    assert "1 ok" in end["actions"]
    assert "15 tokens" in end["report"]
    plain = run("echo 'Plan: nothing'", "1")
    assert not {"plan", "actions", "report"} & plain.iterations[0].keys()
    assert not any(f"\n{name}" in plain.out for name in ("PLAN", "ACTIONS", "REPORT"))


def test_unknown_numbers_are_shown_as_unknown(run: Run) -> None:
    summary = run("echo x", "1").end["summary"]
    assert (summary["Tokens"], summary["Cost"]) == ("unknown", "unknown")


def test_processes_that_are_left_behind_are_reported(run: Run) -> None:
    ran = run("(setsid sleep 600 >/dev/null 2>&1 &); echo x", "1")
    # Its name may still be that of the shell it was forked from.
    assert any("left processes behind" in n["text"] for n in ran.metas("notice"))


def test_ralph_does_not_leak_descriptors(run: Run, repo: Path) -> None:
    count = "ls /proc/$(grep -o '\"pid\": *[0-9]*' .ralph/latest/run.json | grep -o '[0-9]*')/fd | wc -l"
    run(f"{count} >> .git/counts; echo x", "6", "--verify", "true", "--stuck-after", "0")
    counts = (repo / ".git" / "counts").read_text().split()
    assert len(counts) == 6
    assert len(set(counts)) == 1


def test_a_closed_output_ends_the_run_and_its_agent(repo: Path, agent: Callable[..., str], mark: str) -> None:
    command = agent("for i in $(seq 100000); do echo line $i; done; sleep 600")
    going = subprocess.Popen(
        [sys.executable, "-m", "ralph", "run", "--agent-cmd", command],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert going.stdout is not None
    assert going.stderr is not None
    going.stdout.readline()
    going.stdout.close()
    errors = going.stderr.read()
    going.stderr.close()
    assert going.wait(60) != 0
    assert b"Traceback" not in errors
    assert b"bug" not in errors
    assert marked(mark) == {}


def test_a_screen_that_cannot_be_written_is_a_clear_error(repo: Path, agent: Callable[..., str], mark: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ralph", "run", "--agent-cmd", agent("echo x; sleep 600"), "1"],
            cwd=repo,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode not in (0, 2)
    assert "No space left" in done.stderr
    assert "bug in ralph" not in done.stderr


def test_run_from_outside_with_cwd(ralph: Any, repo: Path, tmp_path_factory: Any, mark: str) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = ralph("run", "--cwd", str(repo), "--agent-cmd", f"pwd > .git/where; echo '{MARK}'", cwd=elsewhere)
    assert done.returncode == 0
    assert (repo / ".git" / "where").read_text().strip() == str(repo)
    assert (repo / ".ralph" / "latest").is_symlink()
    assert not (elsewhere / ".ralph").exists()


def test_the_summary_shows_files_with_any_name(run: Run) -> None:
    ran = run("printf x > \"$(printf 'a\\nb\\377')\"; echo x", "1")
    assert ran.code == 2
    assert ran.iterations[0]["files"] == 1


def test_a_tail_follows_a_run_to_its_end(repo: Path, agent: Callable[..., str], mark: str) -> None:
    command = agent("sleep 0.5; echo words", f"[ $RALPH_ITERATION = 2 ] && echo '{MARK}'; exit 0")
    ralph = [sys.executable, "-m", "ralph"]
    going = subprocess.Popen([*ralph, "run", "--agent-cmd", command, "--ui", "json"], cwd=repo, stdout=subprocess.PIPE)
    assert going.stdout is not None
    first = going.stdout.readline()
    tail = subprocess.run(
        [*ralph, "tail", "-f", "--json", "-n", "1000"], cwd=repo, capture_output=True, timeout=60, check=False
    )
    rest = going.stdout.read()
    going.stdout.close()
    assert going.wait(60) == 0
    assert tail.stdout == first + rest
