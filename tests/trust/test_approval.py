"""Trust as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.trust import store
from ralph.trust.approval import Trust, TrustError, from_environment, required
from ralph.trust.items import Item, of_files

if TYPE_CHECKING:
    from pathlib import Path


def script(folder: Path, text: str = "echo hi\n") -> list[Item]:
    (folder / "check.sh").write_text(text)
    return of_files([folder / "check.sh"], folder)


def test_nothing_is_approved_by_default(tmp_path: Path) -> None:
    wanted = script(tmp_path)
    assert Trust().missing(wanted) == wanted
    with pytest.raises(TrustError, match=r"check\.sh"):
        Trust().require(wanted)


def test_an_approval_covers_one_content(tmp_path: Path) -> None:
    trust = Trust().approving(script(tmp_path))
    assert trust.missing(script(tmp_path)) == []
    changed = script(tmp_path, "rm -rf .\n")
    assert trust.missing(changed) == changed


def test_an_approval_covers_one_directory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    trust = Trust().approving(script(tmp_path / "a"))
    assert trust.missing(script(tmp_path / "b"))


def test_earlier_approvals_are_recalled(tmp_path: Path) -> None:
    wanted = script(tmp_path)
    store.remember(wanted)
    assert required(Trust(), wanted).missing(wanted) == []
    with pytest.raises(TrustError, match="changed since you approved it"):
        required(Trust(), script(tmp_path, "other\n"))


def test_removing_an_approval_does_not_end_a_run_that_has_it(tmp_path: Path) -> None:
    wanted = script(tmp_path)
    store.remember(wanted)
    trust = required(Trust(), wanted)
    assert store.forget(tmp_path)
    trust.require(wanted)


@pytest.mark.parametrize(("value", "everything"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_a_variable_approves_everything_for_one_run(value: str, everything: bool, tmp_path: Path) -> None:
    trust = from_environment({"RALPH_TRUST": value})
    assert trust.everything is everything
    assert (trust.missing(script(tmp_path)) == []) is everything


def test_the_flag_approves_everything_for_one_run() -> None:
    assert from_environment({}, flag=True).everything
