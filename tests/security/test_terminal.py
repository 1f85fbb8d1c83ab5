"""Names and values in a repository cannot control the terminal or hide a command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from .support import AGENT, CONTROL, EVIL

if TYPE_CHECKING:
    from pathlib import Path

    from .support import Ralph

#: the same, as written in YAML and JSON
WRITTEN = json.dumps(EVIL)
COMMANDS = (AGENT, ["run"], ["config"], ["config", "--json"], ["doctor"], ["doctor", "--json"], ["trust", "--dry-run"])


def clean(ralph: Ralph, *command: str, cwd: Path | None = None) -> str:
    """The output of a command. It is read as bytes, so that no carriage return is lost."""
    done = ralph(*command, cwd=cwd, text=False)
    output = (bytes(done.stdout) + bytes(done.stderr)).decode("utf-8")  # type: ignore[arg-type]
    assert CONTROL.search(output) is None, output
    assert "this is a bug in ralph" not in output, output
    return output


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ralph.yml", f"{WRITTEN}: 1\nmax_iterations: {WRITTEN}\n"),
        ("ralph.yml", f"agent_cmd: {WRITTEN}\nmodel: {WRITTEN}\nallowed_paths: [{WRITTEN}]\nverify: [{WRITTEN}]\n"),
        ("ralph.yml", f"agent: {WRITTEN}\n"),
        ("ralph.yml", f"adapters: {{{WRITTEN}: {{timeout: {WRITTEN}}}}}\nprompt_file: {WRITTEN}\n"),
        ("ralph.yml", f"max_iterations: 3\n{EVIL}\n"),
        (".ralphrc", f"MAX_LOOPS='{EVIL}'\nEVIL{EVIL}=1\n'{EVIL}'\nPLATFORM_DRIVER='{EVIL}'\n"),
        (".ralphex/config", f"claude_command = {EVIL}\n{EVIL} = 1\nexecutor = {EVIL}\n"),
        (f"docs/plans/{EVIL.replace('/', '')}.md", "# Plan\n- [ ] x\n"),
        (f".ralph/agents/{EVIL.replace('/', '')}.toml", f"name = 7\n{EVIL} = 1\n"),
        (f"agents/{EVIL.replace('/', '')}.sh", "x\n"),
    ],
    ids=["keys", "values", "agent", "adapters", "syntax", "ralphrc", "ralphex", "plan", "spec", "script"],
)
def test_no_command_prints_control_characters(ralph: Ralph, repo: Path, name: str, text: str) -> None:
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).write_text(text, newline="")
    if name.startswith("docs"):
        (repo / "PROMPT.md").unlink()
        (repo / ".ralphex").mkdir()
        (repo / ".ralphex" / "config").write_text("max_iterations = 3\n")
    if name.startswith("agents"):
        (repo / "config").write_text("AGENT=one\n")
    for command in COMMANDS:
        clean(ralph, *command)


def test_a_folder_with_control_characters_in_its_name_is_harmless(ralph: Ralph, repo: Path) -> None:
    folder = repo / EVIL.replace("/", "")
    folder.mkdir()
    for command in (*COMMANDS, ["runs"], ["show"], ["init"], ["agents"]):
        clean(ralph, *command, cwd=folder)


@pytest.mark.parametrize(
    "hiding",
    [" " * 5000, "\t" * 5000, "\n" * 500, "\r" + " " * 100, "\x1b[8m", "# " + "x" * 9000 + "\n", "\u202e"],
    ids=["blanks", "tabs", "lines", "return", "concealed", "length", "bidi"],
)
def test_trust_shows_the_end_of_a_command(ralph: Ralph, repo: Path, hiding: str) -> None:
    (repo / "ralph.yml").write_text("agent_cmd: " + json.dumps(f"harmless {hiding}; the-end"))
    for command in (["trust", "--dry-run"], ["run"], ["run", "--dry-run"]):
        output = clean(ralph, *command)
        assert "the-end" in output
        assert len(output.split("harmless")[1].split("the-end")[0].split("\n")) < 20


@pytest.mark.endurance
def test_exploding_aliases_and_endless_nesting_are_refused(ralph: Ralph, repo: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    for text in ("\n".join(lines), "a: &a [*a]\n", "a: " + "[" * 1500, "? " * 1500):
        (repo / "ralph.yml").write_text(text)
        assert "ralph.yml" in clean(ralph, "config")
