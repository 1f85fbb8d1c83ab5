"""The documentation is correct: its links, its examples and its generated pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ralph.agents import registry

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def test_the_generated_reference_is_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "tools" / "reference.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_have_a_target(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_lists_every_agent() -> None:
    table = (ROOT / "README.md").read_text()
    for spec in registry.all_specs():
        assert re.search(rf"\| `{spec.name}\b", table), spec.name


def test_every_guard_in_the_security_page_names_a_test_that_exists() -> None:
    lines = (ROOT / "SECURITY.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and "| What happens |" not in line]
    assert len(rows) > 30
    for row in rows:
        found = re.fullmatch(r".* \| `(tests/[\w/]+\.py)(?:::(\w+))?` \|", row)
        assert found is not None, f"this row names no test: {row}"
        file, name = found.groups()
        assert name is None or f"\ndef {name}(" in (ROOT / file).read_text(), f"{file} has no {name}"


def test_make_targets_in_the_documentation_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for line in re.findall(r"^ {4}make ([a-z -]+?)(?: {2,}#.*)?$", page.read_text(), re.MULTILINE):
            assert set(line.split()) <= targets, (page.name, line)


def test_the_rtf1_example_in_the_guide_works(
    repo: Path, ralph: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    page = (ROOT / "docs" / "how-to" / "bring-your-own-agent.md").read_text()
    script = re.search(r"```sh\n(say\(\).*?)```", page, re.DOTALL)
    assert script
    (repo / "agent.sh").write_text(script.group(1))
    ran = ralph("run", "--agent-cmd", "sh agent.sh", "--transcript", "rtf1", "1")
    assert ran.returncode == 0
    for expected in ("THINK   Plan: look at the tests first", "ACTIONS 1 tool call (shell): 1 ok", "1,801 tokens"):
        assert expected in ran.stdout
    assert "not understood" not in ran.stdout


def test_the_adapter_in_the_guide_works() -> None:
    page = (ROOT / "docs" / "how-to" / "add-an-agent.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code
    namespace: dict[str, object] = {}
    exec(code.group(1), namespace)
    adapter = namespace["ADAPTER"]()  # type: ignore[operator]
    (event,) = adapter.feed('{"type":"say","text":"hi"}')
    assert event.text == "hi"


def test_no_file_names_a_package_registry() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    registries = re.compile(r"(pypi|npmjs|pythonhosted|debian)\." + r"(org|com)")
    for name in listed:
        path = ROOT / name
        if not name or name.startswith("tests/fixtures/") or not path.is_file():
            continue
        found = registries.search(path.read_text(errors="replace"))
        assert found is None, (name, found)
