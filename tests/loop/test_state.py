"""The state of a run: what an iteration makes of it, and how it is saved and resumed."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.judging.costs import RunCosts
from ralph.judging.judge import Outcome, Verdict
from ralph.judging.observe import Observation
from ralph.judging.signals import Claim, Markers, Signal
from ralph.loop.breaker import Breaker, State, Streak, Thresholds
from ralph.loop.calls import Calls
from ralph.loop.decide import PAUSED, Policy
from ralph.loop.finished import Finished, Review
from ralph.loop.rotation import Availability, Rotation
from ralph.loop.sessions import Session
from ralph.loop.state import RunState, restored, resumed, saved
from ralph.loop.waits import MARGIN, Wait
from ralph.runners.process import Ended, EndKind
from ralph.transcripts import meta
from ralph.transcripts.base import Capabilities
from ralph.transcripts.events import Usage, UsageEvent
from ralph.tree.snapshot import Changes

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
_availabilities = st.builds(
    Availability, until=_times | st.just(math.inf), tries=_counts, guesses=_counts, since=_counts
)
_streaks = st.builds(Streak, what=_texts, count=_counts, since=_counts)


@st.composite
def states(draw: st.DrawFn) -> RunState:
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
        rotation=Rotation(names, tuple(draw(_availabilities) for _ in names)),
        calls=Calls(draw(_counts), tuple(draw(st.lists(_times, max_size=3)))),
        sessions={name: Session("id", draw(_times), draw(st.none() | _usages)) for name in names},
        notes=tuple(draw(st.lists(_texts, max_size=2))),
        trespassed=tuple(draw(st.lists(_texts, max_size=2))),
        wait=draw(st.none() | st.builds(Wait, _times, _times, _texts)),
    )


@given(states())
def test_a_saved_state_is_restored(state: RunState) -> None:
    breaker = msgspec.to_builtins(state.breaker)
    line = msgspec.json.encode({"state": saved(state), **({"breaker": breaker} if breaker else {})})
    assert restored(msgspec.json.decode(line)) == state


def test_a_run_that_died_continues_as_it_was() -> None:
    state = RunState(iteration=7, failures=3, rotation=Rotation(("a",), (Availability(until=5.0, tries=2),)))
    assert resumed(state, ("a",), ended=None) == state


def test_what_ended_a_run_is_counted_from_zero() -> None:
    state = RunState(
        failures=5,
        breaker=Breaker(State.OPEN, why="w"),
        rotation=Rotation(("a", "b"), (Availability(until=math.inf), Availability(9.0))),
    )
    anew = resumed(state, ("b", "a", "c"), ended="stuck")
    assert (anew.failures, anew.breaker.state) == (0, State.HALF_OPEN)
    assert anew.rotation == Rotation(("b", "a", "c"), (Availability(9.0), Availability(), Availability()))


def test_a_resumed_cool_down_does_not_end_early() -> None:
    state = RunState(breaker=Breaker(State.OPEN, why="w"), wait=Wait(60.0, 100.0, "w"))
    assert resumed(state, (), ended=None).breaker.state is State.OPEN


def test_a_state_that_is_no_object_is_refused() -> None:
    for broken in ("x", 7, {"rotation": {"names": ["a"], "availability": []}}):
        with pytest.raises(msgspec.ValidationError):
            restored({"state": broken})


# -- after an iteration

NOW = 1_000_000.0
BEFORE = RunState(
    iteration=6,
    uncounted=1,
    failures=2,
    claims=1,
    denials=1,
    elapsed=50.0,
    usage=Usage(total_tokens=1000, cost_usd=1.0),
    usage_missing=1,
    costs=RunCosts(reported=4, unknown=2),
    rotation=Rotation(("claude", "codex"), (Availability(until=NOW - 1, tries=1, guesses=1, since=5), Availability())),
    calls=Calls(10, (NOW - 60,)),
    sessions={"codex": Session("c", 1.0)},
    notes=("from before",),
    trespassed=("b",),
    wait=Wait(1.0, NOW, "limit"),
)
#: What every iteration changes, whatever came of it.
COUNTED_ALWAYS: dict[str, Any] = {
    "iteration": 7,
    "elapsed": 60.0,
    "usage": Usage(total_tokens=1100, cost_usd=1.5),
    "costs": RunCosts(reported=5, unknown=2),
    "calls": Calls(10, (NOW - 60, NOW - 10)),
    "sessions": {"codex": Session("c", 1.0), "claude": Session("s", NOW - 10)},
    "wait": None,
}
#: It was stopped before the agent reported its end.
CUT_SHORT: dict[str, Any] = {"usage": Usage(total_tokens=1100, cost_usd=1.5, at_least=True), "usage_partial": 1}
WORKED = Rotation.of(("claude", "codex"))
NOTHING, CHANGED = Changes([], 0, changed=False), Changes(["a.py"], 1, changed=True)


def finished(outcome: Outcome, signal: Signal = Signal.NONE, kind: EndKind = EndKind.EXITED, **how: Any) -> Finished:
    """The seventh iteration, by the first agent."""
    seen = Observation(Markers())
    seen.feed([UsageEvent(Usage(total_tokens=100, cost_usd=0.5)), *how.get("events", [])])
    return Finished(
        number=7,
        agent="claude",
        turn=0,
        started=NOW - 10,
        verdict=Verdict(outcome, "why", Claim(signal, "claim")),
        ended=Ended(kind, how.get("reason", "exited with code 0"), 0),
        seen=seen,
        changes=how.get("changes", CHANGED),
        capabilities=Capabilities(),
        session=Session("s", NOW - 10),
    )


def after(before: RunState, one: Finished, review: Review | None = None, policy: Policy | None = None) -> RunState:
    return before.after(one, review or Review(), policy or Policy(), now=NOW, elapsed=60.0, jitter=0.0)


LIMITED = Rotation(
    ("claude", "codex"), (Availability(until=NOW + 30 + MARGIN, tries=2, guesses=0, since=7), Availability())
)
TRESPASS = Review(trespass="changed a", trespassed=("a",), notes=("undo a",))


@pytest.mark.parametrize(
    ("one", "review", "expected"),
    [
        pytest.param(
            finished(Outcome.OK),
            Review(),
            {"failures": 0, "claims": 0, "denials": 0, "rotation": WORKED, "notes": ()},
            id="ok",
        ),
        pytest.param(
            finished(Outcome.FAILED),
            Review(),
            {"failures": 3, "claims": 0, "denials": 0, "rotation": WORKED, "notes": ()},
            id="failed",
        ),
        pytest.param(
            finished(Outcome.PERMISSION_DENIED),
            Review(),
            {"failures": 3, "claims": 0, "denials": 2, "rotation": WORKED, "notes": ()},
            id="denied a tool",
        ),
        pytest.param(
            finished(Outcome.RATE_LIMITED, events=[meta.rate_limit(resets_at=NOW + 30)]),
            Review(),
            {"uncounted": 2, "rotation": LIMITED},
            id="limited",
        ),
        pytest.param(
            finished(Outcome.INTERRUPTED, kind=EndKind.STOPPED, reason="interrupted"),
            Review(),
            {"uncounted": 2, "rotation": WORKED, **CUT_SHORT},
            id="stopped by the user",
        ),
        pytest.param(
            finished(Outcome.INTERRUPTED, kind=EndKind.STOPPED, reason=PAUSED),
            Review(),
            {"uncounted": 2, "rotation": WORKED, **CUT_SHORT},
            id="paused",
        ),
        pytest.param(
            finished(Outcome.INTERRUPTED, kind=EndKind.STOPPED, reason="reached the run time limit of 1 m"),
            Review(),
            {"failures": 3, "claims": 0, "denials": 0, "rotation": WORKED, "notes": (), **CUT_SHORT},
            id="stopped by a limit of the run",
        ),
        pytest.param(
            finished(Outcome.OK, kind=EndKind.LINGERED, events=[meta.result(ok=True)]),
            Review(),
            {"failures": 0, "claims": 0, "denials": 0, "rotation": WORKED, "notes": ()},
            id="ended after it reported its end",
        ),
        pytest.param(
            finished(Outcome.OK, Signal.COMPLETE),
            Review(),
            {"failures": 0, "claims": 2, "denials": 0, "rotation": WORKED, "notes": ()},
            id="complete",
        ),
        pytest.param(
            finished(Outcome.OK, Signal.COMPLETE),
            Review(rejected="a check fails", notes=("fix it",)),
            {"failures": 0, "claims": 0, "denials": 0, "rotation": WORKED, "notes": ("fix it",)},
            id="complete, but rejected",
        ),
        pytest.param(
            finished(Outcome.OK),
            TRESPASS,
            {
                "failures": 3, "claims": 0, "denials": 0, "rotation": WORKED, "notes": ("undo a",),
                "trespassed": ("a", "b"),
            },
            id="trespass",
        ),
        pytest.param(
            finished(Outcome.RATE_LIMITED, events=[meta.rate_limit(resets_at=NOW + 30)]),
            TRESPASS,
            {"uncounted": 2, "rotation": LIMITED, "notes": ("from before", "undo a"), "trespassed": ("a", "b")},
            id="limited after a trespass",
        ),
    ],
)  # fmt: skip
def test_after_an_iteration(one: Finished, review: Review, expected: dict[str, Any]) -> None:
    untouched = msgspec.structs.replace(BEFORE)
    found = after(BEFORE, one, review)
    assert untouched == BEFORE
    assert msgspec.structs.replace(found, breaker=BEFORE.breaker) == msgspec.structs.replace(
        BEFORE, **{**COUNTED_ALWAYS, **expected}
    )


@pytest.mark.parametrize(
    ("one", "review", "unchanged"),
    [
        (finished(Outcome.OK, changes=NOTHING), Review(), 1),
        (finished(Outcome.OK), Review(), 0),
        (finished(Outcome.OK, Signal.COMPLETE, changes=NOTHING), Review(rejected="a check fails"), 1),
        # The agent only confirms that it is done, or the iteration does not count.
        (finished(Outcome.OK, Signal.COMPLETE, changes=NOTHING), Review(), 0),
        (finished(Outcome.OVERLOADED, changes=NOTHING), Review(), 0),
        (finished(Outcome.INTERRUPTED, kind=EndKind.STOPPED, reason=PAUSED, changes=NOTHING), Review(), 0),
    ],
)
def test_the_breaker_counts_iterations_without_progress(one: Finished, review: Review, unchanged: int) -> None:
    assert after(BEFORE, one, review).breaker.unchanged.count == unchanged


def test_the_breaker_opens_by_the_policy_and_cools_down() -> None:
    policy = Policy(thresholds=Thresholds(no_progress=1))
    stuck = after(BEFORE, finished(Outcome.OK, changes=NOTHING), policy=policy)
    assert stuck.breaker.state is State.OPEN
    assert stuck.cooled_down().breaker.state is State.HALF_OPEN


def test_an_iteration_without_usage_is_missing_and_its_cost_unknown() -> None:
    one = msgspec.structs.replace(finished(Outcome.OK), seen=Observation(Markers()))
    found = after(BEFORE, one)
    assert (found.usage, found.usage_missing) == (BEFORE.usage, 2)
    assert found.costs == RunCosts(reported=4, unknown=3)


def test_a_session_without_an_id_is_forgotten() -> None:
    before = msgspec.structs.replace(BEFORE, sessions={"claude": Session("old"), "codex": Session("c")})
    one = msgspec.structs.replace(finished(Outcome.FAILED), session=Session())
    assert after(before, one).sessions == {"codex": Session("c")}


def test_an_unfinished_iteration_is_spent_but_does_not_count() -> None:
    before = msgspec.structs.replace(BEFORE, sessions={"claude": Session("s", 1.0, Usage(total_tokens=5))})
    seen = finished(Outcome.OK).seen
    found = before.after_unfinished(7, "claude", NOW - 10, seen, elapsed=60.0)
    session = Session("s", 1.0, Usage(total_tokens=100, cost_usd=0.5))
    expected = {**COUNTED_ALWAYS, **CUT_SHORT, "uncounted": 2, "sessions": {"claude": session}}
    assert found == msgspec.structs.replace(before, **expected)


def test_the_usage_of_a_run_is_a_lower_bound_if_it_is_unknown_in_some_iterations() -> None:
    assert BEFORE.used == msgspec.structs.replace(BEFORE.usage, at_least=True)
    assert RunState(usage=BEFORE.usage).used == BEFORE.usage
    assert RunState(usage_missing=1).used == Usage()


@pytest.mark.parametrize(
    ("models", "expected"),
    [(("a", "a"), "a"), (("a", "b"), None), (("a", None), None), ((None, "b"), None), (("a", "b", "b"), None)],
)
def test_the_usage_of_a_run_names_a_model_only_if_all_tokens_are_of_that_one(
    models: tuple[str | None, ...], expected: str | None
) -> None:
    state = RunState(rotation=WORKED)
    for model in models:
        one = msgspec.structs.replace(finished(Outcome.OK), seen=Observation(Markers()))
        one.seen.feed([UsageEvent(Usage(total_tokens=100, model=model))])
        state = after(state, one)
    unknown = msgspec.structs.replace(finished(Outcome.OK), seen=Observation(Markers()))
    assert after(state, unknown).usage.model == expected
