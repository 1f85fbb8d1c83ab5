"""HOME, the configuration and the environment of the one who runs the tests stay out of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent

# How fast a machine is says nothing about the code; a fresh checkout has no cache of hypothesis's either.
settings.register_profile("ralph", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ralph")


# A shell that runs the tests in the background, or nohup, has them and all that they start ignore these.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--captures", metavar="DIR", help="recordings to try the adapters on, instead of our own selection"
    )


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in list(os.environ):
        if name.startswith(("RALPH_", "XDG_", "GIT_")) or name in ("AGENT_CMD", "NO_COLOR", "CLAUDECODE"):
            monkeypatch.delenv(name)
    for variable, value in (
        ("RALPH_TRUST", "1"),  # the files that tests write are theirs; those about trust take it away
        ("GIT_CONFIG_GLOBAL", os.devnull),
        ("GIT_AUTHOR_NAME", "t"),
        ("GIT_AUTHOR_EMAIL", "t@example.invalid"),
        ("GIT_COMMITTER_NAME", "t"),
        ("GIT_COMMITTER_EMAIL", "t@example.invalid"),
    ):
        monkeypatch.setenv(variable, value)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with one commit and a PROMPT.md."""
    (tmp_path / "PROMPT.md").write_text("Do the work.\n")
    (tmp_path / "README.md").write_text("hello\n")
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture
def ralph(repo: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command in `repo`: `ralph("run", "--agent-cmd", "…", timeout=20, env={…}, cwd=…)`."""

    def run(
        *arguments: str,
        timeout: float = 60,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        text: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ralph", *arguments],
            cwd=cwd or repo,
            env=os.environ | (env or {}),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=text,
            timeout=timeout,
            check=False,
        )

    return run
