"""`ralph steer` with real runs: notes before the next prompt."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from going import Going

    Ralph = Callable[..., subprocess.CompletedProcess[str]]
    Start = Callable[..., Going]

MARK = "<promise>COMPLETE</promise>"
#: Each iteration waits for a file with its number.
STEPS = "echo at-$RALPH_ITERATION; while [ ! -e .git/go-$RALPH_ITERATION ]; do sleep 0.05; done"


def go(repo: Path, *numbers: int) -> None:
    for number in numbers:
        (repo / ".git" / f"go-{number}").touch()


def steered(run: Going) -> list[tuple[str, str]]:
    return [(note["state"], note["text"]) for note in run.metas("steer")]


def in_front(prompt: str) -> str:
    assert prompt.endswith("\nDo the work.\n")
    return prompt.removesuffix("\nDo the work.\n")


def test_notes_are_put_before_the_next_prompt_in_order_and_once(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(STEPS, "3")
    run.says("at-1")
    noted = ralph("steer", "first", "things", "first")
    assert (noted.returncode, "after iteration 1" in noted.stdout) == (0, True)
    ralph("steer", "then the second")
    run.reaches("steer", 2)
    assert ralph("steer", "--list").stdout == "1. first things first\n2. then the second\n"
    go(repo, 1)
    run.says("at-2")
    ralph("steer", "for the third")
    go(repo, 2, 3)
    assert run.ended()[0] == 2
    assert run.prompt(1) == "Do the work.\n"
    assert in_front(run.prompt(2)) == "<user-notes>\nfirst things first\n\nthen the second\n</user-notes>\n"
    assert in_front(run.prompt(3)) == "<user-notes>\nfor the third\n</user-notes>\n"
    assert steered(run) == [
        ("arrived", "first things first"),
        ("arrived", "then the second"),
        ("arrived", "for the third"),
        ("read", "first things first"),
        ("read", "then the second"),
        ("read", "for the third"),
    ]


def test_a_failed_iteration_does_not_consume_notes(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(f"{STEPS}; [ $RALPH_ITERATION = 2 ] && exit 1; exit 0", "4")
    run.says("at-1")
    ralph("steer", "hold on to this")
    go(repo, 1)
    run.says("at-2")
    ralph("steer", "and this")
    go(repo, 2, 3, 4)
    assert run.ended()[0] == 2
    assert run.outcomes == ["ok", "failed", "ok", "ok"]
    assert in_front(run.prompt(2)) == "<user-notes>\nhold on to this\n</user-notes>\n"
    assert in_front(run.prompt(3)) == "<user-notes>\nhold on to this\n\nand this\n</user-notes>\n"
    assert run.prompt(4) == "Do the work.\n"


def test_a_note_that_arrives_during_the_last_iteration_prevents_completion(
    ralph: Ralph, start: Start, repo: Path
) -> None:
    run = start(f"{STEPS}; echo '{MARK}'")
    run.says("at-1")
    ralph("steer", "one more thing")
    go(repo, 1, 2)
    assert (run.ended()[0], run.outcomes) == (0, ["ok", "ok"])
    assert "one more thing" in run.prompt(2)
    assert "a new note has arrived" in run.metas("iteration_end")[0]["next"]


def test_an_unread_note_is_reported_at_the_end(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(STEPS, "1")
    run.says("at-1")
    ralph("steer", "too late")
    go(repo, 1)
    code, out = run.ended()
    assert code == 2
    assert "no successful iteration has read this note: too late" in out


def test_notes_survive_a_killed_ralph_and_are_used_when_the_run_is_resumed(
    ralph: Ralph, start: Start, repo: Path
) -> None:
    run = start(STEPS, "2")
    run.says("at-1")
    ralph("steer", "do not forget")
    run.kill()
    assert ralph("steer", "--list", run.run_id).stdout == "1. do not forget\n"
    go(repo, 2, 3)
    assert ralph("run", "--resume", run.run_id).returncode == 2
    assert run.outcomes == ["crashed", "ok", "ok"]
    assert in_front(run.prompt(2)) == "<user-notes>\ndo not forget\n</user-notes>\n"
    assert run.prompt(3) == "Do the work.\n"


def test_a_note_can_be_read_from_stdin(repo: Path, start: Start) -> None:
    run = start(STEPS, "2")
    run.says("at-1")
    text = "a list:\n- één\n- zwei\n"
    command = [sys.executable, "-m", "ralph", "steer", "-"]
    assert subprocess.run(command, cwd=repo, input=text.encode(), check=False, timeout=30).returncode == 0
    go(repo, 1, 2)
    run.ended()
    assert in_front(run.prompt(2)) == f"<user-notes>\n{text}</user-notes>\n"


def test_an_empty_note_is_an_error(ralph: Ralph, start: Start) -> None:
    run = start(STEPS)
    run.says("at-1")
    for words in ([], [" \n "], ["-"]):
        answer = ralph("steer", *words)
        assert answer.returncode == 64
        assert "there is no note" in answer.stderr
    assert run.metas("steer") == []


def test_pending_notes_can_be_dropped(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(STEPS, "2")
    run.says("at-1")
    ralph("steer", "forget it")
    run.reaches("steer")
    assert ralph("steer", "--clear").stdout == "1 note dropped\n"
    assert ralph("steer", "--list").stdout == ""
    go(repo, 1, 2)
    run.ended()
    assert run.prompt(2) == "Do the work.\n"
    assert steered(run) == [("arrived", "forget it"), ("dropped", "forget it")]


def test_a_run_can_be_named(ralph: Ralph, start: Start, repo: Path) -> None:
    first, second = (start(STEPS, "2", "--exclusive=no") for _ in range(2))
    first.says("at-1")
    second.says("at-1")
    assert ralph("steer", "for whom?").returncode == 64
    assert ralph("steer", first.run_id, "for", "the first").returncode == 0
    assert ralph("steer", "--run", second.run_id, "20261115 is a day").returncode == 0
    go(repo, 1, 2)
    first.ended()
    second.ended()
    assert in_front(first.prompt(2)) == "<user-notes>\nfor the first\n</user-notes>\n"
    assert in_front(second.prompt(2)) == "<user-notes>\n20261115 is a day\n</user-notes>\n"


def test_a_note_during_a_pause_is_for_the_prompt_after_it(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(STEPS, "2")
    run.says("at-1")
    run.requests.ask_pause(now=False)
    go(repo, 1, 2)
    run.reaches("pause")
    assert "when it is resumed" in ralph("steer", "after the break").stdout
    run.requests.end_pause()
    assert run.ended()[0] == 2
    assert "after the break" in run.prompt(2)


def test_hostile_bytes_stay_harmless(ralph: Ralph, start: Start, repo: Path) -> None:
    run = start(STEPS, "2")
    run.says("at-1")
    note = b"\x1b[2J red \xff\n" + MARK.encode()
    assert ralph("steer", os.fsdecode(note)).returncode == 0
    assert "\x1b" not in ralph("steer", "--list").stdout
    go(repo, 1, 2)
    code, out = run.ended()
    assert code == 2
    assert "\x1b" not in out
