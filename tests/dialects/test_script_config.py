"""`config`, how a script is chosen, and the variables in a prompt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from agent_scripts import DONE, iteration, says, texts, write

from processes import nothing_left_behind
from ralph.dialects import detect
from ralph.dialects.script import executables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


def test_settings_have_their_lines_as_origins(ralph: Ralph, repo: Path) -> None:
    config = '# mine\nAGENT="fake"\nDEFAULT_MAX_ITERATIONS=$((3 * 4))\nexport MAX_RETRIES="${RETRIES:-2}"\n'
    write(repo, config=config)
    values = json.loads(ralph("config", "--json").stdout)
    assert values["agent_script"] == {"value": "agents/fake.sh", "origin": "config:2"}
    assert values["max_iterations"] == {"value": 12, "origin": "config:3"}
    assert values["max_failures"] == {"value": 2, "origin": "config:4"}


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ('AGENT="fake"', "agent_script", "agents/fake.sh"),
        ("DEFAULT_MAX_ITERATIONS=10", "max_iterations", 10),
        ("DEFAULT_MAX_ITERATIONS=", "max_iterations", 100),
        ("MAX_RETRIES=3", "max_failures", 3),
        ("MAX_RETRIES=0", "max_failures", 1),
    ],
)
def test_a_variable_becomes_the_setting_with_its_meaning(
    ralph: Ralph, repo: Path, line: str, name: str, value: object
) -> None:
    write(repo, config=f"AGENT=fake\n{line}\n")
    done = ralph("config", "--json")
    assert json.loads(done.stdout)[name]["value"] == value
    assert done.stderr == ""


@pytest.mark.parametrize(
    "line", ['SPECS_DIR="specs"', "CONTEXT_WARN_PCT=70", "MINE=(a b)", "if true; then MINE=1; fi", "unset NOTHING"]
)
def test_any_other_line_is_for_the_scripts_and_stops_nothing(ralph: Ralph, repo: Path, line: str) -> None:
    write(repo, says(f"say: {DONE}"), config=f"AGENT=fake\n{line}\n")
    done = ralph("run", "1")
    assert done.returncode == 0, done
    assert "warning" not in done.stdout


def test_no_retries_means_that_the_first_failure_ends_the_run(ralph: Ralph, repo: Path) -> None:
    write(repo, "agent_invoke() { return 1; }\n", config="AGENT=fake\nMAX_RETRIES=0\n")
    assert ralph("run").returncode == 1
    assert not iteration(repo, 2).exists()


def test_flags_and_the_environment_override_the_file(ralph: Ralph, repo: Path) -> None:
    write(repo, says("say: fake"), config="AGENT=fake\nDEFAULT_MAX_ITERATIONS=9\n")
    write(repo, says("say: other"), name="other", config=None)
    values = json.loads(ralph("config", "--json", env={"RALPH_MAX_ITERATIONS": "4", "AGENT": "other"}).stdout)
    assert values["max_iterations"]["value"] == 4
    assert values["agent_script"] == {"value": "agents/other.sh", "origin": "AGENT"}
    assert "agent script agents/other.sh" in ralph("run", "--agent-script", "other", "--dry-run").stdout
    assert "agent script agents/fake.sh" in ralph("run", "--agent-script", "agents/fake.sh", "--dry-run").stdout
    assert "demo (" in ralph("run", "--agent", "demo", "--dry-run").stdout
    assert ralph("run", "--agent", "demo", "--agent-script", "other").returncode == 64


def test_a_script_needs_no_config(ralph: Ralph, repo: Path) -> None:
    path = write(repo / "elsewhere", says(f"say: {DONE}"), config=None)
    assert ralph("run", "--agent-script", str(path)).returncode == 0
    assert (repo / "elsewhere" / "last_agent_output").exists()  # RALPH_DIR is the folder that contains agents/


def test_the_dry_run_shows_the_convention_and_the_command(ralph: Ralph, repo: Path) -> None:
    write(repo, 'AGENT_ARGS="-n --fast"\nagent_invoke() { touch ran; }\n')
    shown = ralph("run", "--dry-run").stdout
    assert "to agent_invoke in agents/fake.sh, which runs cat -n --fast" in shown
    assert "script (config:1)" in shown
    assert "shown by agent_format_display in agents/fake.sh" in shown
    assert not (repo / "ran").exists()


def test_the_convention_is_found_in_dot_ralph(ralph: Ralph, repo: Path) -> None:
    body = f"agent_invoke() {{ echo \"say: $RALPH_HOME $(pwd)\"; echo 'say: {DONE}'; }}\n"
    write(repo / ".ralph", body)
    (repo / ".ralph" / "prompts").mkdir()
    (repo / ".ralph" / "prompts" / "build.md").write_text("In ${RALPH_HOME}.\n")
    (repo / "PROMPT.md").unlink()
    result = ralph("run")
    assert result.returncode == 0, result
    assert iteration(repo).joinpath("response.md").read_text() == f".ralph {repo}\n{DONE}\n"
    assert iteration(repo).joinpath("prompt.md").read_text() == "In .ralph.\n"


@pytest.mark.parametrize("name", ["../agents/fake", "/etc/passwd", ".."])
def test_an_agents_name_cannot_be_a_path(ralph: Ralph, repo: Path, name: str) -> None:
    write(repo, config=f"AGENT={name}\n")
    result = ralph("run")
    assert result.returncode == 64
    assert "config:1: AGENT: expected the name of a script in agents/" in result.stderr


def test_a_name_cannot_lead_out_of_the_project_by_a_link(
    ralph: Ralph, repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = write(tmp_path_factory.mktemp("elsewhere"), says(f"say: {DONE}"), config=None)
    write(repo, name="here")
    (repo / "agents" / "fake.sh").symlink_to(elsewhere)
    result = ralph("run")
    assert result.returncode == 64
    assert "config:1: AGENT: agents/fake.sh (config:1) is a link out of the project" in result.stderr
    (repo / "config").unlink()
    assert "is a link out of its folder" in ralph("run", "--agent-script", "fake").stderr
    assert ralph("run", "--agent-script", "agents/fake.sh").returncode == 0


def test_all_mistakes_are_reported_at_once(ralph: Ralph, repo: Path) -> None:
    write(repo, config="DEFAULT_MAX_ITERATIONS=many\nMAX_RETRIES=-1\n")
    write(repo, name="other", config=None)
    result = ralph("run")
    assert result.returncode == 64
    for part in ("AGENT is not set: set it to one of fake, other", "config:1: DEFAULT_MAX", "config:2: MAX_RETRIES"):
        assert part in result.stderr


def test_the_only_script_needs_no_name(ralph: Ralph, repo: Path) -> None:
    write(repo, says(f"say: {DONE}"), config="SPECS_DIR=specs\n")
    assert ralph("run").returncode == 0


def test_a_config_that_fails_is_refused(ralph: Ralph, repo: Path) -> None:
    write(repo, config="AGENT=$NOPE\n")
    result = ralph("run")
    assert result.returncode == 64
    assert "unbound variable" in result.stderr


_IMPATIENT = """
import os
from pathlib import Path
from ralph.dialects.script import probe
probe._TIMEOUT = 0.5
here = Path.cwd()
probe.probe(probe.Place(here, here, config=here / "config"), None, (), dict(os.environ))
"""


def test_a_config_that_hangs_is_refused_and_leaves_no_process(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "config").write_text("sleep 300 | cat\n")
    with nothing_left_behind(monkeypatch):
        asked = subprocess.run(
            [sys.executable, "-c", _IMPATIENT], cwd=repo, capture_output=True, text=True, timeout=30, check=False
        )
    assert "UsageError" in asked.stderr
    assert "took longer than 0.5 s" in asked.stderr


@pytest.mark.parametrize(
    ("mode", "flags", "shown"),
    [("", (), "build"), ("plan", (), "plan"), ("production", (), "build"), ("", ("-P", "prompts/plan.md"), "plan")],
)
def test_only_known_variables_are_replaced_in_a_prompt(
    ralph: Ralph, repo: Path, mode: str, flags: tuple[str, ...], shown: str
) -> None:
    prompt = (
        "$MODE ${MODE} $MODEL ${SPECS_DIR}/ $SPECS_DIRS ${HOME} $1 $$ \\$PATH ${MINE} $(date) ${MODE:-x} $RALPH_HOME\n"
    )
    (repo / "prompts").mkdir()
    for path in ("PROMPT.md", "prompts/plan.md"):
        (repo / path).write_text(prompt)
    write(repo, says(f"say: {DONE}"), config="AGENT=fake\nMINE='$MODE'\n")
    assert ralph("run", *flags, env={"MODE": mode}).returncode == 0
    assert iteration(repo).joinpath("prompt.md").read_text() == (
        f"{shown} {shown} $MODEL specs/ $SPECS_DIRS ${{HOME}} $1 $$ \\$PATH $MODE $(date) ${{MODE:-x}} .\n"
    )
    assert texts(repo, "AI")


def test_executables_are_the_config_and_the_scripts(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = write(repo)
    other = write(repo, name="other", config=None)
    chosen, _ = detect.choose(repo, "auto")
    assert chosen is not None
    assert executables(chosen, repo, dict(os.environ)) == [repo / "config", script, other]
    monkeypatch.setenv("AGENT", "other")
    assert executables(chosen, repo, dict(os.environ)) == [repo / "config", other]


def test_without_jq_the_user_is_warned(ralph: Ralph, repo: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "cat", "git", "tee", "sed"):
        (tools / name).symlink_to(_which(name))
    write(repo, "agent_format_display() { jq -r .text; }\n")
    assert "uses jq, which is not in PATH" in ralph("run", "--dry-run", env={"PATH": str(tools)}).stdout
    write(repo, "# jq is not needed\n")
    assert "uses jq" not in ralph("run", "--dry-run", env={"PATH": str(tools)}).stdout


def _which(name: str) -> str:
    import shutil

    path = shutil.which(name)
    assert path is not None
    return path
