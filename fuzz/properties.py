"""The engine that runs everywhere: hypothesis, with inputs made from a target's seeds, its tokens and random bytes."""

from __future__ import annotations

import json
import time
import traceback
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fuzz.damage import damaged, text_line
from fuzz.result import Result
from fuzz.seeds import seeds, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuzz.targets import Target

_ROUND = 200


def inputs(name: str) -> st.SearchStrategy[bytes]:
    known = seeds(name)
    lines = list(dict.fromkeys(line for data in known for line in data.split(b"\n")))
    objects = [line.decode() for line in lines if _is_object(line)]
    line = st.sampled_from(lines) | text_line().map(lambda text: text.encode("utf-8", "replace"))
    if objects:
        line |= damaged(objects).map(lambda text: text.encode("utf-8", "replace"))
    return st.lists(line, max_size=12).map(b"\n".join) | _spliced(known, tokens(name)) | st.binary(max_size=200)


@st.composite
def _spliced(draw: st.DrawFn, known: list[bytes], words: list[bytes]) -> bytes:
    """A piece of a seed with tokens inserted at random places."""
    data = draw(st.sampled_from(known))
    start = draw(st.integers(0, len(data)))
    data = data[start : start + draw(st.integers(0, 2000))] if draw(st.booleans()) else data
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from(words)) + data[at + draw(st.integers(0, 8)) :]
    return data


def run(target: Target, seconds: float) -> Result:
    """Tries as many inputs as the time allows, until one fails."""
    began = time.monotonic()
    executions = 0
    failed: list[bytes] = []
    error = ""

    def once(data: bytes) -> None:
        nonlocal executions
        if time.monotonic() - began > seconds:
            return
        executions += 1
        try:
            target.check(data)
        except BaseException:
            failed.append(data)
            raise

    while time.monotonic() - began < seconds and not failed:
        try:
            _round(once, inputs(target.name), number=time.time_ns())
        except Exception as found:  # noqa: BLE001 - any exception of a target is a finding
            error = "".join(traceback.format_exception_only(found)).strip().replace("\n", " ⏎ ")
    return Result(target.name, "properties", executions, time.monotonic() - began, "", failed[-1:], error)


def _round(once: Callable[[bytes], None], strategy: st.SearchStrategy[bytes], number: int) -> None:
    @seed(number)
    @settings(
        max_examples=_ROUND, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def each(data: bytes) -> None:
        once(data)

    each()


def _is_object(line: bytes) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value)
