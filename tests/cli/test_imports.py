"""Modules that must not be imported at the start, because each of them makes every start slower."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

#: Each takes a millisecond or more. `click`: for help and mistakes. `ruamel`: for a file. `inspect`: comes with click.
#: `_hashlib`: all of OpenSSL. `tomllib`: for an agent's file. `json`: for secrets.
UNNEEDED = {
    "asyncio", "click", "concurrent", "difflib", "email", "gettext", "_hashlib", "http", "importlib.metadata",
    "inspect", "json", "logging", "ruamel", "shutil", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "tomllib",
    "xml",
    "ralph.cli.group", "ralph.journal.writer", "ralph.loop", "ralph.masking.events", "ralph.runners",
    "ralph.transcripts.events", "ralph.ui.choose", "ralph.ui.screen",
}  # fmt: skip

#: Runs the command, then prints its imports on stderr. msgspec imports typing_extensions if it is installed, as it is
#: for the tests; users of ralph may not have it.
START = """
import sys
sys.modules["typing_extensions"] = None
from ralph.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def imported(folder: Path, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", START, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Nothing is run. This is what `ralph run` would do:" in done.stdout
    return set(done.stderr.split())


@pytest.fixture
def before() -> set[str]:
    """The modules that Python itself imports at every start."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_dry_run_by_flags_alone(tmp_path: Path, before: set[str]) -> None:
    found = imported(tmp_path, "run", "--dry-run", "-p", "Fix the tests", "--agent-cmd", "true")
    assert "msgspec" in found  # otherwise this test would prove nothing
    assert not (found - before) & UNNEEDED


def test_a_dry_run_with_a_file(tmp_path: Path, before: set[str]) -> None:
    """The commands in the file are compared with the user.s approvals."""
    (tmp_path / "ralph.yml").write_text("agent: custom\nprompt_mode: stdin\ncommand: 'true'\nverify: 'true'\n")
    found = imported(tmp_path, "run", "--dry-run", "-p", "Fix the tests")
    assert "ruamel.yaml" in found
    assert not (found - before) & (UNNEEDED - {"ruamel"})
