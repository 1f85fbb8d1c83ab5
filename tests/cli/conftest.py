"""Runs that stay active while a test controls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from going import Going
from processes import nothing_left_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def start(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Going]]:
    """`start("script", "flag", …)`: an active run of that script. After the test, no process may be left."""
    runs: list[Going] = []

    def begin(script: str, *flags: str) -> Going:
        runs.append(Going(repo, script, *flags))
        return runs[-1]

    with nothing_left_behind(monkeypatch):
        yield begin
        for run in runs:
            run.close()
