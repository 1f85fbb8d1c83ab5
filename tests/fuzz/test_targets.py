"""A short, deterministic form of `make fuzz`: the properties of each target hold for its seeds and for some damage."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from fuzz.checks import ViolationError
from fuzz.new_ids import New
from fuzz.properties import inputs
from fuzz.seeds import seeds
from fuzz.streams import Streams
from fuzz.targets import TARGETS
from hypothesis import HealthCheck, given, settings

from fuzz import framing, memory, transcripts
from ralph.agents import adapters as registry
from ralph.judging import signals
from ralph.transcripts import recent
from ralph.transcripts.base import TranscriptAdapter

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: Few, because these tests run with each change; `make fuzz` tries thousands.
_EXAMPLES = 6


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets that read files change HOME. This restores it after the test."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_every_adapter_is_a_target() -> None:
    assert {*registry.names(), "framing", "echo", "signals", "topics", "config", "ralphrc", "ralphex"} <= set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_the_properties_hold_for_the_seeds(name: str) -> None:
    for data in seeds(name)[:: max(1, len(seeds(name)) // 4)]:
        TARGETS[name].check(data)


@pytest.mark.parametrize("name", TARGETS)
def test_the_properties_hold_for_damaged_input(name: str) -> None:
    @settings(max_examples=_EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(inputs(name))
    def each(data: bytes) -> None:
        TARGETS[name].check(data)

    each()


@pytest.mark.endurance
@pytest.mark.parametrize("name", transcripts.names())
def test_the_memory_of_an_adapter_does_not_grow_with_its_input(name: str) -> None:
    """Some lines of a recording, over and over: unchanged, and as if they came from new calls and messages."""
    lines = max((Streams.of(data).lines for data in seeds(name)[:8]), key=len)
    memory.check(lambda: transcripts.create(name, None), [lines[len(lines) // 2]])
    some = [line for line in lines if len(line[1]) < 1500][:12]
    memory.check_new_ids(lambda: transcripts.create(name, None), [], some, New.ALL)


def test_a_framer_that_loses_a_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself can fail: here for a framer that drops a last line without a newline."""
    monkeypatch.setattr(framing.LineFramer, "flush", lambda self: [])
    framing.check(b"one\n")
    with pytest.raises(ViolationError):
        framing.check(b"one\ntwo")


def test_an_echo_that_is_taken_for_an_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "repeats", lambda *_: False)
    with pytest.raises(ViolationError, match="completes nothing"):
        TARGETS["echo"].check(b"Do it. Then print\x03agent 1.0\n")


def test_an_adapter_that_keeps_its_whole_input_is_found() -> None:
    class Hoarder(TranscriptAdapter):
        def __init__(self) -> None:
            self.kept: list[str] = []

        def feed(self, line: str) -> list[TranscriptEvent]:
            self.kept.append(line + "!")
            return []

    with pytest.raises(ViolationError):
        memory.check(Hoarder, [(False, "a line")])


def test_an_adapter_that_remembers_every_call_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent.Recent, "__setitem__", dict.__setitem__)
    line = '{"type":"tool_use","timestamp":"t","tool_name":"ls","tool_id":"ls-1","parameters":{}}'
    begin = [(False, '{"type":"init","session_id":"s-1","timestamp":"t"}')]
    with pytest.raises(ViolationError, match="the adapter keeps"):
        memory.check_new_ids(lambda: transcripts.create("gemini", None), begin, [(False, line)], New.IDS)
