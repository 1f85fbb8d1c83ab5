"""A repository that somebody else made; its user has only cloned it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def nobody_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPH_TRUST")


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the user's, with a secret in it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_text("the-secret\n")
    return folder
