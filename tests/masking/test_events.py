"""Masking events, for whole lines and for lines in pieces."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking.keys import KEYS, ORDINARY, PEM, PEM_BODY
from ralph.masking.events import EventMasker
from ralph.masking.masker import Masker
from ralph.transcripts import meta
from ralph.transcripts.events import (
    Meta,
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
    decode,
)

VALUE = "h0rse/b4ttery-st4ple"
SECRETS = {VALUE: "HORSE_TOKEN"}


def stream(pieces: bool = False, **more: Any) -> EventMasker:
    masker = EventMasker(Masker(SECRETS, **more))
    masker.expect_pieces(pieces)
    return masker


def texts(events: list[TranscriptEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, Text | ToolOutput))


def ai(text: str) -> Text:
    return Text(Tag.AI, text)


def passed(masker: EventMasker, batches: list[list[TranscriptEvent]]) -> list[TranscriptEvent]:
    """All events that come out; their lines are checked against them."""
    out: list[TranscriptEvent] = []
    for batch in (*batches, [meta.notice("the end")]):
        shown, lines = masker.encode(batch)
        assert lines.count(b"\n") == len(shown)
        out += shown
    assert isinstance(out[-1], Meta)
    return out[:-1]


def test_clean_events_are_the_same_objects() -> None:
    events: list[TranscriptEvent] = [ai(text) for text in ORDINARY]
    shown, lines = stream().encode(events)
    assert [json.loads(line)["text"] for line in lines.splitlines()] == ORDINARY
    assert all(a is b for a, b in zip(shown, events, strict=True))


def test_every_field_is_masked_and_the_structure_stays() -> None:
    events: list[TranscriptEvent] = [
        ai(f"one {VALUE}\ntwo {KEYS['github']}"),
        ToolStart(ToolCall("1", "Bash", {"command": f"curl -H 'X: {VALUE}'", "env": [{"K": KEYS["aws"]}]})),
        ToolOutput(ToolRef("1"), f"{VALUE}"),
        meta.error(f"refused: {VALUE}"),
    ]
    shown, lines = stream().encode(events)
    assert shown == [
        ai("one [masked:HORSE_TOKEN]\ntwo [masked:key]"),
        ToolStart(
            ToolCall("1", "Bash", {"command": "curl -H 'X: [masked:HORSE_TOKEN]'", "env": [{"K": "[masked:key]"}]})
        ),
        ToolOutput(ToolRef("1"), "[masked:HORSE_TOKEN]"),
        meta.error("refused: [masked:HORSE_TOKEN]"),
    ]
    assert VALUE.encode() not in lines


def test_a_private_key_is_masked_line_by_line() -> None:
    lines = ["before", *PEM.split("\n"), "after it"]
    out = passed(stream(), [[ai(line)] for line in lines])
    assert texts(out[:1]) == "before"
    assert texts(out[-1:]) == "after it"
    assert {e.text for e in out[1:-1] if isinstance(e, Text)} == {"[masked:key]"}


def test_text_after_the_first_line_of_a_private_key_is_kept() -> None:
    begin = PEM.split("\n")[0]
    out = passed(stream(), [[ai(begin)], [ai("is how such a file begins.")], [ai("word")]])
    assert [e.text for e in out if isinstance(e, Text)] == ["[masked:key]", "is how such a file begins.", "word"]


@pytest.mark.parametrize("secret", [VALUE, *KEYS.values()])
@pytest.mark.parametrize("tool", [False, True])
def test_a_secret_in_two_pieces_is_masked_wherever_it_is_split(secret: str, tool: bool) -> None:
    """Fewer than four characters of it may be shown: they reveal nothing, and users would notice the delay."""
    first = 1 if secret == VALUE else 5 if secret.startswith(("ghp_", "gho_")) else 12
    for cut in range(first, len(secret)):
        parts = [f"it is {secret[:cut]}", f"{secret[cut:]}, yes"]
        events: list[list[TranscriptEvent]] = [[ToolOutput(ToolRef("t"), p) if tool else ai(p)] for p in parts]
        shown = texts(passed(stream(pieces=True), events))
        label = "HORSE_TOKEN" if secret == VALUE else "key"
        rest = secret[cut:]
        if cut < 4:
            assert rest not in shown
        elif shown != f"it is [masked:{label}], yes":
            # The first piece was a complete key already, so the rest could be the next word.
            assert secret != VALUE
            assert shown == f"it is [masked:{label}]{rest}, yes"
            assert len(rest) < 16
            assert not any(c.isdigit() for c in rest)


@given(st.lists(st.integers(0, 200), max_size=30), st.booleans())
def test_a_secret_in_any_pieces_is_masked(where: list[int], together: bool) -> None:
    whole = f"so {VALUE} and {KEYS['anthropic']} and {PEM} there, done"
    edges = [0, *sorted(w % len(whole) for w in where), len(whole)]
    pieces: list[TranscriptEvent] = [ai(whole[a:b]) for a, b in itertools.pairwise(edges) if a < b]
    batches = [pieces] if together else [[piece] for piece in pieces]
    shown = texts(passed(stream(pieces=True), batches))
    assert VALUE[4:] not in shown
    for line in PEM_BODY.split("\n")[1:]:
        assert line not in shown
    assert shown.endswith("there, done")
    assert shown.startswith("so ")


@pytest.mark.parametrize("size", range(4, 33))
def test_a_private_key_is_masked_wherever_its_first_line_is_split(size: int) -> None:
    begin = PEM.index("\n") + 1
    for first in range(1, begin + 1):
        edges = [0, *range(first, begin + 3, size), len(PEM)]
        pieces: list[TranscriptEvent] = [ai(PEM[a:b]) for a, b in itertools.pairwise(edges) if a < b]
        shown = texts(passed(stream(pieces=True), [[piece] for piece in (ai("key: "), *pieces, ai("done"))]))
        assert PEM_BODY.split("\n")[1] not in shown, [piece.text for piece in pieces[:4]]  # type: ignore[union-attr]
        assert shown.endswith("done")


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=12), max_size=12))
def test_pieces_without_secrets_are_unchanged_and_in_order(parts: list[str]) -> None:
    events: list[TranscriptEvent] = [ai(part) for part in parts]
    assert passed(stream(pieces=True), [[event] for event in events]) == events


def test_a_secret_printed_character_by_character_is_masked() -> None:
    text = f"a {VALUE} b"
    shown = texts(passed(stream(pieces=True), [[ai(c)] for c in text]))
    assert VALUE[3:] not in shown
    assert shown.startswith("a ")
    assert shown.endswith(" b")


def test_only_a_possible_start_of_a_secret_is_held_back() -> None:
    masker = stream(pieces=True)
    for text in ORDINARY[:7]:
        assert masker.encode([ai(text)])[0] == [ai(text)]
    assert masker.encode([ai(f"x {VALUE[:8]}")])[0] == []
    assert not masker.waiting(10)
    assert masker.waiting(-1)
    shown, lines = masker.release()
    assert shown == [ai(f"x {VALUE[:8]}")]
    assert lines.count(b"\n") == 1
    assert masker.encode([ai(VALUE[8:] + " y")])[0] == [ai(" y")]  # the rest of the secret is masked even now


def test_the_line_after_a_key_is_not_taken_for_a_part_of_it() -> None:
    out = passed(stream(pieces=True), [[ai(KEYS["openai"])], [ai("hello world")]])
    assert [e.text for e in out if isinstance(e, Text)] == ["[masked:key]", "hello world"]


def test_order_is_kept_when_an_event_is_held_back() -> None:
    events: list[TranscriptEvent] = [ai(f"x {VALUE[:9]}"), ToolStart(ToolCall("1", "Bash")), ai("else")]
    assert passed(stream(pieces=True), [[event] for event in events]) == events


def test_masking_can_be_turned_off() -> None:
    events: list[TranscriptEvent] = [ai(VALUE)]
    assert EventMasker(Masker(SECRETS, on=False)).encode(events)[0] is events


def test_a_secret_that_ralph_quotes_and_cuts_is_masked() -> None:
    shown, lines = stream().encode([meta.notice(f"refused {VALUE[:15]}")])
    assert shown == [meta.notice("refused [masked:HORSE_TOKEN]")]
    assert VALUE[:15].encode() not in lines


EVENTS: list[TranscriptEvent] = [
    Text(Tag.AI, "text"),
    ToolStart(ToolCall("id-1", "name", {"input": "text", "list": ["a"]})),
    ToolOutput(ToolRef("id-1"), "text"),
    ToolEnd(ToolResult("id-1", ToolStatus.OK, duration_ms=5)),
    UsageEvent(Usage(prompt_tokens=1, model="model")),
    meta.error("message", meta.ErrorClass.RATE_LIMITED),
    Meta({"kind": "iteration_end", "iteration": 1, "outcome": "ok", "usage": {"prompt_tokens": 1}, "agent": "claude"}),
]


@pytest.mark.parametrize("pattern", [".", "[a-z]+", "text|type|tag|kind|tool|meta", "ok|id|AI|[0-9]", '"', "(?s).*"])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_no_pattern_breaks_an_event(event: TranscriptEvent, pattern: str) -> None:
    masker = EventMasker(Masker(patterns=[pattern]))
    events, lines = masker.encode([event])
    (masked,) = events or masker.release()[0]
    assert type(masked) is type(event)
    plain, before = msgspec.to_builtins(masked), msgspec.to_builtins(event)
    assert _keys(plain) == _keys(before)
    for line in lines.splitlines():
        assert type(decode(line)) is type(event)
    if isinstance(masked, Meta):
        assert [masked.meta.get(name) for name in ("kind", "outcome", "class", "agent")] == [
            event.meta.get(name)  # type: ignore[union-attr]
            for name in ("kind", "outcome", "class", "agent")
        ]


def _keys(value: object) -> object:
    if isinstance(value, dict):
        return {key: _keys(inner) for key, inner in value.items()}
    return [_keys(inner) for inner in value] if isinstance(value, list) else None


def test_a_secret_in_the_name_of_a_field_is_masked() -> None:
    event = ToolStart(ToolCall("1", "set", {KEYS["github"]: 1}))
    (masked,) = EventMasker(Masker()).encode([event])[0]
    assert isinstance(masked, ToolStart)
    assert masked.tool.input == {"[masked:key]": 1}
