"""Which files an agent may change."""

from __future__ import annotations

import pytest

from ralph.loop.allowed import outside


@pytest.mark.parametrize(
    ("allowed", "name", "inside"),
    [
        ("src", "src/a.py", True),
        ("src/", "src/deep/a.py", True),
        ("./src", "src/a.py", True),
        ("src", "srcs/a.py", False),
        ("src", "other/src/a.py", False),
        ("README.md", "README.md", True),
        ("README.md", "docs/README.md", False),
        ("*.md", "a.md", True),
        ("docs/**", "docs/a/b.txt", True),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/**/*.py", "src/x/a.txt", False),
        (".", "anything/at/all", True),
        (".", "../elsewhere", False),
        ("*", "../elsewhere", False),
        ("..", "../elsewhere", True),
        ("../lib", "../lib/a", True),
        ("../lib", "lib/a", False),
        ("a[1].txt", "a[1].txt", True),
    ],
)
def test_what_an_allowed_path_covers(allowed: str, name: str, inside: bool) -> None:
    assert (outside([name], [allowed]) == []) is inside
