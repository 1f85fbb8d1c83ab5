"""Codex's JSON of every generation, beyond what the recordings show."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.reading import events_of, metas, texts, verdict_of

sys.path.insert(0, str(Path(__file__).parent))


from fuzz.damage import damaged, recorded, text_line, words_line

from ralph.agents.codex.errors import _reset
from ralph.transcripts.events import (
    Tag,
    ToolEnd,
    ToolOutput,
    ToolStart,
    ToolStatus,
    UsageEvent,
    decode,
    encode,
)

events = partial(events_of, "codex")
verdict = partial(verdict_of, "codex")
REAL = recorded("codex")
MARKER = "<promise>COMPLETE</promise>"
THREAD = {"type": "thread.started", "thread_id": "t-1"}
TURN = {"type": "turn.started"}


def item(kind: str, event: str = "completed", key: str = "item_1", **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{event}", "item": {"id": key, "type": kind, **fields}}


def done(**usage: int) -> dict[str, Any]:
    return {"type": "turn.completed", "usage": usage}


def failed(message: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": message}}


def legacy(kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": "0", "msg": {"type": kind, **fields}}


class TestTurns:
    def test_a_turn_without_an_end_is_no_success_despite_exit_code_0(self) -> None:
        assert verdict(THREAD, TURN, item("agent_message", text=MARKER))["outcome"] == "failed"
        assert verdict(THREAD, TURN, item("agent_message", text=MARKER), done())["completed"] is True

    def test_an_error_line_decides_only_if_no_turn_ends_after_it(self) -> None:
        wrong = {"type": "error", "message": "unexpected status 401 Unauthorized"}
        assert verdict(THREAD, TURN, wrong)["outcome"] == "auth"
        assert verdict(THREAD, TURN, wrong, item("agent_message", text="over it"), done())["outcome"] == "ok"

    def test_a_warning_item_changes_nothing(self) -> None:
        warning = item("error", message="unexpected status 429 Too Many Requests")
        assert verdict(THREAD, TURN, warning, item("agent_message", text="hi"), done())["outcome"] == "ok"

    def test_the_cause_of_a_retry_decides_if_codex_is_killed_while_it_reconnects(self) -> None:
        again = {"type": "error", "message": "Reconnecting... 3/5 (exceeded retry limit, last status: 429 Too Many)"}
        found = events(THREAD, TURN, again)
        assert metas(found, "retry")[0]["attempt"] == 3
        assert metas(found, "retry")[0]["class"] == "rate_limited"
        assert verdict(THREAD, TURN, again, code=124)["outcome"] == "rate_limited"
        words = item("agent_message", text="got through")
        assert verdict(THREAD, TURN, again, words, code=124)["outcome"] == "failed"

    @pytest.mark.parametrize(
        ("message", "outcome"),
        [
            ("You've hit your usage limit. Upgrade to Pro or try again in 3 days 2 hours 5 minutes.", "quota"),
            ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limited"),
            ("Your input exceeds the context window of this model.", "context_exceeded"),
            ("Selected model is at capacity. Please try a different model.", "overloaded"),
            ("stream disconnected before completion: idle timeout waiting for SSE", "failed"),
            ("Missing environment variable: `OPENAI_API_KEY`.", "auth"),
        ],
    )
    def test_the_reason_of_a_failed_turn_decides(self, message: str, outcome: str) -> None:
        assert verdict(THREAD, TURN, failed(message), code=1)["outcome"] == outcome

    def test_the_end_of_a_limit_is_known_if_the_message_gives_it(self) -> None:
        limit = "You've hit your usage limit. Try again in 3 days 2 hours 5 minutes."
        assert verdict(THREAD, failed(limit), code=1)["retry_after"] == 3 * 86400 + 2 * 3600 + 5 * 60
        dated = "You've hit your usage limit. To get more access, try again at Oct 3rd, 2031 1:05 PM."
        assert verdict(THREAD, failed(dated), code=1)["resets_at"] is not None
        assert verdict(THREAD, failed("You've hit your usage limit."), code=1)["resets_at"] is None

    def test_usage_is_the_total_of_the_thread_and_is_counted_once(self) -> None:
        found = verdict(
            THREAD, TURN, done(input_tokens=100, output_tokens=10), TURN, done(input_tokens=250, output_tokens=30)
        )
        assert found["usage"] == {"prompt_tokens": 250, "completion_tokens": 30, "total_tokens": 280}

    def test_counts_that_are_not_given_are_absent(self) -> None:
        assert verdict(THREAD, TURN, item("agent_message", text="x"), {"type": "turn.completed"})["usage"] == {}
        usage = verdict(THREAD, TURN, done(input_tokens=5))["usage"]
        assert usage == {"prompt_tokens": 5, "total_tokens": 5}

    def test_the_session_is_reported_once(self) -> None:
        assert len(metas(events(THREAD, THREAD, TURN, done()), "session")) == 1


class TestItems:
    def test_a_call_that_has_ended_does_not_end_again(self) -> None:
        one, again = (item("command_execution", command="ls", exit_code=code) for code in (0, 1))
        assert [type(e) for e in events(THREAD, TURN, one, again)[1:-1]] == [ToolStart, ToolEnd]

    def test_a_call_that_is_only_reported_when_finished_starts_and_ends(self) -> None:
        found = events(THREAD, item("file_change", changes=[{"path": "a", "kind": "add"}], status="completed"), done())
        start, end = (e for e in found if isinstance(e, ToolStart | ToolEnd))
        assert isinstance(start, ToolStart)
        assert isinstance(end, ToolEnd)
        assert start.tool.name == end.tool.name == "apply_patch"
        assert end.tool.status is ToolStatus.OK

    def test_updates_do_not_start_it_again(self) -> None:
        found = events(
            THREAD,
            item("command_execution", "started", command="ls", status="in_progress"),
            item("command_execution", "updated", command="ls", aggregated_output="a", status="in_progress"),
            item("command_execution", command="ls", aggregated_output="a\nb\n", exit_code=0, status="completed"),
        )
        assert [type(e) for e in found if isinstance(e, ToolStart | ToolOutput | ToolEnd)] == [
            ToolStart,
            ToolOutput,
            ToolEnd,
        ]

    @pytest.mark.parametrize(
        ("fields", "status"),
        [
            ({"exit_code": 0, "status": "completed"}, ToolStatus.OK),
            ({"exit_code": 7}, ToolStatus.FAIL),
            ({"status": "failed"}, ToolStatus.FAIL),
            ({"status": "declined"}, ToolStatus.FAIL),
            ({"status": "something new"}, ToolStatus.UNKNOWN),
            ({"exit_code": "0", "status": "completed"}, ToolStatus.OK),
        ],
    )
    def test_status_of_a_command(self, fields: dict[str, Any], status: ToolStatus) -> None:
        found = events(THREAD, item("command_execution", command="x", **fields))
        assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [status]

    def test_a_refused_command_needs_a_person_unless_another_way_was_found(self) -> None:
        refused = item("command_execution", command="rm x", status="declined")
        words = item("agent_message", key="item_2", text="I may not.")
        assert verdict(THREAD, TURN, refused, words, done())["outcome"] == "permission_denied"
        other = item("command_execution", key="item_3", command="mv x y", exit_code=0, status="completed")
        assert verdict(THREAD, TURN, refused, other, words, done())["outcome"] == "ok"

    def test_mcp_results_and_errors_are_output(self) -> None:
        good = item("mcp_tool_call", server="db", tool="q", arguments={"a": 1}, status="completed")
        good["item"]["result"] = {"content": [{"type": "text", "text": "row"}]}
        bad = item("mcp_tool_call", key="item_2", server="db", tool="q", error={"message": "no"}, status="failed")
        found = events(THREAD, good, bad)
        assert [e.text for e in found if isinstance(e, ToolOutput)] == ["row", "no"]
        assert [e.tool.name for e in found if isinstance(e, ToolStart)] == ["db.q", "db.q"]
        assert [e.tool.status for e in found if isinstance(e, ToolEnd)] == [ToolStatus.OK, ToolStatus.FAIL]

    def test_a_field_of_an_unexpected_type_costs_only_that_field(self) -> None:
        odd = item("command_execution", command=["ls"], aggregated_output=7, exit_code=1, duration_ms="x", status={})
        start, end = (e for e in events(THREAD, odd) if isinstance(e, ToolStart | ToolEnd))
        assert isinstance(start, ToolStart)
        assert isinstance(end, ToolEnd)
        assert start.tool.input == {"command": ["ls"]}
        assert (end.tool.status, end.tool.duration_ms) == (ToolStatus.FAIL, None)

    def test_an_unknown_kind_of_item_is_kept_whole(self) -> None:
        strange, growing = item("hologram", shape="cat"), item("hologram", "updated", shape="c")
        assert metas(events(THREAD, growing, strange, {"type": "turn.paused", "why": 1}), "unknown") == [
            {"kind": "unknown", "line": growing},
            {"kind": "unknown", "line": strange},
            {"kind": "unknown", "line": {"type": "turn.paused", "why": 1}},
        ]

    def test_words_that_were_never_completed_are_not_lost(self) -> None:
        found = events(THREAD, TURN, item("agent_message", "updated", text="half a sen"))
        assert texts(found) == ["half a sen"]

    def test_growing_words_are_reported_once(self) -> None:
        found = events(
            item("agent_message", "started", text="one"),
            item("agent_message", "updated", text="one two"),
            item("agent_message", text="one two three"),
        )
        assert texts(found) == ["one two three"]

    def test_a_plan_is_shown_when_it_changes(self) -> None:
        steps = [{"text": "a", "completed": True}, {"text": "b", "completed": False}]
        found = events(THREAD, item("todo_list", "started", items=steps), item("todo_list", items=steps))
        assert texts(found, Tag.SYS) == ["[x] a\n[ ] b"]

    def test_line_separators_in_strings_do_not_end_a_line(self) -> None:
        text = f"a\u2028b\u2029c\u0085d\n{MARKER}"
        assert texts(events(THREAD, item("agent_message", text=text))) == [text]
        assert verdict(THREAD, TURN, item("agent_message", text=text), done())["completed"] is True

    def test_the_marker_counts_only_in_the_last_message(self) -> None:
        shell = item("command_execution", key="i2", command="x", exit_code=0, aggregated_output=MARKER)
        later = item("agent_message", key="i3", text="not yet")
        first = item("agent_message", text=MARKER)
        assert verdict(THREAD, TURN, first, shell, later, done())["completed"] is False


class TestOlder:
    def test_the_first_total_of_a_resumed_session_includes_earlier_runs(self) -> None:
        def count(total: int, last: int) -> dict[str, Any]:
            return legacy(
                "token_count",
                info={"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": last}},
            )

        assert verdict(count(1000, 100), count(1000, 100), count(1150, 150))["usage"]["prompt_tokens"] == 250

    def test_counts_in_the_message_itself(self) -> None:
        found = verdict(legacy("token_count", input_tokens=7, output_tokens=2), legacy("token_count", info=None))
        assert found["usage"] == {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}

    def test_counts_in_the_message_itself_are_those_of_one_call(self) -> None:
        """0.29 reports them so, even if two calls use the same number."""
        calls = [legacy("token_count", input_tokens=n, output_tokens=2) for n in (7, 9, 9)]
        assert verdict(*calls)["usage"] == {"prompt_tokens": 25, "completion_tokens": 6, "total_tokens": 31}

    def test_output_that_ends_in_the_middle_of_a_call_is_no_success(self) -> None:
        """The launcher exits with 0 when a signal ends Codex."""
        begun = legacy("exec_command_begin", call_id="c1", command=["ls"])
        assert verdict(begun)["outcome"] == "failed"
        assert verdict(begun, legacy("exec_command_end", call_id="c1", exit_code=0))["outcome"] != "failed"

    def test_streamed_words_are_reported_once(self) -> None:
        found = events(
            legacy("agent_message_delta", delta="Done.\n<prom"),
            legacy("agent_message_delta", delta="ise>COMPLETE</promise>"),
            legacy("agent_message", message=f"Done.\n{MARKER}"),
        )
        assert texts(found) == ["Done.", MARKER]

    def test_an_error_is_fatal_despite_exit_code_0(self) -> None:
        assert verdict(legacy("error", message="unexpected status 403 Forbidden"))["outcome"] == "auth"

    def test_the_prompt_is_not_the_agents_words(self) -> None:
        found = events({"prompt": f"say\n{MARKER}"}, legacy("agent_message", message="no"))
        assert texts(found, Tag.PROMPT) == [f"say\n{MARKER}"]
        assert texts(found) == ["no"]

    def test_unknown_types_are_kept(self) -> None:
        strange = legacy("hologram", x=1)
        assert metas(events(strange), "unknown") == [{"kind": "unknown", "line": strange}]


def test_json_on_a_terminal() -> None:
    line = json.dumps(item("agent_message", text="hi"))
    assert texts(events(json.dumps(THREAD) + "\r", f"{line}\r\x1b[?25h")) == ["hi"]


def test_json_that_the_agent_wrote_is_words() -> None:
    assert texts(events('{"answer": 42}')) == ['{"answer": 42}']


def test_a_cut_line_is_shown_and_reported() -> None:
    found = events(THREAD, '{"type":"item.completed","item":{"id":"item_1","te')
    assert len(metas(found, "parse_error")) == 1
    assert any("item_1" in text for text in texts(found, Tag.SYS))


def test_an_error_before_the_start_is_read_from_stderr() -> None:
    missing = "Error: thread/resume failed: no rollout found for thread id x"
    assert verdict(stderr=missing, code=1)["outcome"] == "failed"
    assert "no rollout found" in verdict(stderr=missing, code=1)["why"]


@given(st.lists(damaged(REAL) | text_line(), max_size=12))
def test_never_raises_and_what_comes_out_is_rtf1(lines: list[str]) -> None:
    for event in events(*lines):
        assert decode(encode(event)) is not None


@given(st.lists(words_line(), min_size=1, max_size=10), st.booleans())
def test_no_line_is_lost(lines: list[str], after_json: bool) -> None:
    found = events(*([THREAD] if after_json else []), *lines)
    assert texts(found, Tag.SYS if after_json else Tag.AI) == lines


def test_tools_start_and_end_once_in_every_recording() -> None:
    for path in sorted((Path(__file__).parents[2] / "fixtures" / "codex").glob("*/*.jsonl")):
        found = events(*path.read_text().split("\n"))
        started = [e.tool.id for e in found if isinstance(e, ToolStart)]
        ended = [e.tool.id for e in found if isinstance(e, ToolEnd)]
        assert started == sorted(set(started), key=started.index), path
        if "sigterm" not in path.name:  # this release does not report the call that was cut short
            assert sorted(started) == sorted(ended), path
        assert all(e.usage.total_tokens is None or e.usage.total_tokens > 0 for e in found if isinstance(e, UsageEvent))


@pytest.mark.parametrize(
    "content", [[{"type": "output_text", "text": "done"}, {"type": "text", "text": MARKER}], ["done", MARKER]]
)
@pytest.mark.parametrize("field", ["content", "text"])
def test_a_message_may_consist_of_blocks(content: list[Any], field: str) -> None:
    item = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", field: content}}
    assert texts(events_of("codex", item)) == [f"done\n{MARKER}"]
    assert verdict_of("codex", item, {"type": "turn.completed", "usage": {}})["completed"]


def test_a_whole_message_that_differs_from_its_fragments_is_shown_whole() -> None:
    def msg(kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": "0", "msg": {"type": kind, **fields}}

    same = [msg("agent_message_delta", delta="one "), msg("agent_message", message="one two")]
    assert texts(events_of("codex", *same)) == ["one two"]
    other = [msg("agent_message_delta", delta="let me see what there is to do"), msg("agent_message", message=MARKER)]
    assert texts(events_of("codex", *other))[-1] == MARKER


@pytest.mark.parametrize(
    ("text", "hours", "exact"),
    [
        ("6:14 AM", 3.0, "06:14"),
        ("6:14\u202fAM", 3.0, "06:14"),
        ("6:14 PM", 15.0, "18:14"),
        ("12:05 AM", 20.9, "00:05"),
        ("3:00 AM", -0.2, "03:00"),
        ("18:14", 15.0, "18:14"),
        ("Nov 18th, 2026 6:14 AM", 51.0, "06:14"),
        ("Nov 18, 2026, 6:14 AM", 51.0, "06:14"),
        ("Nov 18 at 6:14 AM", 51.0, "06:14"),
        ("January 2nd, 6:14 AM", 47 * 24 + 3.0, "06:14"),
    ],
)
def test_the_local_time_at_which_a_limit_ends_is_understood(text: str, hours: float, exact: str) -> None:
    now = datetime(2026, 11, 16, 3, 12).astimezone()
    at = _reset(f"You've hit your usage limit. Visit https://x.example or try again at {text}.", now)
    assert at is not None
    assert datetime.fromtimestamp(at).strftime("%H:%M") == exact
    assert at - now.timestamp() == pytest.approx(hours * 3600, abs=600)


def test_a_zone_is_honoured_and_nonsense_is_no_time() -> None:
    now = datetime(2026, 11, 16, 3, 12, tzinfo=UTC)
    assert _reset("try again at 6:14 AM UTC", now) == datetime(2026, 11, 16, 6, 14, tzinfo=UTC).timestamp()
    berlin = _reset("try again at 6:14 AM (Europe/Berlin)", now)
    assert berlin == datetime(2026, 11, 16, 5, 14, tzinfo=UTC).timestamp()
    for text in ("25:61 AM", "Foo 99th, 2026 6:14 AM", "6:14 AM (No/Where)", "once", "99:99"):
        assert _reset(f"try again at {text}", now) is None


def test_a_limit_with_a_time_of_day_reaches_the_verdict() -> None:
    message = "You've hit your usage limit. Upgrade to Pro or try again at 6:14 AM."
    verdict = verdict_of("codex", {"type": "turn.failed", "error": {"message": message}}, code=1)
    assert verdict["outcome"] == "quota"
    assert datetime.fromtimestamp(verdict["resets_at"]).strftime("%H:%M") == "06:14"


def test_waiting_for_the_network_is_a_retry_and_no_overload() -> None:
    message = "Reconnecting... waiting for network (Connection failed: error sending request)"
    start = {"type": "thread.started", "thread_id": "t"}
    (again,) = metas(events_of("codex", start, {"type": "error", "message": message}), "retry")
    assert again["class"] == "failed"
