"""Damaged lines: real ones with fields changed, removed or added at any depth, or cut."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def read(path: Path) -> bytes:
    """The content of a recording. Long ones are compressed."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def recorded(agent: str, longest: int = 5000) -> list[str]:
    """The distinct JSON lines of an agent's recordings, without the very long ones."""
    paths = sorted((FIXTURES / agent).glob("*/*.jsonl"))
    lines = (line.rstrip("\r") for path in paths for line in path.read_text().split("\n"))
    found = list(dict.fromkeys(line for line in lines if line[:1] == "{" and len(line) < longest))
    assert found, f"no recordings of {agent}"
    return found


@st.composite
def damaged(draw: st.DrawFn, lines: list[str], *, cut: bool = True) -> str:
    """One of the lines, changed as another release of its agent might, or cut."""
    value = json.loads(draw(st.sampled_from(lines)))
    places = fields(value)
    for _ in range(draw(st.integers(0, 3))):
        holder, key = draw(st.sampled_from(places))
        if draw(st.booleans()):
            holder[key] = draw(_ANY)
        elif isinstance(holder, dict):
            holder.pop(key, None)
    if isinstance(value, dict):
        value |= draw(st.dictionaries(st.text(max_size=6), _ANY, max_size=2))
    line = json.dumps(value)
    return line[: draw(st.integers(0, len(line)))] if cut and draw(st.integers(0, 4)) == 0 else line


def text_line() -> st.SearchStrategy[str]:
    return st.text(max_size=30).filter(lambda t: "\n" not in t)


def words_line() -> st.SearchStrategy[str]:
    """A line that cannot be taken for JSON or for an escape sequence."""
    return st.text(min_size=1, max_size=40).filter(lambda t: "\n" not in t and t[0] not in "{[" and "\x1b" not in t)


def fields(value: Any) -> list[tuple[Any, Any]]:
    """Every field and every item of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *fields(value[key]))]
