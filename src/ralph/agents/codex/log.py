"""Codex's log on stderr: with the filter that spec.toml sets, a line for each answer of the model, with its tokens.

`--json` reports tokens only at the end of a turn, which may take hours.
"""

from __future__ import annotations

import re
from typing import Any

from ralph.transcripts.events import Usage
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.numbers import whole

_LINE = re.compile(r"\S+ +INFO (codex_otel\S*): .*\bevent\.kind=\"?response\.completed\b")
_COUNT = re.compile(r" (\w+)_token_count=(\d+)")
_MODEL = re.compile(r' model="?([^\s"]+)')
_COUNTS = {
    "input": "prompt_tokens",
    "output": "completion_tokens",
    "cached": "cached_tokens",
    "cache_write": "cache_write_tokens",
    "reasoning": "reasoning_tokens",
}


class AnswerLog:
    """Reads the log. Newer versions write each line twice, for two targets: only the first target counts."""

    def __init__(self) -> None:
        self._target = ""

    def read(self, line: str) -> Usage | None:
        """The tokens of an answer; None if the line is no such line, empty if it repeats one."""
        if "_token_count=" not in line:
            return None
        line = strip_escapes(line)
        found = _LINE.match(line)
        if not found:
            return None
        self._target = self._target or found.group(1)
        if found.group(1) != self._target:
            return Usage()
        counts: dict[str, Any] = {
            _COUNTS[name]: whole(digits) for name, digits in _COUNT.findall(line) if name in _COUNTS
        }
        model = _MODEL.search(line)
        return Usage(**counts, model=model.group(1) if model else None, interim=True)
