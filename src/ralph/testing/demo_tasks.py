"""What the demo agent knows: how to do the tasks of the demo project. It gets one of them wrong."""

from __future__ import annotations

import re

import msgspec

LIBRARY = "textkit.py"
TASK_LIST = "TASKS.md"

#: The body of `words` at first, after the agent's hasty change (which breaks a test), and after the repair.
ASCII_WORDS = r"""re.findall(r"[A-Za-z0-9']+", text)"""
HASTY_WORDS = r"""re.findall(r"\w+", text)"""
RIGHT_WORDS = r"""re.findall(r"[\w']+", text)"""


class Task(msgspec.Struct, frozen=True):
    """How to do one task."""

    name: str
    #: what the agent says before it starts
    idea: str
    #: the text of the library to replace; None appends the new text
    old: str | None
    new: str
    test: str
    commit: str
    #: prompt and completion tokens; invented, because there is no model
    tokens: tuple[int, int]

    @property
    def test_file(self) -> str:
        return f"tests/test_{self.name}.py"

    @property
    def test_module(self) -> str:
        return f"tests.test_{self.name}"

    def apply(self, library: str) -> str:
        """The library with this task done; unchanged if it is done already."""
        if self.new in library:
            return library
        if self.old is None:
            return f"{library.rstrip()}\n\n\n{self.new}"
        return library.replace(self.old, self.new)


class Entry(msgspec.Struct, frozen=True):
    """One line of the task list."""

    name: str
    done: bool


_ENTRY = re.compile(r"^- \[([ xX])\] (.+)$", re.MULTILINE)


def entries(task_list: str) -> list[Entry]:
    """The tasks in order. The name of a task is the text before the colon."""
    return [Entry(text.partition(":")[0].strip(), box != " ") for box, text in _ENTRY.findall(task_list)]


def tick(task_list: str, name: str) -> str:
    return re.sub(rf"^- \[ \] (?={re.escape(name)}\s*(:|$))", "- [x] ", task_list, count=1, flags=re.MULTILINE)


def repaired(library: str) -> str:
    """The library with the right pattern instead of the hasty one."""
    return library.replace(HASTY_WORDS, RIGHT_WORDS)


def _test(function: str, says: str, check: str) -> str:
    return f"""\
import unittest

from textkit import {function}


class {function.capitalize()}Test(unittest.TestCase):
    def test_{says}(self):
        {check}
"""


_TASKS = (
    Task(
        "slugify",
        "A slug is the words of the title, in lower case, joined by hyphens. words() does half of it already.",
        None,
        '''\
def slugify(title):
    """A title as a part of a web address."""
    return "-".join(words(title)).lower()
''',
        _test("slugify", "joins_words_with_hyphens", 'self.assertEqual(slugify("Hello, World!"), "hello-world")'),
        "Add slugify, for web addresses out of titles",
        (3_912, 418),
    ),
    Task(
        "shorten",
        "Cut at the width, then go back to the last space, so that no word is cut in two.",
        None,
        '''\
def shorten(text, width):
    """At most `width` characters of a text, cut between words."""
    if len(text) <= width:
        return text
    return text[:width].rpartition(" ")[0] + "…"
''',
        _test("shorten", "cuts_between_words", 'self.assertEqual(shorten("one two three", 9), "one two…")'),
        "Add shorten, which never cuts a word in two",
        (4_205, 467),
    ),
    Task(
        "initials",
        "The first letter of each word, as a capital, followed by a full stop.",
        None,
        '''\
def initials(name):
    """The first letters of a name."""
    return " ".join(f"{word[0].upper()}." for word in words(name))
''',
        _test("initials", "are_capitals_with_stops", 'self.assertEqual(initials("ada lovelace"), "A. L.")'),
        "Add initials",
        (4_388, 402),
    ),
    Task(
        "accents",
        "words() finds only A to Z. \\w matches every letter there is, so I'll use that.",
        ASCII_WORDS,
        HASTY_WORDS,
        _test("words", "keep_their_accents", 'self.assertEqual(words("Crème brûlée"), ["Crème", "brûlée"])'),
        "Let words() find accented letters",
        (4_530, 391),
    ),
)

TASKS = {task.name: task for task in _TASKS}
