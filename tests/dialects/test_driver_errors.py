"""Platform drivers: what goes wrong, and what is refused before the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from driver_project import DRIVERS, Project, says, status

from processes import nothing_left_behind

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


# -- errors


def test_a_missing_hook_is_an_error_before_anything_runs(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=half", "TEST_COMMAND='touch ran'")
    text = (DRIVERS / "my-platform.sh").read_text().replace("driver_valid_tools()", "driver_tools()")
    (project.drivers() / "half.sh").write_text(text)
    project.cli("my-platform", "echo hello")
    done = ralph("run")
    assert done.returncode == 64
    assert "driver_valid_tools" in done.stderr
    assert not (project.root / "ran").exists()
    assert project.calls("my-platform") == []


def test_a_prompt_that_is_too_long_for_an_argument_is_refused_before_the_start(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=claude-code")
    project.drivers()
    project.cli("claude", "echo hello")
    (project.root / ".ralph" / "PROMPT.md").write_text("x" * 131_071)
    assert ralph("run", "1").returncode == 2  # the last size that fits
    (project.root / ".ralph" / "PROMPT.md").write_text("x" * 131_072)
    done = ralph("run", "1")
    assert done.returncode == 64
    assert "131,072 bytes" in done.stderr
    assert len(project.calls("claude")) == 1


def test_a_driver_that_passes_the_prompt_file_accepts_any_length(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    project.cli("my-platform", 'wc -c < "$2"\n' + says(status("true")))
    (project.root / ".ralph" / "PROMPT.md").write_text("x" * 1_000_000)
    done = ralph("run", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1000000" in done.stdout


@pytest.mark.parametrize("name", ["../evil", "sub/evil", ".."])
def test_a_name_that_leaves_the_folder_is_refused(project: Project, ralph: Ralph, name: str) -> None:
    project.rc(f"PLATFORM_DRIVER={name}")
    project.drivers()
    (project.root / ".ralph" / "evil.sh").write_text("touch ran\n")
    done = ralph("run")
    assert done.returncode == 64
    assert "is not a valid driver name" in done.stderr
    assert not (project.root / "ran").exists()


def test_an_unknown_driver_is_an_error_that_lists_the_known_ones(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platfrom")
    project.drivers()
    done = ralph("run")
    assert done.returncode == 64
    assert "did you mean 'my-platform'" in done.stderr
    assert ".ralph/drivers/my-platfrom.sh" in done.stderr


def test_a_missing_cli_is_an_error_before_the_start(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    done = ralph("run")
    assert done.returncode == 64
    assert "'my-platform' (My Platform), which was not found" in done.stderr


def test_an_agent_that_prints_nothing_does_not_succeed(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    project.cli("my-platform", "exit 0")
    assert ralph("run", "1").returncode == 2
    assert project.metas("iteration_end")[0]["outcome"] == "empty"


def test_a_failing_agent_does_not_complete_even_if_it_says_so(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    project.cli("my-platform", says(status("true")) + "\nexit 3")
    assert ralph("run", "1").returncode == 2
    assert project.metas("iteration_end")[0]["outcome"] == "failed"


def test_blocked_needs_a_person(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    project.cli("my-platform", says(status("false", "BLOCKED", "needs the API key")))
    done = ralph("run", "5")
    assert done.returncode == 5
    assert "needs the API key" in done.stdout


def test_a_timeout_ends_the_agent_and_everything_it_started(
    project: Project, ralph: Ralph, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.rc("PLATFORM_DRIVER=my-platform", "CLAUDE_TIMEOUT_MINUTES=0.02")
    project.drivers()
    project.cli("my-platform", "echo started\nsleep 61.5 &\nsleep 61.5")
    with nothing_left_behind(monkeypatch):
        ralph("run", "1", timeout=30)
    assert project.metas("iteration_end")[0]["outcome"] == "timeout_wall"
