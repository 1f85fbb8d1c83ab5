from __future__ import annotations

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ralph.judging.costs import RunCosts
from ralph.loop.breaker import Breaker, State, Streak
from ralph.loop.calls import Calls
from ralph.loop.rotation import Availability, Rotation
from ralph.loop.state import RunState, Session, restored, resumed, saved
from ralph.loop.waits import Wait
from ralph.transcripts.events import Usage

_counts = st.integers(0, 1 << 40)
_times = st.floats(0, 1e12, allow_nan=False)
_texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
_usages = st.builds(
    Usage,
    prompt_tokens=st.none() | _counts,
    completion_tokens=st.none() | _counts,
    model=st.none() | _texts,
    cost_usd=st.none() | _times,
)
_posts = st.builds(Availability, until=_times | st.just(math.inf), tries=_counts, guesses=_counts, since=_counts)
_streaks = st.builds(Streak, what=_texts, count=_counts, since=_counts)


@st.composite
def standings(draw: st.DrawFn) -> RunState:
    names = tuple(draw(st.lists(_texts, max_size=3)))
    return RunState(
        iteration=draw(_counts),
        uncounted=draw(_counts),
        failures=draw(_counts),
        claims=draw(_counts),
        elapsed=draw(_times),
        usage=draw(_usages),
        usage_missing=draw(_counts),
        costs=RunCosts(draw(_counts), draw(_counts), draw(_counts)),
        breaker=Breaker(draw(st.sampled_from(State)), draw(_streaks), draw(_counts), draw(_streaks), draw(_streaks)),
        rotation=Rotation(names, tuple(draw(_posts) for _ in names)),
        calls=Calls(draw(_counts), tuple(draw(st.lists(_times, max_size=3)))),
        sessions={name: Session("id", draw(_times), draw(st.none() | _usages)) for name in names},
        notes=draw(st.lists(_texts, max_size=2)),
        trespassed=draw(st.lists(_texts, max_size=2)),
        wait=draw(st.none() | st.builds(Wait, _times, _times, _texts)),
    )


@given(standings())
def test_what_is_written_down_is_read_back(state: RunState) -> None:
    breaker = msgspec.to_builtins(state.breaker)
    line = msgspec.json.encode({"state": saved(state), **({"breaker": breaker} if breaker else {})})
    assert restored(msgspec.json.decode(line)) == state


def test_a_run_that_died_goes_on_as_it_was() -> None:
    state = RunState(iteration=7, failures=3, rotation=Rotation(("a",), (Availability(until=5.0, tries=2),)))
    assert resumed(state, ("a",), ended=None) == state


def test_a_person_has_looked_at_what_ended_it() -> None:
    state = RunState(
        failures=5,
        breaker=Breaker(State.OPEN, why="w"),
        rotation=Rotation(("a", "b"), (Availability(until=math.inf), Availability(9.0))),
    )
    anew = resumed(state, ("b", "a", "c"), ended="stuck")
    assert (anew.failures, anew.breaker.state) == (0, State.HALF_OPEN)
    assert anew.rotation == Rotation(("b", "a", "c"), (Availability(9.0), Availability(), Availability()))


def test_a_breaker_that_cools_down_does_not_cool_down_twice_as_fast() -> None:
    state = RunState(breaker=Breaker(State.OPEN, why="w"), wait=Wait(60.0, 100.0, "w"))
    assert resumed(state, (), ended=None).breaker.state is State.OPEN
