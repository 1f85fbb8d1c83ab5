"""`ralph config` and `ralph init`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ralph.config.settings import OPTIONS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


def test_every_value_is_shown_with_its_origin(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("max_cost: 3\nidle_timeout: 2m\nagnt: x\n")
    result = ralph("config", env={"RALPH_AGENT": "codex"})
    lines = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.strip()}
    assert {option.name for option in OPTIONS} <= lines.keys()
    assert lines["max_cost"] == ["max_cost", "3", "ralph.yml:1"]
    assert lines["idle_timeout"] == ["idle_timeout", "2m", "ralph.yml:2"]
    assert lines["agent"] == ["agent", "codex", "RALPH_AGENT"]
    assert lines["wall_timeout"] == ["wall_timeout", "2h", "default"]
    assert str(repo / "ralph.yml") in result.stdout
    assert "unknown key 'agnt'" in result.stderr


def test_json_has_the_same_values_and_origins(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("idle_timeout: 2m\n")
    rows = json.loads(ralph("config", "--json").stdout)
    assert rows["idle_timeout"] == {"value": 120.0, "origin": "ralph.yml:1"}
    assert rows.keys() == {option.name for option in OPTIONS}


def test_a_flag_or_a_variable_can_name_the_file(ralph: Ralph, repo: Path) -> None:
    (repo / "other.yml").write_text("max_cost: 9\n")
    assert "other.yml:1" in ralph("config", "-c", "other.yml").stdout
    assert "other.yml:1" in ralph("config", env={"RALPH_CONFIG": "other.yml"}).stdout
    missing = ralph("config", "-c", "nope.yml")
    assert (missing.returncode, missing.stderr) == (64, "ralph: nope.yml: there is no such file\n")


def test_the_schema_is_json(ralph: Ralph) -> None:
    schema = json.loads(ralph("config", "--schema").stdout)
    assert schema["properties"]["max_iterations"]["minimum"] == 0


def test_a_broken_file_does_not_hide_the_schema(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("a: [\n")
    assert ralph("config", "--schema").returncode == 0
    assert ralph("config").returncode == 64


def test_init_writes_files_that_work(ralph: Ralph, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    result = ralph("init", cwd=new)
    assert result.returncode == 0, result
    assert sorted(p.name for p in new.iterdir()) == ["PROMPT.md", "ralph.yml"]
    shown = ralph("run", "--agent-cmd", "cat", "--dry-run", cwd=new)
    assert shown.returncode == 0, shown
    assert "warning" not in shown.stdout
    # the lines that are commented out must be valid, too
    text = (new / "ralph.yml").read_text()
    commented = [
        line[2:] for line in text.splitlines() if line.startswith(("# max_", "# verify:", "#   - ", "# allowed_"))
    ]
    (new / "ralph.yml").write_text("\n".join(commented))
    checked = ralph("config", cwd=new)
    assert checked.returncode == 0, (checked, commented)
    assert checked.stderr == ""
    assert "make test" in checked.stdout


def test_init_never_overwrites(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("max_cost: 1\n")
    result = ralph("init")
    assert result.returncode == 0
    assert (repo / "ralph.yml").read_text() == "max_cost: 1\n"
    assert (repo / "PROMPT.md").read_text() == "Do the work.\n"
    assert "ralph.yml already exists" in result.stdout
    assert "PROMPT.md already exists" in result.stdout


def test_init_does_not_write_through_a_dangling_link(ralph: Ralph, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    (new / "PROMPT.md").symlink_to(tmp_path / "elsewhere.md")
    ralph("init", cwd=new)
    assert not (tmp_path / "elsewhere.md").exists()
