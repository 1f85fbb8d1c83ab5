"""A repository that someone else made, and that the user has only cloned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def untrusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPH_TRUST")


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the user with a secret in it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_text("the-secret\n")
    return folder
