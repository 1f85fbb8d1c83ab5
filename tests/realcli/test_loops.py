"""ralph reports exactly what a scripted model makes a real agent do: the verdict, the counts, the files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ralph.testing.model.scenarios import CONTENT, FILE, SCENARIOS
from ralph.testing.model.script import usage_of

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.realcli

#: Ends a CLI that keeps retrying; ralph must know the outcome by then.
_IMPATIENT = ("--idle-timeout", "120s", "--wall-timeout", "130s", "--max-failures", "1", "1")


def test_success_completes_with_tools_usage_and_session_known(bench: Bench) -> None:
    loop = bench.run("success", "3")
    assert loop.code == 0, loop.shown
    (iteration,) = loop.iterations
    assert iteration["outcome"] == "ok"
    assert iteration["completed"] is True
    assert (loop.workdir / FILE).read_text() == CONTENT
    assert iteration["tools"]["started"] == 2
    assert iteration["tools"]["fail"] == 0
    lacks = bench.real.lacks
    if "session" not in lacks:
        assert iteration["session_id"]
    if "usage" not in lacks:
        turns = [usage_of(step) for step in range(3)]
        assert iteration["usage"]["prompt_tokens"] == sum(t.input for t in turns)
        assert iteration["usage"]["cached_tokens"] == sum(t.cached for t in turns)
        assert iteration["usage"]["completion_tokens"] == sum(t.output for t in turns)


def test_a_failing_command_is_counted_and_stops_nothing(bench: Bench) -> None:
    loop = bench.run("failtool", "3")
    assert loop.code == 0, loop.shown
    (iteration,) = loop.iterations
    assert iteration["outcome"] == "ok"
    assert iteration["tools"]["started"] == 2
    assert iteration["tools"]["fail"] == (1 if bench.real.tells_failed_command else 0)


def test_a_quoted_marker_does_not_complete(bench: Bench) -> None:
    loop = bench.run("quote", "2")
    assert loop.code == 2, loop.shown
    assert [i["completed"] for i in loop.iterations] == [False, False]
    assert [i["outcome"] for i in loop.iterations] == ["ok", "ok"]


def test_a_wrong_key_needs_a_person(bench: Bench) -> None:
    loop = bench.run("error401", *_IMPATIENT)
    assert loop.code == 5, loop.shown
    assert [i["outcome"] for i in loop.iterations] == ["auth"]


def test_too_many_requests_are_a_rate_limit(bench: Bench) -> None:
    loop = bench.run("error429", "--on-limit", "stop", *_IMPATIENT)
    assert [i["outcome"] for i in loop.iterations] == ["rate_limited"], loop.shown
    assert loop.code == 5


def test_a_prompt_of_300_kb_reaches_the_model_whole_or_is_refused_before_the_start(bench: Bench) -> None:
    body = "\n".join(f"{n:06d} naïve – 日本 line of a long prompt" for n in range(7000))
    prompt = f"BEGINNING\n{body}\nEND OF THE PROMPT"
    assert len(prompt.encode()) > 300_000
    loop = bench.run("success", "1", prompt=prompt + "\n")
    if bench.real.long_prompt:
        assert loop.code == 0, loop.shown
        assert any(prompt in sent for sent in loop.prompts)
    else:
        assert loop.code == 64, loop.shown
        assert loop.requests == []


def test_a_continued_session_knows_what_was_said_and_counts_nothing_twice(bench: Bench) -> None:
    if "resume" in bench.real.lacks:
        pytest.skip("its sessions cannot be continued without a terminal")
    loop = bench.run("quote", "--continue-session", "2")
    assert loop.code == 2, loop.shown
    first, second = loop.iterations
    assert [first["outcome"], second["outcome"]] == ["ok", "ok"]
    said_before = [SCENARIOS["quote"].turns[-1].text in json.dumps(r.body) for r in loop.requests if r.main]
    assert said_before == [False, False, True, True]
    if not bench.real.lacks & {"session", "same session"}:
        assert first["session_id"] == second["session_id"]
    if "usage" not in bench.real.lacks:
        for iteration in (first, second):
            assert iteration["usage"]["prompt_tokens"] == usage_of(0).input + usage_of(1).input
