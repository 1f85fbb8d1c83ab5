"""The fault suite notices a lost byte, a process left behind, a hang and an unexpected outcome."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from faults.case import every
from faults.lost import missing
from faults.table import Row, render, summary

ROOT_SCRIPT = """
import subprocess, sys
import msgspec
from faults import one
from faults.case import Fault
one._SETTLE = 0.5
def make(at):
    {body}
row = one.make(Fault("made up", "2 limit · ok", make), short=True)
sys.stdout.buffer.write(msgspec.json.encode(row))
"""


def made(body: str) -> Row:
    """The row of a fault, injected in its own process as the suite does it."""
    script = ROOT_SCRIPT.replace("{body}", body)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=100, check=True)
    return msgspec.json.decode(done.stdout, type=Row)


def test_a_fault_that_ends_as_expected_is_good() -> None:
    row = made("""at.see(at.run(at.agent("say('here')"), "1").ended())""")
    assert (row.good, row.lost, row.left) == (True, 0, 0), row.seen


def test_an_unexpected_outcome_is_wrong() -> None:
    row = made("""at.see(at.run(at.agent("say('<promise>COMPLETE</promise>')"), "1").ended())""")
    assert (row.good, row.seen) == (False, "0 complete · ok")


def test_a_byte_that_the_journal_lacks_is_counted() -> None:
    hidden = (
        "say('here'); os.write(os.open(os.environ['FAULT_SIDE'] + '/0001.stdout', os.O_WRONLY | os.O_APPEND), b'xyz')"
    )
    row = made(f"""at.see(at.run(at.agent({hidden!r}), "1").ended())""")
    assert (row.good, row.lost) == (False, 3), row.seen


def test_a_process_left_behind_is_counted_even_with_an_empty_environment() -> None:
    row = made(
        """at.see(at.run(at.agent("say('here')"), "1").ended())
    subprocess.Popen(["env", "-i", "setsid", "sleep", "97"])"""
    )
    assert (row.good, row.left) == (False, 1), row.seen
    assert "sleep 97" in row.seen


def test_a_hang_is_a_row() -> None:
    row = made("""at.run(at.agent("time.sleep(97)")).ended(0.5)""")
    assert row.good is False
    assert row.seen.startswith("hang: ")


@pytest.mark.parametrize("name", ["SIGINT of ralph", "SIGHUP of ralph"])
def test_a_fault_sends_signals_even_if_the_suite_ignores_them(name: str) -> None:
    """As in a background job or under nohup."""

    def ignore() -> None:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)

    command = [sys.executable, "-m", "faults.one", name, "short"]
    done = subprocess.run(command, capture_output=True, timeout=100, check=True, preexec_fn=ignore)
    row = msgspec.json.decode(done.stdout, type=Row)
    assert row.good is True, row.seen


@pytest.mark.parametrize(
    ("written", "kept", "lost"),
    [
        (b"", b"", 0),
        (b"abc", b"", 3),
        (b"0123456789" * 50, b"0123456789" * 50, 0),
        (b"0123456789" * 50, b"0123456789" * 50 + b"more", 0),
        (b"0123456789" * 50, b"0123456789" * 49, 10),
        (bytes(range(250)) + bytes(range(250, 0, -1)), bytes(range(240)) + bytes(range(240, 0, -1)), 20),
        (b"abc", b"xyz", 3),
    ],
)
def test_bytes_missing_in_the_middle_and_at_the_end_are_counted(
    tmp_path: Path, written: bytes, kept: bytes, lost: int
) -> None:
    (tmp_path / "side").write_bytes(written)
    (tmp_path / "raw").write_bytes(kept)
    assert missing(tmp_path / "side", tmp_path / "raw") == lost


def test_the_table_shows_what_is_wrong_and_what_was_not_possible() -> None:
    rows = [
        Row("a", "0", "0", True, 0, 0, 1.0),
        Row("b", "0", "1; BUT x | y", False, 7, 1, 1.0),
        Row("c", "0", "not possible here: z", None, None, 0, 1.0),
    ]
    lines = render(rows).splitlines()
    assert "as expected" in lines[2]
    assert "WRONG: 1; BUT x ¦ y" in lines[3]
    assert "not possible here: z" in lines[4]
    assert summary(rows, 3.0).startswith("3 faults: 1 wrong, 1 not possible here; 7 bytes lost, 1 process left")


def test_every_fault_of_the_scripted_model_is_met_by_two_real_agents() -> None:
    from ralph.testing.model import SCENARIOS

    for name, scenario in SCENARIOS.items():
        if scenario.fault is not None:
            assert sum(f": {name} (" in fault for fault in every()) >= 2, name


def test_the_table_in_the_documentation_has_every_fault_and_what_is_expected() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "faults.md").read_text()
    rows = {tuple(cell.strip() for cell in line.split("|")[1:3]) for line in page.splitlines() if line.startswith("|")}
    for fault in every().values():
        assert (fault.name.replace("|", "¦"), fault.expected) in rows
