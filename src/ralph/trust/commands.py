"""Which files of the repository does a command run? Every one that it names, in whatever form, and those that its
programs read without being told: an approval covers the content of all of them."""

from __future__ import annotations

import os
import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NODE = ("package.json", ".npmrc")
_MAKE = ("GNUmakefile", "makefile", "Makefile")
_JUST = ("justfile", "Justfile", ".justfile")
_GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
_COMPOSE = ("Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
#: Files that say what a program runs.
_IMPLIED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("make", "gmake", "bmake"), _MAKE),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "pnpx", "bun", "bunx"), _NODE),
    **dict.fromkeys(("deno",), ("deno.json", "deno.jsonc")),
    "just": _JUST,
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "tox": ("tox.ini", "pyproject.toml"),
    "nox": ("noxfile.py",),
    "pytest": ("pytest.ini", "conftest.py"),
    **dict.fromkeys(("invoke", "inv"), ("tasks.py",)),
    "pre-commit": (".pre-commit-config.yaml",),
    "cargo": ("Cargo.toml", "build.rs", ".cargo/config.toml"),
    **dict.fromkeys(("mvn", "mvnw"), ("pom.xml",)),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE),
    "ant": ("build.xml",),
    **dict.fromkeys(("cmake", "ctest"), ("CMakeLists.txt",)),
    "ninja": ("build.ninja",),
    "composer": ("composer.json",),
    **dict.fromkeys(("docker", "docker-compose", "podman"), _COMPOSE),
}
#: Where these programs look for a command of the repository.
_BINARIES = {
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "pnpx", "bun", "bunx"), "node_modules/.bin"),
    "composer": "vendor/bin",
}
_HERE = re.compile(r"\$\{?PWD\}?|\$\(\s*pwd\s*\)|`\s*pwd\s*`|\$\(\s*git rev-parse --show-toplevel\s*\)")
_WORD = re.compile(r"[^\s;&|()<>'\"`=,:@]+")
_REDIRECTION = re.compile(r"&?>[>|]?")
_OUTPUT_OPTION = re.compile(r"--(?:[\w-]+-)?(?:out|output|outfile|output-file|junit-?xml|report|log|log-file)(?==|$)")
_BRACES = re.compile(r"\{([^{}]*)\}")
_PATTERN = re.compile(r"[*?[]")
#: A command that a person approves has fewer; beyond that, nobody has read it.
_MAX_TEXT, _MAX_WORDS, _MAX_FOLDERS, _MAX_ENTRIES = 64 << 10, 2000, 50, 5000


class TooMuchError(ValueError):
    """The command names more than can be checked in a reasonable time."""


def files_of(text: str, folders: Iterable[Path], top: Path) -> list[Path]:
    """The files in `top` that a command names or implies, relative to `folders` or to any folder that it names."""
    if len(text) > _MAX_TEXT:
        raise TooMuchError(f"it is longer than {_MAX_TEXT >> 10} KiB")
    words = _words(text)
    if len(words) > _MAX_WORDS:
        raise TooMuchError(f"it has more than {_MAX_WORDS:,} words")
    found = _Search([*folders, top], top)
    for word in words:
        found.follow(word)
    for word in [*words, *_implied(words)]:
        found.add(word)
    return sorted(found.files)


def _words(text: str) -> list[str]:
    """All words that a shell, or a shell within a quoted argument, may see."""
    found: dict[str, None] = {}
    waiting = [_HERE.sub(".", text)]
    for depth in range(5):  # `bash -c "sh -c './x'"`
        texts, waiting = waiting, []
        for each in texts:
            words = _split(each)
            written = _written(each, words)
            for word in (word for word in words if word not in written):
                if depth < 4 and any(char.isspace() for char in word):
                    waiting.append(word)
                    found[word] = None
                else:
                    parts = [word, *_WORD.findall(word)]
                    found.update((spelling, None) for part in parts for spelling in _spellings(part))
                if len(found) > _MAX_WORDS:
                    return list(found)
    return list(found)


def _split(text: str, *, posix: bool = True) -> list[str]:
    lexer = shlex.shlex(text, posix=posix, punctuation_chars=True)
    lexer.commenters = ""
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # an open quote
        return text.split() if posix else []


