"""An untrusted project cannot loosen what its user set, or what protects by default."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from security.support import DONE, harmless

if TYPE_CHECKING:
    from security.support import Ralph


@pytest.fixture
def own() -> Path:
    """The user's own ralph.yml."""
    path = Path(os.environ["HOME"]) / ".config" / "ralph" / "ralph.yml"
    path.parent.mkdir(parents=True)
    return path


def settings(ralph: Ralph, *arguments: str, **env: str) -> dict[str, dict[str, object]]:
    done = ralph("config", "--json", *arguments, env=env)
    harmless(done)
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


def test_denied_variables_masking_and_allowed_paths_survive_the_projects_file(
    ralph: Ralph, repo: Path, own: Path
) -> None:
    own.write_text("env_deny: [DENIED_TOKEN]\nallowed_paths: [src]\n")
    (repo / "ralph.yml").write_text("env_deny: [X]\nmask: no\nallowed_paths: []\n")
    script = f"echo token=$DENIED_TOKEN key=$OTHER_TOKEN; touch stray; echo '{DONE}'"
    done = ralph(
        "run", "1", "--agent-cmd", script, env={"DENIED_TOKEN": "denied-4711-value", "OTHER_TOKEN": "other-4711-value"}
    )
    harmless(done)
    shown = done.stdout + done.stderr
    assert "4711" not in shown
    assert "token= key=[masked:OTHER_TOKEN]" in shown
    assert "outside the allowed paths: stray" in shown
    assert done.returncode == 2
    assert "mask: no is looser than the default" in shown


def test_the_users_checks_run_as_well_and_need_no_approval(ralph: Ralph, repo: Path, own: Path) -> None:
    own.write_text("verify: ['touch ran-mine']\n")
    (repo / "ralph.yml").write_text("verify: []\n")
    done = ralph("run", "1", "--agent-cmd", f"echo '{DONE}'")
    assert done.returncode == 0, done.stderr
    assert (repo / "ran-mine").exists()
    (repo / "ralph.yml").write_text("verify: ['touch ran-theirs']\n")
    refused = ralph("run", "1", "--agent-cmd", f"echo '{DONE}'")
    assert refused.returncode == 64
    assert "touch ran-theirs" in refused.stderr
    assert "touch ran-mine" not in refused.stderr


def test_approving_lets_the_project_loosen_a_guard_until_either_value_changes(
    ralph: Ralph, repo: Path, own: Path
) -> None:
    own.write_text("max_cost: 5\n")
    (repo / "ralph.yml").write_text("max_cost: 50\n")
    assert settings(ralph)["max_cost"]["value"] == 5
    assert settings(ralph, RALPH_TRUST="1")["max_cost"]["value"] == 50
    assert settings(ralph, RALPH_MAX_COST="70")["max_cost"]["value"] == 70
    assert "max_cost: 50 instead of 5" in ralph("trust").stdout
    assert settings(ralph)["max_cost"] == {"value": 50, "origin": "ralph.yml:1"}
    own.write_text("max_cost: 4\n")
    assert settings(ralph)["max_cost"]["value"] == 4
    own.write_text("max_cost: 5\n")
    (repo / "ralph.yml").write_text("max_cost: 500\n")
    assert settings(ralph)["max_cost"]["value"] == 5


@pytest.mark.parametrize(
    ("file", "text", "name", "value"),
    [
        (".ralphrc", "CLAUDE_TIMEOUT_MINUTES=900\n", "wall_timeout", 60),
        (".ralphrc", "CLAUDE_TIMEOUT_MINUTES=0\n", "wall_timeout", 60),
        (".ralphex/config", "session_timeout = 9h\n", "wall_timeout", 60),
        (".ralphex/config", "max_iterations = 0\n", "max_iterations", 3),
        ("ralph.yml", "event_loop:\n  max_iterations: 1000\n", "max_iterations", 3),
        ("ralph.yml", "event_loop:\n  max_cost_usd: 0\n", "max_cost", 2),
    ],
)
def test_other_conventions_files_cannot_loosen_a_guard_either(
    ralph: Ralph, repo: Path, own: Path, file: str, text: str, name: str, value: float
) -> None:
    own.write_text("wall_timeout: 1m\nmax_iterations: 3\nmax_cost: 2\n")
    path = repo / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert settings(ralph)[name]["value"] == value
    assert settings(ralph, RALPH_TRUST="1")[name]["value"] != value


def test_the_users_own_file_of_another_convention_is_not_loosened_by_the_projects(ralph: Ralph, repo: Path) -> None:
    users = Path(os.environ["HOME"]) / ".config" / "ralphex" / "config"
    users.parent.mkdir(parents=True)
    users.write_text("idle_timeout = 2m\nmax_iterations = 7\n")
    (repo / ".ralphex").mkdir()
    (repo / ".ralphex" / "config").write_text("idle_timeout = 5h\nmax_iterations = 4\n")
    found = settings(ralph)
    assert found["idle_timeout"] == {"value": 120, "origin": f"{users}:1"}
    assert found["max_iterations"] == {"value": 4, "origin": ".ralphex/config:2"}


def test_an_approved_configuration_that_is_run_does_not_see_the_users_denied_variables(
    ralph: Ralph, repo: Path, own: Path
) -> None:
    own.write_text("env_deny: [DENIED_TOKEN]\n")
    (repo / "agents").mkdir()
    (repo / "agents" / "mine.sh").write_text("agent_invoke() { echo hi; }\n")
    (repo / "config").write_text('echo "${DENIED_TOKEN-}" > seen\nAGENT=mine\n')
    ralph("trust")
    ralph("config", env={"DENIED_TOKEN": "denied-4711-value"})
    assert (repo / "seen").read_text() == "\n"


def test_the_repositorys_prices_need_approval_if_the_user_set_a_budget(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("prices: free.toml\n")
    (repo / "free.toml").write_text('["*"]\ninput = 0\noutput = 0\n')
    flags = ("run", "1", "--agent-cmd", f"echo '{DONE}'")
    assert ralph(*flags).returncode == 0
    refused = ralph(*flags, "--max-cost", "5")
    assert refused.returncode == 64
    assert "free.toml (ralph.yml:1)" in refused.stderr
