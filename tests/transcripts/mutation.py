"""Real lines with one field, at any depth, removed or replaced: what another release of an agent may print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

_FIXTURES = Path(__file__).parent.parent / "fixtures"
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def recorded(agent: str) -> list[str]:
    """The different lines of an agent's recordings, without the very long ones."""
    paths = sorted((_FIXTURES / agent).glob("*/*.jsonl"))
    lines = [line for path in paths for line in path.read_text().split("\n") if line[:1] == "{" and len(line) < 3000]
    assert lines, f"no recordings of {agent}"
    return list(dict.fromkeys(lines))


@st.composite
def mutated(draw: st.DrawFn, lines: list[str]) -> str:
    value = json.loads(draw(st.sampled_from(lines)))
    places = list(_places(value))
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(places))
        if draw(st.booleans()):
            holder[key] = draw(_VALUES)
        elif isinstance(holder, dict):
            holder.pop(key, None)
    return json.dumps(value)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every field and every item of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *_places(value[key]))]
