"""What a package index shows, and what is installed from the lock files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from hatch_build import absolute_links

from ralph import __version__

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HOME = "https://example.invalid/project"


def test_relative_links_of_the_readme_become_absolute(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("")
    page = "[a](docs/a.md#b) [d](docs) ![i](docs/i.png) [w](https://w.invalid/) [h](#here) [m](mailto:m@x.invalid)"
    assert absolute_links(page, tmp_path, HOME) == (
        f"[a]({HOME}/blob/main/docs/a.md#b) [d]({HOME}/tree/main/docs) ![i]({HOME}/blob/main/docs/i.png) "
        "[w](https://w.invalid/) [h](#here) [m](mailto:m@x.invalid)"
    )


def test_our_own_readme_has_no_other_kind_of_link() -> None:
    """References (`[a]: b`) and HTML would need handling of their own."""
    text = (ROOT / "README.md").read_text()
    assert not re.search(r"^\[[^\]]+\]: |<(?:a|img) ", text, re.MULTILINE)
    targets = re.findall(r"\]\(([^)]*)\)", absolute_links(text, ROOT, HOME))
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_the_project_has_addresses_and_classifiers() -> None:
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= set(PROJECT["urls"])
    assert {c.partition(" :: ")[0] for c in PROJECT["classifiers"]} >= {
        "Development Status",
        "Environment",
        "Intended Audience",
        "Operating System",
        "Programming Language",
        "Topic",
    }


def test_every_document_names_the_package_by_its_name() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"pipx? install '?(ralph[\w-]*)", page.read_text()):
            assert name == PROJECT["name"], page


def test_the_version_is_known_without_looking_for_the_package(
    ralph: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert ralph("--version", "runs").stdout == f"ralph {__version__}\n"


def test_the_lock_files_name_no_host() -> None:
    for lock in (ROOT / "requirements").glob("*.txt"):
        assert not re.search(r"://|--(?:extra-)?index-url|--find-links|--trusted-host", lock.read_text()), lock.name
