"""Which changed files a check runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.loop.check_files import changed_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "check.sh": "#!/bin/sh\nexec sh scripts/inner.sh src/main.c\n",
        "scripts/inner.sh": "python3 tools/deep.py\n",
        "tools/deep.py": "",
        "Makefile": "include rules.mk\ntest: src/main.c\n\t@./run-tests\n\t$(MAKE) -C sub\n",
        "rules.mk": "",
        "run-tests": "#!/bin/sh\n",
        "sub/Makefile": "",
        "other/Makefile": "",
        "src/main.c": "",
        "package.json": '{"scripts": {"test": "node scripts/test.js"}}',
        "scripts/test.js": "",
        "tests/conftest.py": "",
        "pyproject.toml": "",
        "with blank.sh": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "run-tests").chmod(0o755)
    (tmp_path / "link").symlink_to("scripts/inner.sh")
    return tmp_path


MAKE = ["Makefile", "rules.mk", "run-tests", "sub/Makefile"]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("true", []),
        ("./check.sh", ["check.sh", "scripts/inner.sh", "tools/deep.py"]),
        ("timeout 5 ./scripts/inner.sh", ["scripts/inner.sh", "tools/deep.py"]),
        ("cd . && env -u X bash -o pipefail scripts/inner.sh", ["scripts/inner.sh", "tools/deep.py"]),
        ('"$PWD/scripts/inner.sh"', ["scripts/inner.sh", "tools/deep.py"]),
        ("./link", ["link", "scripts/inner.sh", "tools/deep.py"]),
        ("for f in scripts/*.sh; do $f; done", ["scripts/inner.sh"]),
        ("bash 'with blank.sh'", ["with blank.sh"]),
        ("bash with\\ blank.sh", ["with blank.sh"]),
        ("make test", MAKE),
        ("CI=1 make -j2 test", MAKE),
        ("make -f rules.mk", MAKE),
        ("cd sub && make", [*MAKE]),
        ("npm test", ["package.json", "scripts/test.js"]),
        ("python -m pytest -q", ["pyproject.toml", "tests/conftest.py"]),
        ("test -e src/main.c", ["src/main.c"]),
    ],
)
def test_the_files_that_a_check_runs(tree: Path, command: str, found: list[str]) -> None:
    every = [path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()]
    assert changed_files(command, every, tree) == sorted(found)


def test_a_file_that_was_deleted_is_named(tree: Path) -> None:
    (tree / "check.sh").unlink()
    assert changed_files("sh check.sh", ["check.sh", "README.md"], tree) == ["check.sh"]


def test_nothing_changed(tree: Path) -> None:
    assert changed_files("make test", [], tree) == []


def test_scripts_that_run_each_other_end(tree: Path) -> None:
    (tree / "a.sh").write_text("sh b.sh\n")
    (tree / "b.sh").write_text("sh a.sh\n")
    assert changed_files("sh a.sh", ["b.sh"], tree) == ["b.sh"]
