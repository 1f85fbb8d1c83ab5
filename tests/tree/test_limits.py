"""A look that cannot be finished, a snapshot on disk, and signatures that are kept for the next run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ralph.loop.describe import describe_changes
from ralph.system import interrupt
from ralph.tree.inspector import Inspector
from ralph.tree.snapshot import Changes, decoded

from .test_inspector import Watch


def test_a_look_that_is_cut_short_never_means_that_nothing_changed(repo: Path) -> None:
    whole, cut = Inspector(repo), Inspector(repo, limit=-1)
    before, after = whole.take(), cut.take()
    assert after.incomplete
    for changes in (cut.compare(before, after), cut.compare(after, before), cut.compare(after, after)):
        assert changes.changed
        assert changes.files == []  # what was not looked at was not deleted
        assert "longer than" in changes.unknown
        assert describe_changes(changes).startswith("unknown whether files changed")
    assert after.encoded() is None


def test_what_is_unknown_is_said() -> None:
    assert describe_changes(Changes(["a"], None, True)) == "an unknown number of commits, 1 file changed"
    assert describe_changes(Changes(["a"], 0, True, "cut short")) == "at least 1 file changed"


def test_after_a_request_to_stop_a_small_tree_is_still_looked_at(repo: Path) -> None:
    with interrupt.counted_by(lambda: 1):
        assert not Inspector(repo).take().incomplete


def test_a_snapshot_survives_being_stored(repo: Path) -> None:
    (repo / "new\udcff\n").write_text("x")
    (repo / ".gitignore").write_text("*.log\n")
    snapshot = Watch(repo).before
    data = snapshot.encoded()
    assert data is not None
    assert decoded(data) == snapshot
    for damaged in (b"", b"{}", data[:-3], data[:20] + b"\0" + data[21:]):
        assert decoded(damaged) is None


def test_a_snapshot_of_many_files_is_small(repo: Path) -> None:
    first = Watch(repo).before
    names = {b"folder%d/" % n: {b"name%d" % m: b"f0:%16d" % (n * m) for m in range(100)} for n in range(1000)}
    data = msgspec.structs.replace(first, files=names).encoded()
    assert data is not None
    assert len(data) < 3_000_000


@pytest.mark.endurance
def test_signatures_are_kept_for_the_next_run(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    small = Inspector(repo)
    small.take()
    small.save()
    assert not list(state.rglob("*"))  # reading them again takes no time
    for number in range(40):
        with (repo / f"large{number}").open("wb") as file:
            file.truncate(32 << 20)
    large = Inspector(repo)
    before = large.take()
    large.save()
    (kept,) = [path for path in state.rglob("*") if path.is_file()]
    assert kept.stat().st_mode & 0o777 == 0o600
    with (repo / "large7").open("r+b") as file:
        file.write(b"x")
    later = Inspector(repo)
    assert later.compare(before, later.take()).files == ["large7"]
    kept.write_bytes(b"damaged")
    assert Inspector(repo).take().files == later.take().files


def test_a_relative_path_has_the_same_ignored_files(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / ".gitignore").write_text("*.log\n")
    monkeypatch.chdir(repo.parent.parent)
    inspector = Inspector(Path(repo.parent.name, repo.name))
    before = inspector.take()
    (repo / "new.log").write_text("x")
    (repo / "new").write_text("x")
    assert inspector.compare(before, inspector.take()).files == ["new"]
