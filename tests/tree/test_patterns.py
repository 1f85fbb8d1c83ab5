"""The patterns of a .gitignore mean what they mean to git."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralph.tree.patterns import Patterns

if TYPE_CHECKING:
    from pathlib import Path

_PIECES = [
    "a",
    "b",
    "ab",
    "*",
    "**",
    "?",
    "/",
    "[ab]",
    "[!a]",
    "[a-c]",
    "[[:alpha:]]",
    "\\*",
    "!",
    "#",
    " ",
    "\\ ",
    ".",
]
_lines = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6).map("".join)
_paths = st.lists(
    st.sampled_from(["a", "b", "ab", "aab", "c", "*", "a b", ".a", "#", "!a", "a "]), min_size=1, max_size=4
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("empty")
    subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
    return root


def ignored_by_git(root: Path, text: str, paths: list[str]) -> set[str]:
    (root / ".gitignore").write_text(text)
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root,
        input=os.fsencode("\0".join(paths)),
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}


def ignored(text: str, path: str) -> bool:
    """A path is ignored if a folder on the way to it is, or it is itself."""
    patterns = Patterns(os.fsencode(text))
    parts = os.fsencode(path).split(b"/")
    for end in range(1, len(parts) + 1):
        name = b"/".join(parts[:end])
        if patterns.decide(name, parts[end - 1], is_folder=end < len(parts)):
            return True
    return False


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(_lines, min_size=1, max_size=5), paths=st.lists(_paths.map("/".join), min_size=1, max_size=25))
def test_they_ignore_what_git_ignores(empty: Path, lines: list[str], paths: list[str]) -> None:
    text = "\n".join(lines)
    wanted = ignored_by_git(empty, text, sorted(set(paths)))
    assert {path for path in paths if ignored(text, path)} == wanted, text


@pytest.mark.parametrize(
    ("line", "path", "wanted"),
    [
        ("build/", "build/x", True),
        ("build/", "build", False),
        ("/build", "sub/build", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**", "a", False),
        ("a/**", "a/x/y", True),
        ("**/a", "x/y/a", True),
        ("*.py[co]", "x/m.pyc", True),
        ("\ufeff*.txt", "x.txt", True),
        ("*.txt\r", "x.txt", True),
        ("[", "[", False),
    ],
)
def test_examples(empty: Path, line: str, path: str, wanted: bool) -> None:
    assert ignored(line, path) is wanted
    assert (path in ignored_by_git(empty, line, [path])) is wanted


def test_no_pattern_takes_long() -> None:
    began = time.process_time()
    patterns = Patterns(b"*a" * 50 + b"b\n" + b"**/" * 40 + b"*a" * 40 + b"/x\n" + b"a/**/" * 30 + b"b\n")
    patterns.decide(b"/".join([b"a" * 200] * 20), b"a" * 200, is_folder=False)
    assert time.process_time() - began < 2
