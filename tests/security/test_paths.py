"""Paths in a repository's files may lead out of it only if the user trusts it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .support import AGENT, harmless

if TYPE_CHECKING:
    from .support import Ralph


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("ralph.yml", "prompt_file: {secret}"),
        ("ralph.yml", "prompt_file: ../{above}/secret"),
        ("ralph.yml", "prompt_file: ~/secret"),
        ("ralph.yml", "prompt_file: inner/secret"),
        ("ralph.yml", "cwd: {outside}"),
        ("ralph.yml", "prices: {secret}"),
        (".ralphrc", "PROMPT_FILE={secret}"),
        (".ralphex/config", "plans_dir = {outside}"),
    ],
)
def test_a_path_out_of_the_repository_needs_trust(
    ralph: Ralph, repo: Path, outside: Path, name: str, line: str
) -> None:
    (outside / "PROMPT.md").write_text("the-secret\n")
    (Path.home() / "secret").write_text("the-secret\n")
    (repo / "inner").symlink_to(outside)
    if name == ".ralphex/config":
        (repo / "PROMPT.md").unlink()
        (outside / "secret").rename(outside / "plan.md")
        (outside / "PROMPT.md").unlink()
    (repo / name).parent.mkdir(exist_ok=True)
    places = {"secret": outside / "secret", "outside": outside, "above": f"../{outside.parent.name}/{outside.name}"}
    above = Path("..")
    while not outside.is_relative_to((repo / above).resolve()):
        above /= ".."
    places["above"] = str(above / outside.relative_to((repo / above).resolve())).removeprefix("../")
    (repo / name).write_text(line.format(**places) + "\n")
    for command in (AGENT, [*AGENT, "--dry-run"]):
        done = ralph(*command)
        harmless(done)
        output = done.stdout + done.stderr
        assert "ralph trust" in output, done
        assert "the-secret" not in output
    assert ralph(*AGENT).returncode == 64
    assert not any((folder / "received").exists() for folder in (repo, outside))
    harmless(ralph("doctor"))
    harmless(ralph("config"))
    assert ralph("trust").returncode == 0
    if "prices" not in line:  # the secret is not a price table
        assert ralph(*AGENT).returncode == 0


def test_the_users_own_file_needs_no_trust(ralph: Ralph, repo: Path, outside: Path) -> None:
    own = Path.home() / ".config" / "ralph"
    own.mkdir(parents=True)
    (own / "ralph.yml").write_text(f"prompt_file: {outside / 'secret'}\n")
    assert ralph(*AGENT).returncode == 0
    assert (repo / "received").read_text() == "the-secret\n"
    done = ralph("run", "1", "--cwd", str(outside), "--agent-cmd", AGENT[3], env={"RALPH_PROMPT_FILE": "secret"})
    assert done.returncode == 0, done


def test_a_command_needs_trust_whatever_the_name_of_its_folder(ralph: Ralph, repo: Path) -> None:
    folder = repo / "a\nb" / "sub"
    folder.mkdir(parents=True)
    (repo / "a\nb" / "ralph.yml").write_text("agent_cmd: touch ran\n")
    (folder / "PROMPT.md").write_text("x\n")
    done = ralph("run", "1", cwd=folder)
    harmless(done)
    assert done.returncode == 64, done
    assert not (folder / "ran").exists()
