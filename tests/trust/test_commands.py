"""Which files of the repository an approval of a command covers."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from ralph.trust.commands import TooMuchError, files_of
from ralph.trust.items import file_digest, of_command

if TYPE_CHECKING:
    from pathlib import Path

FILES = (
    "x", "y", "sub/x", "sub/deep/x", "Makefile", "sub/Makefile", "package.json", "node_modules/.bin/x", "a b.sh",
    "mod/__main__.py", "tool.py", "build.js", "justfile", "Cargo.toml",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    for name in FILES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    (tmp_path / "outside").write_text("outside")
    return top


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("./x", "x"),
        ("timeout 5 ./x", "x"),
        ("cd . && ./x", "x"),
        ("cd sub && ./x", "sub/x x"),
        ("cd sub; cd deep; ./x", "sub/deep/x sub/x x"),
        ("(cd sub/deep&&./x)", "sub/deep/x x"),
        ("pushd sub >/dev/null && bash x", "sub/x x"),
        ("make -f x", "Makefile x"),
        ("make -fx", "Makefile x"),
        ("make --file=x", "Makefile x"),
        ("make -C sub test", "Makefile sub/Makefile"),
        ("nice make test", "Makefile"),
        ("env -u X ./x", "x"),
        ("env X=1 Y=2 ./x", "x"),
        ("X=./x; $X", "x"),
        ("bash -o pipefail x", "x"),
        ("bash -euo pipefail -c './x --all'", "x"),
        ("""sh -c "bash -c './x'" """, "x"),
        ("npx x", "package.json node_modules/.bin/x x"),
        ("npm test", "package.json"),
        ("yarn run lint", "package.json"),
        ("just check", "justfile"),
        ("cargo test", "Cargo.toml"),
        ("python3 -m mod", "mod/__main__.py"),
        ("python -m tool arg", "tool.py"),
        ("node build", "build.js"),
        ("cat y|./x>/dev/null", "x y"),
        ("./x<y", "x y"),
        ("./x&", "x"),
        ("true;./x", "x"),
        ("! ./x", "x"),
        ("./'x'", "x"),
        ('./"x"', "x"),
        ("./\\x", "x"),
        ("./{x,y}", "x y"),
        ("'a b.sh'", "a b.sh"),
        ("bash a\\ b.sh", "a b.sh"),
        ("$PWD/x", "x"),
        ('"${PWD}"/x', "x"),
        ('"$(pwd)/x"', "x"),
        ("`pwd`/x", "x"),
        ("$(git rev-parse --show-toplevel)/x", "x"),
        ("sub/../x", "x"),
        ("./sub/*/x", "sub/deep/x"),
        ("for f in ?; do bash $f; done", "x y"),
        ("[ -x x ] && exec ./x", "x"),
        ("echo hi # ./x", "x"),
        ("echo 'an open quote ./x", "x"),
        ("echo hello", ""),
        ("true > x", ""),
        ("true 2>>'x'", ""),
        ("true &> x", ""),
        ("./y | tee -a x", "y"),
        ("touch x y; true", ""),
        ("./y --junitxml=x", "y"),
        ("./y --junit-xml x", "y"),
        ("./y > x; bash x", "x y"),
        ("true > x && ./x", "x"),
        ("touch x && ./x", "x"),
        ("xargs -I '>' ./x", "x"),
        ("xargs -I \\> ./x", "x"),
        ("xargs -I tee ./x", "x"),
        ("bash -c 'true > y; ./x'", "x"),
        ("cat ../outside", ""),
    ],
)
def test_every_word_that_names_a_file_counts(tree: Path, command: str, names: str) -> None:
    found = [str(path.relative_to(tree)) for path in files_of(command, (tree,), tree)]
    expected = sorted(["a b.sh"] if names == "a b.sh" else names.split())
    assert sorted(found) == expected


def test_an_absolute_path_into_the_repository_counts(tree: Path) -> None:
    assert files_of(f"bash {tree}/x", (tree,), tree) == [tree / "x"]


def test_a_folder_whose_name_begins_like_the_repositorys_is_outside(tree: Path) -> None:
    other = tree.with_name("top2")
    other.mkdir()
    (other / "z").write_text("z")
    assert files_of("bash ../top2/z", (tree,), tree) == []


@pytest.mark.parametrize("command", ["x " * 40_000, " ".join(f"w{n}" for n in range(3000)), "*/*/*/*/*"])
def test_too_much_to_check_is_refused_quickly(tree: Path, command: str) -> None:
    for number in range(6000):
        (tree / f"f{number}").touch()
    began = time.monotonic()
    with pytest.raises(TooMuchError):
        files_of(command, (tree,), tree)
    assert time.monotonic() - began < 10


def test_large_files_and_many_files_are_known_by_their_times(tree: Path) -> None:
    large = tree / "large"
    with large.open("wb") as file:
        file.truncate(1 << 40)
    began = time.monotonic()
    before = file_digest(large)
    assert time.monotonic() - began < 5
    os.utime(large)
    assert file_digest(large) != before
    paths = []
    for number in range(200):
        paths.append(tree / f"f{number:03}")
        paths[-1].touch()
    items = of_command("verify", paths, tree, "ralph.yml:1", at_start=False)
    assert len(items) == 65
    paths[-1].write_text("changed")
    assert items[-1].digest != of_command("verify", paths, tree, "ralph.yml:1", at_start=False)[-1].digest
