"""Counts of messages are added up undecoded where they can be: the sum must be that of the objects."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.transcripts.stream_json.usage import RunUsage

NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "total_tokens")
COUNTS = st.integers(0, 5) | st.none()
STRANGE = st.sampled_from([-1, 2.0, 2.5, True, "3", [], {}, 1 << 60])
USAGES = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(NAMES, COUNTS), "output_tokens_details": st.just({"thinking_tokens": 2}) | st.none()}
)
ODD = st.dictionaries(st.sampled_from([*NAMES, "output_tokens_details"]), COUNTS | STRANGE, max_size=3)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), USAGES, st.none() | USAGES)
        | st.tuples(st.sampled_from("abc"), ODD, st.none()),
        max_size=5,
    )
)
def test_undecoded_counts_give_the_same_sum(messages: list[tuple[str, dict[str, Any], dict[str, Any] | None]]) -> None:
    raw, read = RunUsage(), RunUsage()
    for name, usage, delta in messages:
        raw.raw_message(name, msgspec.Raw(msgspec.json.encode(usage)))
        read.message({"id": name, "usage": usage})
        if delta:
            raw.delta(msgspec.json.encode(delta))
            read.delta(delta)
    assert raw.result({}, "m") == read.result({}, "m")


def test_a_long_run_has_the_sum_of_all_its_messages() -> None:
    usage = RunUsage()
    for number in range(2500):
        usage.raw_message(f"m{number}", msgspec.Raw(b'{"input_tokens": 2, "output_tokens": 1}'))
    total = usage.result({}, None)
    assert total is not None
    assert (total.prompt_tokens, total.completion_tokens, total.cached_tokens) == (5000, 2500, None)
