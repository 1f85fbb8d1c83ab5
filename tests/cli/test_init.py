"""`ralph init`, and the ralph.yml that it creates from another convention.s files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


DONE = "<promise>COMPLETE</promise>"


def settings(ralph: Ralph, *flags: str) -> dict[str, Any]:
    done = ralph("config", "--json", *flags)
    assert done.returncode == 0, done
    return {name: row["value"] for name, row in json.loads(done.stdout).items()}


def test_a_new_file_needs_no_approval_and_nothing_is_overwritten(ralph: Ralph, repo: Path) -> None:
    prompt = (repo / "PROMPT.md").read_text()
    assert ralph("init").returncode == 0
    assert (repo / "PROMPT.md").read_text() == prompt
    written = (repo / "ralph.yml").read_text()
    assert "already exists" in ralph("init").stdout
    assert (repo / "ralph.yml").read_text() == written
    assert "nothing to approve" in ralph("trust", env={"RALPH_TRUST": ""}).stdout


PROVIDER = """\
# how we run it
claude_command = ./tools/wrap.sh
claude_args = --fast "two words"
max_iterations = 12
task_retry_count = 2
idle_timeout = 5m
claude_error_patterns = You've hit, API Error: #3
"""

DRIVER = """\
PLATFORM_DRIVER="codex"
CLAUDE_TIMEOUT_MINUTES=25
ALLOWED_TOOLS="Write,Bash(git *)"
TEST_COMMAND="make test # all"
SESSION_CONTINUITY=false
"""


@pytest.mark.parametrize(("name", "text"), [(".ralphex/config", PROVIDER), (".ralphrc", DRIVER)])
def test_the_new_file_has_the_settings_of_the_existing_files(ralph: Ralph, repo: Path, name: str, text: str) -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text(text)
    before = settings(ralph)
    done = ralph("init", "--from-existing")
    assert done.returncode == 0, done
    written = (repo / "ralph.yml").read_text()
    assert f"# {name}:" in written
    after = settings(ralph)
    assert {k: (before[k], after[k]) for k in before if before[k] != after[k]} == {}
    assert settings(ralph, "--config", "ralph.yml") == after


#: A complete agent script.
SCRIPT = f"""
AGENT_CLI=cat
agent_invoke() {{ echo '{DONE}'; }}
agent_extract_response() {{ cat "$1"; }}
agent_format_display() {{ cat; }}
"""


@pytest.mark.parametrize("folder", ["", ".ralph/"])
def test_the_new_file_names_a_script_that_exists(ralph: Ralph, repo: Path, folder: str) -> None:
    (repo / folder / "agents").mkdir(parents=True)
    (repo / folder / "config").write_text("AGENT=amp\nDEFAULT_MAX_ITERATIONS=9\n")
    (repo / folder / "agents" / "amp.sh").write_text(SCRIPT)
    before = settings(ralph)
    assert ralph("init", "--from-existing").returncode == 0
    assert settings(ralph) == before
    assert (before["max_iterations"], before["agent_script"]) == (9, f"{folder}agents/amp.sh")
    done = ralph("run")
    assert done.returncode == 0, done


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".ralphrc", 'PLATFORM_DRIVER=claude-code\nALLOWED_TOOLS="Write NoSuchTool"\nCLAUDE_MODEL=m\n'),
        (".ralphex/config", "claude_command = claude\ntask_model = opus:high\nidle_timeout = 7m\n"),
        (".ralphex/config", "[ralphex]\nplans_dir = x\n"),
    ],
)
def test_the_new_file_starts_the_same_command_and_the_old_ones_are_no_rivals(
    ralph: Ralph, repo: Path, tmp_path_factory: pytest.TempPathFactory, name: str, text: str
) -> None:
    programs = tmp_path_factory.mktemp("bin")
    (programs / "claude").write_text("#!/bin/sh\necho '2.1.0 (Claude Code)'\n")
    (programs / "claude").chmod(0o755)
    env = {"PATH": f"{programs}:/usr/bin:/bin"}
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text(text)
    before = ralph("run", "--dry-run", env=env)
    assert ralph("init", "--from-existing", env=env).returncode == 0
    after = ralph("run", "--dry-run", env=env)
    assert after.returncode == 0, after
    rows = [done.stdout.partition("  agent  ")[2].partition("Settings and where")[0] for done in (before, after)]
    commands = [row.partition("  deadlines")[0] for row in rows]
    assert commands[0] == commands[1]
    assert "another convention" not in after.stdout


def test_a_rival_of_ralph_yml_is_named(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("agent: demo\n")
    (repo / ".ralphrc").write_text("PROJECT_NAME=x\n")
    note = "using ralph.yml, not the files of another convention: driver (found .ralphrc); to use those: --dialect NAME"
    assert note in ralph("config").stderr


def test_a_script_that_does_not_exist_is_an_error(ralph: Ralph, repo: Path) -> None:
    (repo / "agents").mkdir()
    (repo / "config").write_text("AGENT=apm\n")
    (repo / "agents" / "amp.sh").write_text(SCRIPT)
    done = ralph("init", "--from-existing")
    assert done.returncode == 64
    assert "agents/apm.sh (config:1) does not exist" in done.stderr
    assert not (repo / "ralph.yml").exists()


def test_a_command_that_was_not_approved_is_not_approved_in_the_new_file(ralph: Ralph, repo: Path) -> None:
    (repo / ".ralphrc").write_text("TEST_COMMAND='touch ran'\n")
    untrusted = {"RALPH_TRUST": ""}
    assert ralph("init", "--from-existing", env=untrusted).returncode == 0
    done = ralph("run", env=untrusted)
    assert done.returncode == 64
    assert "touch ran" in done.stderr


def test_an_existing_ralph_yml_is_not_changed(ralph: Ralph, repo: Path) -> None:
    (repo / ".ralphrc").write_text("MAX_CALLS_PER_HOUR=5\n")
    (repo / "ralph.yml").write_text("agent: demo\n")
    done = ralph("init", "--from-existing")
    assert done.returncode == 64
    assert "was not changed" in done.stderr
    assert (repo / "ralph.yml").read_text() == "agent: demo\n"


def test_without_existing_files_the_error_lists_them(ralph: Ralph, repo: Path) -> None:
    done = ralph("init", "--from-existing")
    assert done.returncode == 64
    assert ".ralphrc" in done.stderr
    assert not (repo / "ralph.yml").exists()


def test_mistakes_in_existing_files_are_reported_and_nothing_is_written(ralph: Ralph, repo: Path) -> None:
    (repo / ".ralphex").mkdir()
    (repo / ".ralphex" / "config").write_text("max_iterations = many\n")
    done = ralph("init", "--from-existing")
    assert done.returncode == 64
    assert ".ralphex/config:1" in done.stderr
    assert not (repo / "ralph.yml").exists()


def test_init_works_with_a_home_that_cannot_be_written(ralph: Ralph, repo: Path) -> None:
    (repo / "a-file").write_text("")
    done = ralph("init", env={"XDG_CONFIG_HOME": str(repo / "a-file")})
    assert done.returncode == 0, done
    assert "cannot be stored" in done.stderr
    assert (repo / "ralph.yml").is_file()
