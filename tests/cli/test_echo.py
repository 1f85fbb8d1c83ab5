"""Commands print all characters, whatever encoding the stream claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "ascii:strict"])
def test_text_that_is_not_ascii(ralph: Ralph, repo: Path, encoding: str) -> None:
    arguments = ("run", "--dry-run", "--agent-cmd", "echo ä…")
    done = ralph(*arguments, env={"PYTHONIOENCODING": encoding}, text=False)
    assert done.returncode == 0, done.stderr
    assert "echo ä…".encode() in done.stdout