def _written(text: str, words: list[str]) -> set[str]:
    """The words that only name what the command writes: `> log`, `| tee log`, `--junitxml=log`.

    Such a file changes with each run, and a command that also runs it names it once more.
    """
    found: list[str] = []
    before, writes = ";", False
    for word in _split(text, posix=False):  # it keeps quotes: ">" in quotes is no redirection
        operator = all(char in "();<>|&" for char in word)
        if not operator and (writes or _REDIRECTION.fullmatch(before) or _OUTPUT_OPTION.fullmatch(before)):
            found.append(word.strip("'\""))
        elif option := _OUTPUT_OPTION.match(word):
            found += [word, word[option.end() :].lstrip("=").strip("'\"")]
        at_start = all(char in "();|&" for char in before)
        writes = (writes and not operator) or (at_start and word in ("tee", "touch", "rm"))
        before = word if not before.endswith("\\") else ""
    return {word for word in found if word and words.count(word) <= found.count(word)}


def _spellings(word: str) -> Iterator[str]:
    """A word, the values in it (`--file=x`, `-fx`, `X=x`), and what its braces expand to."""
    for each in _expanded(word.replace("\\", "")):
        yield each
        yield from (part for part in re.split(r"[=:,@]", each)[1:] if part)
        if each.startswith("-") and len(each) > 2:
            yield each[2:]


def _expanded(word: str) -> list[str]:
    """`a{b,c}` as `ab` and `ac`."""
    found = _BRACES.search(word)
    if found is None:
        return [word]
    return [word, *(f"{word[: found.start()]}{part}{word[found.end() :]}" for part in found[1].split(","))]


def _implied(words: list[str]) -> list[str]:
    """The files that the programs among the words read or run, without being told their names."""
    programs = {word.rpartition("/")[2] for word in words}
    names = [name for program in programs for name in _IMPLIED.get(program, ())]
    plain = [word for word in words if re.fullmatch(r"[\w.@-]+", word) and not word.startswith("-")]
    names += [f"{_BINARIES[program]}/{word}" for program in programs & _BINARIES.keys() for word in plain]
    if any(re.fullmatch(r"(?:python|pypy)[\d.]*", program) for program in programs):
        modules = [word.replace(".", "/") for word in plain]
        names += [f"{module}{end}" for module in modules for end in (".py", "/__main__.py", "/__init__.py")]
    if programs & {"node", "bun", "deno", "tsx", "ts-node"}:
        names += [f"{word}{end}" for word in words for end in (".js", ".mjs", ".cjs", ".ts", "/index.js")]
    return names


class _Search:
    """Looks up words in the repository."""

    def __init__(self, folders: list[Path], top: Path) -> None:
        self.files: set[Path] = set()
        self._top = os.path.realpath(top)
        self._folders = dict.fromkeys(Path(os.path.normpath(folder)) for folder in folders)
        self._left = _MAX_ENTRIES

    def follow(self, word: str) -> None:
        """Remembers a folder that a word names: the command may change to it."""
        if word in ("", "/", "."):
            return
        for folder in list(self._folders):
            path = Path(os.path.normpath(folder / word))
            if path not in self._folders and self._is_folder(path):
                self._folders[path] = None
                if len(self._folders) > _MAX_FOLDERS:
                    raise TooMuchError(f"it names more than {_MAX_FOLDERS} folders")

    def add(self, word: str) -> None:
        if not word:
            return
        for folder in self._folders:
            path = Path(os.path.normpath(folder / word))
            if self._is_file(path):
                self.files.add(path)
            elif _PATTERN.search(word):
                self.files |= {each for each in self._matching(folder, word) if self._is_file(each)}

    def _matching(self, folder: Path, pattern: str) -> list[Path]:
        places = [Path("/") if pattern.startswith("/") else folder]
        for part in [part for part in pattern.split("/") if part not in ("", ".")]:
            if not _PATTERN.search(part):
                places = [place / part for place in places]
                continue
            places = [
                place / name
                for place in places
                if self._inside(place)
                for name in self._listed(place)
                if fnmatchcase(name, part)
            ]
        return [Path(os.path.normpath(place)) for place in places]

    def _listed(self, folder: Path) -> list[str]:
        try:
            names = os.listdir(folder)
        except OSError:
            return []
        self._left -= len(names)
        if self._left < 0:
            raise TooMuchError(f"its patterns match in folders with more than {_MAX_ENTRIES:,} files")
        return names

    def _is_file(self, path: Path) -> bool:
        return os.path.isfile(path) and self._inside(path)  # noqa: PTH113 - a word may not be a path at all

    def _is_folder(self, path: Path) -> bool:
        return os.path.isdir(path) and self._inside(path)  # noqa: PTH112

    def _inside(self, path: Path) -> bool:
        """Whether it is in the repository by its own name: what a link there leads to is content like any other."""
        return f"{os.path.realpath(path.parent)}/".startswith(f"{self._top}/") or os.path.realpath(path) == self._top
