"""Reading runs: whole ones, growing ones, and those that were cut short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralph.errors import UsageError
from ralph.journal import reader
from ralph.journal.writer import JournalWriter, prepare_state
from ralph.transcripts import meta
from ralph.transcripts.events import Meta, Tag, Text
from ralph.transcripts.meta import Kind
from ralph.trust.approval import Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JournalWriter]:
    with JournalWriter(prepare_state(tmp_path), "20260101-000000-000aa") as writer:
        yield writer


def texts(records: Any) -> list[str]:
    return [r.event.text for r in records]


def test_what_was_written_is_read(journal: JournalWriter) -> None:
    journal.events([Text(Tag.AI, "a"), Text(Tag.SYS, "b\u2028c")])
    assert texts(reader.records(journal.paths)) == ["a", "b\u2028c"]


def test_a_torn_last_line_is_dropped(journal: JournalWriter) -> None:
    journal.events([Text(Tag.AI, "whole"), Text(Tag.AI, "torn")])
    data = journal.paths.events.read_bytes()
    start = data.index(b"\n") + 1
    for length in range(start, len(data)):
        journal.paths.events.write_bytes(data[:length])
        assert texts(reader.records(journal.paths)) == ["whole"]
    journal.paths.events.write_bytes(data)
    assert texts(reader.records(journal.paths)) == ["whole", "torn"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_rubbish_in_the_file_never_raises(journal: JournalWriter, rubbish: bytes) -> None:
    journal.paths.events.write_bytes(
        b'{"seq":1,"time":1.0,"iteration":0,"type":"text","tag":"AI","text":"x"}\n' + rubbish
    )
    assert next(iter(reader.records(journal.paths))).event == Text(Tag.AI, "x")
    list(reader.records(journal.paths))
    reader.last_meta(journal.paths, Kind.RUN_END)


def test_a_growing_run_is_followed_without_loss_or_repetition(journal: JournalWriter) -> None:
    follower = reader.Follower(journal.paths)
    assert texts(follower.read()) == []
    journal.events([Text(Tag.AI, "1")])
    assert texts(follower.read()) == ["1"]
    with journal.paths.events.open("ab") as file:
        file.write(b'{"seq":2,"time":1.0,"iteration":0,"type":"text",')
        file.flush()
        assert texts(follower.read()) == []
        file.write(b'"tag":"AI","text":"2"}\n')
    assert texts(follower.read()) == ["2"]
    assert not follower.ended
    journal.events([Meta({"kind": Kind.RUN_END.value})])
    assert len(list(follower.read())) == 1
    assert follower.ended


def test_a_run_without_events_is_empty(tmp_path: Path, journal: JournalWriter) -> None:
    journal.paths.events.unlink()
    assert list(reader.records(journal.paths)) == []
    assert list(reader.Follower(journal.paths).read()) == []
    assert reader.last_meta(journal.paths, Kind.RUN_END) is None


def test_the_newest_meta_of_a_kind_is_found_from_the_end(journal: JournalWriter) -> None:
    journal.events([meta.notice("old")])
    journal.events([Text(Tag.AI, "x" * 1000)] * 100)
    journal.events([meta.notice("new"), Text(Tag.AI, "y")])
    found = reader.last_meta(journal.paths, Kind.NOTICE)
    assert found is not None
    assert found["text"] == "new"


def test_an_end_longer_than_what_is_looked_at_first_is_found(journal: JournalWriter) -> None:
    """A summary with a thousand long file names."""
    journal.events([Meta({"kind": Kind.RUN_END.value, "files": ["d/" * 100] * 1000})])
    assert reader.last_meta(journal.paths, Kind.RUN_END) is not None


def test_a_missing_or_torn_run_json_gives_nothing(journal: JournalWriter) -> None:
    assert reader.run_facts(journal.paths) == {}
    journal.paths.run_json.write_text('{"run": "x')
    assert reader.run_facts(journal.paths) == {}


def test_the_newest_run_is_the_one_that_began_last_whatever_the_clock_said(tmp_path: Path) -> None:
    """Set back, or an hour back in autumn: its name sorts before that of the run before it."""
    state = prepare_state(tmp_path)
    for name in ("20261025-025900", "20261025-020100"):
        with JournalWriter(state, name):
            pass
    assert reader.find_run(state, None).run_id == "20261025-020100"
    state.latest.unlink()
    assert reader.find_run(state, None).run_id == "20261025-025900"


def test_runs_are_found_upward_by_beginning_or_the_newest(tmp_path: Path) -> None:
    state = prepare_state(tmp_path)
    for name in ("20260101-1", "20260101-2", "20260202-1"):
        with JournalWriter(state, name):
            pass
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    found = reader.find_state(deep, Trust())
    assert [r.run_id for r in reader.list_runs(found)] == ["20260101-1", "20260101-2", "20260202-1"]
    assert reader.find_run(found, None).run_id == "20260202-1"
    assert reader.find_run(found, "latest").run_id == "20260202-1"
    assert reader.find_run(found, "202602").run_id == "20260202-1"
    with pytest.raises(UsageError, match="may be 2 runs"):
        reader.find_run(found, "202601")
    with pytest.raises(UsageError, match="there is no run '1999'"):
        reader.find_run(found, "1999")


def test_where_there_are_no_runs_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no runs"):
        reader.find_state(tmp_path, Trust())
    with pytest.raises(UsageError, match="no runs"):
        reader.find_run(prepare_state(tmp_path), None)


def test_a_run_is_shown_as_it_was_and_raw(ralph: Callable[..., Any], repo: Path) -> None:
    ralph("run", "--agent-cmd", "echo words $RALPH_ITERATION; echo aside >&2", "2")
    shown = ralph("show")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "words 1" in shown.stdout
    assert "words 2" in shown.stdout
    second = ralph("show", "--iteration", "2")
    assert "words 2" in second.stdout
    assert "words 1" not in second.stdout
    assert ralph("show", "--raw").stdout == "words 1\nwords 2\n"
    assert ralph("show", "--raw", "--stderr", "--iteration", "1").stdout == "aside\n"
    events = (repo / ".ralph" / "latest" / "events.jsonl").read_text()
    assert ralph("show", "--json").stdout == events
