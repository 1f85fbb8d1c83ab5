"""Keeps your HOME, configuration and environment out of the tests."""

from __future__ import annotations

import os
import shutil
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

# Tests start ralph more than a thousand times: compiling it each time would take almost half of their CPU time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The speed of a machine says nothing about the code. Few examples, because these tests run with each change: the same
# properties are tried thousands of times by `make fuzz`.
settings.register_profile("ralph", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ralph")


# In a background job or under nohup these are ignored, and every process that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


ISOLATED = {
    "RALPH_TRUST": "1",  # tests write their own files; the tests of trust unset it
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.invalid",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.invalid",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--captures", metavar="DIR", help="test the adapters with these recordings instead of our own")
    parser.addoption(
        "--require-programs",
        action="store_true",
        help="fail instead of skip where a program that a test needs is missing",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    programs = [name for mark in item.iter_markers("needs") for name in mark.args]
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        stop = pytest.fail if item.config.getoption("--require-programs") else pytest.skip
        stop(f"not installed: {', '.join(missing)}")


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in list(os.environ):
        if name.startswith(("RALPH_", "XDG_", "GIT_")) or name in ("AGENT_CMD", "NO_COLOR", "CLAUDECODE"):
            monkeypatch.delenv(name)
    for variable, value in ISOLATED.items():
        monkeypatch.setenv(variable, value)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that `repo` copies: made once, because git takes longer than a copy."""
    root = tmp_path_factory.mktemp("template")
    (root / "PROMPT.md").write_text("Do the work.\n")
    (root / "README.md").write_text("hello\n")
    for command in (["init", "-q", "-b", "main", "--template="], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *command], cwd=root, env=os.environ | ISOLATED, check=True)
    return root


@pytest.fixture
def repo(tmp_path: Path, template: Path) -> Path:
    """A git repository with one commit and a PROMPT.md."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
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
