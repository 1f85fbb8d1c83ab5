"""Checking an agent's file: all problems are reported at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph.agents import registry, specfile

GOOD = 'name = "bolt"\ntitle = "Bolt"\ncommands = ["bolt"]\n[[invocation]]\nargs = ["-p"]\n'


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "bolt.toml"
    path.write_text(text)
    file = specfile.read(path)
    assert (file.spec is None) is bool(file.problems)
    return list(file.problems)


def test_a_valid_file_has_no_problems(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD) == []


def test_all_problems_are_reported_at_once_with_the_nearest_name(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """
        name = "bolt"
        comands = ["bolt"]
        detect = "first"
        login_env = ["A", 3]
        [version]
        patern = "x"
        minimum = 2
        [[invocation]]
        prompt = "stdn"
        [[invocation]]
        arg = ["x"]
        pty = "yes"
        """,
    )
    told = "\n".join(found)
    for expected in (
        "there is no key 'comands' (did you mean 'commands'?)",
        "'title' is missing",
        "'commands' is missing",
        "there is no key 'version.patern' (did you mean 'pattern'?)",
        "version.minimum: expected str | null, got int",
        "invocation[1].prompt: expected one of stdin, argument, file, not 'stdn' (did you mean 'stdin'?)",
        "there is no key 'invocation[2].arg' (did you mean 'args'?)",
        "invocation[2].pty: expected bool, got str",
        "detect: expected int | null, got str",
        "login_env[1]: expected str, got int",
    ):
        assert expected in told
    assert len(found) == 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('invocation = "x"\nname = "b"\ntitle = "B"\ncommands = ["b"]\n', "expected [[invocation]] tables"),
        ('invocation = ["x"]\nname = "b"\ntitle = "B"\ncommands = ["b"]\n', "invocation[1]: expected a table"),
        (GOOD + "[version]\n[session]\n", "'session.resume' is missing"),
        (GOOD.replace("bolt", "auto"), "the name 'auto' is reserved"),
        (GOOD.replace('"bolt"', '"two words"', 1), "'two words' is not a valid name"),
        (GOOD + 'transcript = "cdex"\n', "there is no adapter 'cdex' (did you mean 'codex'?)"),
        (GOOD + 'versions = ">=2, ~3"\n', "'~3' is not a range"),
        (GOOD + '[version]\nminimum = "new"\n', "version.minimum: 'new' is not a version"),
        (GOOD + '[session]\nresume = ["-r"]\n', "session.resume: {session} is missing"),
        (GOOD + '[tools]\nallow = ["-t"]\n', "tools.allow: {tools} or {tool} is missing"),
        ('model = ["-m"]\n' + GOOD, "model: {model} is missing"),
        ('tells = ["tokens"]\n' + GOOD, "tells: 'tokens' is not one of"),
    ],
)
def test_each_problem_has_a_message_of_its_own(tmp_path: Path, text: str, expected: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert expected in problem


def test_the_file_in_the_how_to_is_valid(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "add-an-agent.md").read_text()
    (example,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert problems(tmp_path, example) == []


def test_the_built_in_files_pass_the_same_checks() -> None:
    for spec in registry.all_specs():
        if spec.name == "demo":
            continue  # a reserved name
        assert [p for p in specfile.check(spec) if "there is no adapter" not in p] == [], spec.name
