"""The disposable repository of the demo: a small library with passing tests, and a list of tasks."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

from ralph.errors import RunError, UsageError
from ralph.journal.alive import is_directory_locked
from ralph.journal.layout import StatePaths
from ralph.system import short
from ralph.system.programs import which
from ralph.testing.demo_tasks import ASCII_WORDS, LIBRARY, TASK_LIST
from ralph.testing.scripted_agent import without_git

if TYPE_CHECKING:
    from pathlib import Path

#: This file marks a folder as created by the demo, which may work in it and recreate it.
MARKER = ".ralph-demo"
_MARKER_TEXT = "Created by `ralph demo`, which may delete and recreate everything in this folder.\n"

_LIBRARY = f'''\
"""Small helpers for text."""

import re


def words(text):
    """The words of a text, without punctuation."""
    return {ASCII_WORDS}


def count(text):
    """How many words a text has."""
    return len(words(text))
'''

_TESTS = """\
import unittest

from textkit import count, words


class WordsTest(unittest.TestCase):
    def test_punctuation_is_left_out(self):
        self.assertEqual(words("Hello, World!"), ["Hello", "World"])

    def test_an_apostrophe_belongs_to_its_word(self):
        self.assertIn("Don't", words("Don't panic!"))

    def test_words_are_counted(self):
        self.assertEqual(count("one two three"), 3)
"""

_TASK_LIST = """\
# Tasks

- [ ] slugify: `slugify("Hello, World!")` gives `hello-world`
- [ ] shorten: `shorten(text, width)` cuts between words and ends with `…`
- [ ] initials: `initials("ada lovelace")` gives `A. L.`
- [ ] accents: `words("Crème brûlée")` finds two words
"""

_PROMPT = """\
textkit.py is a small library. TASKS.md lists what it still lacks.

1. Take the first task that is not ticked. Only that one.
2. Do it, with a test in tests/.
3. Tick it in TASKS.md and commit.

You remember nothing of earlier iterations: what they did is in the files and in the git log.

When all tasks are ticked and all tests pass, and only then, end with this line:

<promise>COMPLETE</promise>
"""

_CONFIG = """\
# How ralph runs here. `ralph config` shows every setting and where it came from.
agent: demo
max_iterations: 10

# When the agent says that everything is done, ralph runs this itself before it believes it.
verify:
  - {verify}
"""

#: Keeps the user's own git settings (hooks, signatures, ignored names, line endings) out of this repository.
_GIT_CONFIG = {
    "user.name": "Demo Agent",
    "user.email": "demo-agent@example.invalid",
    "commit.gpgSign": "false",
    "core.hooksPath": os.devnull,
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


def is_demo(folder: Path) -> bool:
    """Whether `ralph demo` created this folder."""
    try:
        return (folder / MARKER).read_text(encoding="utf-8") == _MARKER_TEXT
    except (OSError, UnicodeDecodeError):
        return False


def need_git() -> None:
    if which("git") is None:
        raise UsageError("the demo needs git, which is not in PATH: install it and try again")


def claim_folder(folder: Path) -> None:
    """Creates the folder or empties it. A folder that `ralph demo` did not create is never touched."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        inside = list(folder.iterdir())
        if inside and not is_demo(folder):
            raise UsageError(
                f"{folder} is not empty, and `ralph demo` did not create it, so it is left alone.\n"
                "  Name another folder, or leave out --dir to use a temporary one."
            )
        if is_directory_locked(StatePaths(folder)):
            raise UsageError(f"a demo is running in {folder}: wait for it, or name another folder")
        for path in inside:
            # The marker is removed last, so that an interrupted removal can be repeated.
            if path.name != MARKER:
                _remove(path)
        (folder / MARKER).unlink(missing_ok=True)
    except FileExistsError:
        raise UsageError(f"{folder} is a file: --dir needs a folder") from None
    except OSError as error:
        raise UsageError(f"{folder} cannot be used for the demo: {error.strerror}") from None


def create(folder: Path) -> None:
    """Creates the project in an empty folder, as a git repository with one commit."""
    verify = f"{shlex.quote(sys.executable)} -m unittest -q"
    files = {
        MARKER: _MARKER_TEXT,  # first, so that an interrupted creation can be removed
        ".gitignore": f"__pycache__/\n{MARKER}\n",
        LIBRARY: _LIBRARY,
        "tests/__init__.py": "",
        "tests/test_textkit.py": _TESTS,
        TASK_LIST: _TASK_LIST,
        "PROMPT.md": _PROMPT,
        "ralph.yml": _CONFIG.format(verify=json.dumps(verify, ensure_ascii=False)),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # No template: it could contain hooks.
    _git(folder, "init", "-q", "--template=")
    _git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    for key, value in _GIT_CONFIG.items():
        _git(folder, "config", key, value)
    _git(folder, "add", "--all")
    _git(folder, "commit", "-q", "-m", "Start: a small library and a list of tasks")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _git(folder: Path, *arguments: str) -> None:
    command = [which("git") or "git", *arguments]
    done = short.run(command, timeout=60, env=without_git(dict(os.environ)), cwd=folder)
    if done.status != 0:
        why = done.reason or done.stderr.decode("utf-8", "replace").strip()
        raise RunError(f"`git {' '.join(arguments)}` failed in {folder}: {why}")
