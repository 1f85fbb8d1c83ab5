"""`ollama run` and the HTTP API: what the recordings do not cover."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fuzz.damage import text_line, words_line
from hypothesis import given
from hypothesis import strategies as st

from agents.reading import texts
from ralph.agents.ollama.adapter import OllamaAdapter
from ralph.judging.replay import replay
from ralph.transcripts import deltas
from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent, decode, encode

MARKER = "<promise>COMPLETE</promise>"


def events(*lines: str, stderr: tuple[str, ...] = ()) -> list[TranscriptEvent]:
    adapter = OllamaAdapter()
    found = [e for line in stderr for e in adapter.feed_stderr(line)]
    return found + [e for line in lines for e in adapter.feed(line)] + adapter.flush()


def verdict(*lines: str, stderr: tuple[str, ...] = (), code: int = 0) -> dict[str, Any]:
    out, err = ("".join(f"{line}\n" for line in part).encode() for part in (lines, stderr))
    *_, (last, _) = replay(out, err, "ollama", code, None, None)
    assert isinstance(last[0], Meta)
    return last[0].meta


def chunk(text: str = "", *, done: bool = False, thinking: str = "", **more: Any) -> str:
    message = {"role": "assistant", "content": text, **({"thinking": thinking} if thinking else {})}
    return json.dumps({"model": "qwen3", "message": message, "done": done, **more})


class TestRun:
    def test_a_marker_after_a_word_wrap_is_not_on_a_line_of_its_own(self) -> None:
        lines = ("I will not print the marker yet, that is, not <prom\x1b[5D\x1b[K", MARKER, "", "")
        assert texts(events(*lines))[0] == f"I will not print the marker yet, that is, not {MARKER}"
        assert verdict(*lines)["completed"] is False
        assert verdict("Done.", MARKER, "")["completed"] is True

    def test_word_wrap_counts_columns_and_not_characters(self) -> None:
        assert texts(events("空は青 漢字\x1b[4D\x1b[K", "漢字です")) == ["空は青 漢字です"]

    def test_a_wrap_can_go_back_further_than_the_line(self) -> None:
        assert texts(events("x" * 300_000 + "\x1b[999999D\x1b[K", "y")) == ["y"]

    def test_a_marker_in_thoughts_does_not_complete(self) -> None:
        found = verdict("Thinking...", MARKER, "...done thinking.", "", "No.")
        assert found["completed"] is False
        assert texts(events("Thinking...", MARKER, "...done thinking.", "", "No.")) == ["", "No."]

    def test_thoughts_alone_are_not_an_answer(self) -> None:
        assert verdict("Thinking...", "hm")["outcome"] == "empty"

    def test_thinking_later_in_an_answer_is_part_of_it(self) -> None:
        assert texts(events("First.", "Thinking...", "x")) == ["First.", "Thinking...", "x"]

    def test_a_json_answer_is_an_answer(self) -> None:
        assert texts(events('{"answer": 42}')) == ['{"answer": 42}']

    @pytest.mark.parametrize(
        ("line", "outcome"),
        [
            ("Error: could not connect to ollama server, run 'ollama serve' to start it", "failed"),
            ("Error: unauthorized", "auth"),
            ("Error: 429 Too Many Requests: you have reached your hourly usage limit", "quota"),
            ("\x1b[?25l⠋ \x1b[?25h\x1b[2K\x1b[1GError: 503 Service Unavailable", "overloaded"),
        ],
    )
    def test_errors(self, line: str, outcome: str) -> None:
        assert verdict(stderr=(line,), code=1)["outcome"] == outcome

    def test_a_cloud_model_without_login_exits_with_0(self) -> None:
        assert (
            verdict("You need to be signed in to Ollama to run Cloud models.", "", "To sign in:")["outcome"] == "auth"
        )

    def test_a_spinner_is_not_shown(self) -> None:
        assert events(stderr=("\x1b[?25l⠋ \x1b[?25h\x1b[?25l⠙ \x1b[?25h",)) == []


class TestApi:
    def test_fragments_are_joined_and_the_last_line_gives_usage(self) -> None:
        lines = (
            chunk(thinking="let me "),
            chunk(thinking="think"),
            chunk("Done.\n<prom"),
            chunk("ise>COMPLETE</promise>"),
            chunk(done=True, done_reason="stop", prompt_eval_count=12, eval_count=5),
        )
        assert texts(events(*lines)) == ["Done.", MARKER]
        assert texts(events(*lines), Tag.THINK) == ["let me think"]
        found = verdict(*lines)
        assert found["completed"] is True
        assert found["usage"] == {
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "total_tokens": 17,
            "model": "qwen3",
        }

    def test_an_erase_sequence_after_json_is_not_a_word_wrap(self) -> None:
        assert texts(events(chunk("a"), chunk("b", done=True) + "\x1b[K")) == ["ab"]

    def test_truncated_output_is_a_failure(self) -> None:
        assert verdict(chunk(MARKER))["outcome"] == "failed"

    def test_an_error_in_the_stream(self) -> None:
        assert verdict(chunk("half"), '{"error": "unexpected EOF"}')["outcome"] == "failed"

    def test_the_generate_endpoint_names_its_text_response(self) -> None:
        line = json.dumps({"model": "m", "response": "hi", "done": True})
        assert texts(events(line)) == ["hi"]


_JSON = st.dictionaries(
    st.sampled_from(["model", "done", "message", "response", "thinking", "error", "eval_count", "x"]),
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.dictionaries(st.just("content"), st.integers()),
).map(json.dumps)


@given(st.lists(_JSON | text_line() | st.sampled_from([chunk("a"), "x\x1b[3D\x1b[K", "Thinking..."]), max_size=10))
def test_damaged_lines_never_raise_and_their_events_can_be_encoded(lines: list[str]) -> None:
    assert all(decode(encode(event)) for event in events(*lines, stderr=tuple(lines)))


@given(st.lists(words_line().filter(lambda t: t[-1] != "\r"), min_size=1))
def test_no_line_is_lost(lines: list[str]) -> None:
    assert texts(events(*lines)) == lines


def test_an_endless_line_is_shown_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltas, "MAX_HELD", 1000)
    adapter = OllamaAdapter()
    shown = [e for n in range(100) for e in adapter.feed(f"piece {n} \x1b[K")]
    assert len(shown) > 3
    whole = "".join(e.text for e in shown + adapter.flush() if isinstance(e, Text))
    assert whole == "".join(f"piece {n} " for n in range(100))
