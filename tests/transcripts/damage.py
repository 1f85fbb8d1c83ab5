"""Lines that nobody would write on purpose: real ones with fields changed, removed, added, or cut in the middle."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import strategies as st

_FIXTURES = Path(__file__).parent.parent / "fixtures"
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def real_lines(agent: str) -> list[str]:
    """The different JSON lines of an agent's recordings, without the very long ones."""
    paths = sorted((_FIXTURES / agent).glob("*/*.jsonl"))
    lines = (line.rstrip("\r") for path in paths for line in path.read_text().split("\n"))
    return list(dict.fromkeys(line for line in lines if line[:1] == "{" and len(line) < 5000))


@st.composite
def damaged(draw: st.DrawFn, lines: list[str]) -> str:
    value = json.loads(draw(st.sampled_from(lines)))
    inner = [v for v in value.values() if isinstance(v, dict) and v]
    for target in (value, draw(st.sampled_from(inner)) if inner else value):
        for key in draw(st.lists(st.sampled_from(sorted(target)), max_size=2, unique=True)) if target else ():
            if draw(st.booleans()):
                target[key] = draw(_ANY)
            else:
                target.pop(key, None)
    value |= draw(st.dictionaries(st.text(max_size=6), _ANY, max_size=2))
    line = json.dumps(value)
    return line[: draw(st.integers(0, len(line)))] if draw(st.integers(0, 4)) == 0 else line


def text_line() -> st.SearchStrategy[str]:
    return st.text(max_size=30).filter(lambda t: "\n" not in t)


def words_line() -> st.SearchStrategy[str]:
    """A line that cannot be taken for JSON, nor for a terminal's escape sequence."""
    return st.text(min_size=1, max_size=40).filter(lambda t: "\n" not in t and t[0] not in "{[" and "\x1b" not in t)
