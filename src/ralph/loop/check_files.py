"""Which of the files that changed does a check use? If the agent changed the check itself, its result means less."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ralph.system.files import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: Files that a program runs or takes its instructions from, without being told their names.
_IMPLIED: dict[str, tuple[str, ...]] = {
    "make": ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    "just": ("justfile", ".justfile", "Justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "npm": ("package.json", ".npmrc"),
    "pytest": ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "conftest.py"),
    "tox": ("tox.ini", "pyproject.toml", "setup.cfg"),
    "nox": ("noxfile.py",),
    "ruff": ("ruff.toml", ".ruff.toml", "pyproject.toml"),
    "mypy": ("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"),
    "pre-commit": (".pre-commit-config.yaml",),
    "eslint": ("eslint.config.*", ".eslintrc*", "package.json"),
    "tsc": ("tsconfig*.json",),
    "jest": ("jest.config.*", "package.json"),
    "vitest": ("vitest.config.*", "vite.config.*"),
    "deno": ("deno.json", "deno.jsonc"),
    "cargo": ("Cargo.toml", "build.rs", "config.toml"),
    "mvn": ("pom.xml",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "cmake": ("CMakeLists.txt", "*.cmake"),
    "composer": ("composer.json",),
    "phpunit": ("phpunit.xml", "phpunit.xml.dist"),
    "rspec": (".rspec",),
    "docker": ("Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"),
}
#: Programs that read the same files as another one.
_LIKE = {
    "gmake": "make", "yarn": "npm", "pnpm": "npm", "bun": "npm", "npx": "npm", "py.test": "pytest",
    "mvnw": "mvn", "gradlew": "gradle", "ctest": "cmake", "docker-compose": "docker", "podman": "docker",
}  # fmt: skip
_WORD = re.compile(r"[^\s;&|()<>'\"`=,:$@{}]+")
_HERE = re.compile(r"\$\{?PWD\}?|\$\(pwd\)|`pwd`")
#: What a script may run: a path after an interpreter, or a file that is itself a script.
_INTERPRETED = re.compile(
    r"(?:\b(?:bash|sh|zsh|dash|python[\d.]*|node|deno|bun|ruby|perl|php|source|include)|(?<=\s)\.)\s+(?:-\S+\s+)*['\"]?([^\s'\"`;,)}]+)"
)
_SCRIPTS = (".sh", ".bash", ".zsh", ".mk")
#: A check seldom runs more files than this, and none that is larger.
_FILES, _BYTES = 50, 1 << 20


def changed_files(command: str, changed: Iterable[str], workdir: Path) -> list[str]:
    """The files of `changed` (relative to `workdir`) that a command names, that its program reads without being told
    their names, or that the scripts among these run in turn."""
    files = set(changed)
    if not files:
        return []
    words = _Words(command, workdir)
    found = {name for name in files if words.mention(name)}
    implied = words.implied()
    seen: set[str] = set()
    waiting = [*words.files(), *implied]
    while waiting and len(seen) < _FILES:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        words = _Words(_text(workdir / name), workdir)
        run = [other for other in words.files() if words.run(other)]
        more = words.implied()
        found |= files.intersection(run)
        implied |= more
        waiting += [*run, *more]
    return sorted(found | {name for name in files if any(_is(name, pattern) for pattern in implied)})


def _is(name: str, pattern: str) -> bool:
    folder, _, last = name.rpartition("/")
    place, _, wanted = pattern.rpartition("/")
    # pytest reads every conftest.py on the way to a test
    return fnmatchcase(last, wanted) and (folder == place or wanted == "conftest.py")


def _text(path: Path) -> str:
    try:
        data = read(path, _BYTES)
    except (OSError, ValueError):
        return ""
    return "" if b"\0" in data else data.decode("utf-8", "replace")  # a program names no files that matter here


class _Words:
    """The words of a command or a script."""

    def __init__(self, text: str, workdir: Path) -> None:
        self._text = _HERE.sub(".", text).replace("\\ ", " ")
        self._workdir = workdir
        self._words = set(_WORD.findall(self._text))
        self._paths = {path for word in self._words for path in self._relative(word)}

    def _relative(self, word: str) -> Iterator[str]:
        """A word as a path relative to the working directory, and what it leads to if it is a link."""
        if "\0" in word:
            return
        yield os.path.relpath(self._workdir / word, self._workdir)
        yield os.path.relpath(os.path.realpath(self._workdir / word), os.path.realpath(self._workdir))

    def mention(self, name: str) -> bool:
        """Whether a file is named, as it is, by a pattern, or with blanks in its name."""
        if name in self._paths or (" " in name and name in self._text):
            return True
        return any(fnmatchcase(name, path) for path in self._paths if any(sign in path for sign in "*?["))

    def files(self) -> list[str]:
        return [path for path in self._paths if os.path.isfile(self._workdir / path)]  # noqa: PTH113 - any word is a path

    def run(self, name: str) -> bool:
        """Whether a script runs this file, rather than reads it."""
        if name.endswith(_SCRIPTS) or os.access(self._workdir / name, os.X_OK):
            return True
        return name in {path for word in _INTERPRETED.findall(self._text) for path in self._relative(word)}

    def implied(self) -> set[str]:
        """What the programs among the words read, in the working directory and in each folder among the words."""
        programs = {word.rpartition("/")[2] for word in self._words}
        if "MAKE" in programs:  # $(MAKE)
            programs.add("make")
        names = {name for program in programs for name in _IMPLIED.get(_LIKE.get(program, program), ())}
        if not names:
            return names
        folders = [path for path in self._paths if os.path.isdir(self._workdir / path)]  # noqa: PTH112
        return names | {os.path.normpath(f"{folder}/{name}") for folder in folders for name in names}
