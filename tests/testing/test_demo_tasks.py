"""The tasks of the demo: three are done right, one in haste."""

from __future__ import annotations

import re

import pytest

from ralph.testing.demo_tasks import ASCII_WORDS, HASTY_WORDS, RIGHT_WORDS, TASKS, Entry, entries, repaired, tick

LIST = "# Tasks\n\n- [ ] one: first\n- [x] two: second\n- [ ] three\n* [ ] not a task\n"


def test_entries_are_read_in_order() -> None:
    assert entries(LIST) == [Entry("one", False), Entry("two", True), Entry("three", False)]


@pytest.mark.parametrize("name", ["one", "three"])
def test_a_tick_changes_only_one_line(name: str) -> None:
    ticked = tick(LIST, name)
    assert [e.name for e in entries(ticked) if e.done] == sorted([name, "two"], key=["one", "two", "three"].index)
    assert tick(ticked, name) == ticked


def test_a_tick_does_not_match_a_longer_name() -> None:
    assert tick("- [ ] one more: x\n- [ ] one: y\n", "one") == "- [ ] one more: x\n- [x] one: y\n"


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda t: t.name)
def test_a_finished_task_is_not_done_again(task) -> None:  # type: ignore[no-untyped-def]
    library = f"import re\n\n\ndef words(text):\n    return {ASCII_WORDS}\n"
    done = task.apply(library)
    assert done != library
    assert task.apply(done) == done


@pytest.mark.parametrize(
    ("code", "accents", "apostrophe"),
    [(ASCII_WORDS, False, True), (HASTY_WORDS, True, False), (RIGHT_WORDS, True, True)],
)
def test_only_the_right_pattern_finds_both(code: str, accents: bool, apostrophe: bool) -> None:
    def words(text: str) -> list[str]:
        found = eval(code, {"re": re, "text": text})
        assert isinstance(found, list)
        return found

    assert (words("Crème brûlée") == ["Crème", "brûlée"]) is accents
    assert ("Don't" in words("Don't panic!")) is apostrophe


def test_the_repair_turns_the_hasty_pattern_into_the_right_one() -> None:
    assert repaired(f"return {HASTY_WORDS}") == f"return {RIGHT_WORDS}"
    assert repaired(f"return {ASCII_WORDS}") == f"return {ASCII_WORDS}"
