"""Which environment variables hold secrets."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Parts of a name between underscores.
_PARTS = frozenset(
    {
        "apikey", "key", "token", "secret", "password", "passwd", "pass", "passphrase", "credential", "credentials",
        "auth", "pat",
    }
)  # fmt: skip
_ENDS = ("password", "passwd", "token", "secret", "apikey")
#: Ends of names whose value is a secret even if it is a plain word.
_ALWAYS_SECRET = ("password", "passwd", "passphrase", "secret")
_WORD = r"[a-z]+([-_ ][a-z]+)*|[A-Z][a-z]+"
_URL = r"[A-Za-z][A-Za-z0-9+.-]*://[^\s@?#]*"
_TRIVIAL = frozenset({"localhost", "disabled", "required", "127.0.0.1", "undefined"})
#: Shorter values occur everywhere in ordinary text.
SHORTEST = 8
#: For one line of a secret with several: the lines of a private key have 64 characters.
_SHORTEST_LINE = 16
_LONGEST_NUMBER = 19


def looks_like_credential(name: str) -> bool:
    """Judged by the name alone."""
    folded = name.casefold()
    return folded.endswith(_ENDS) or not _PARTS.isdisjoint(folded.split("_"))


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a variable is one of these names or patterns like `AWS_*`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_trivial(name: str, value: str, user: str | None = None) -> bool:
    """Whether a value is no secret: short, a switch, a number, a word, a path, a URL, or the user's own name."""
    text = value.strip()
    if len(text) < SHORTEST or text.lower() in _TRIVIAL or text == user:
        return True
    if name.casefold().endswith(_ALWAYS_SECRET):
        return False
    if text.isdigit() and len(text) <= _LONGEST_NUMBER:
        return True
    return bool(re.fullmatch(_WORD, text) or re.fullmatch(_URL, text)) or _is_path(text)


def _is_path(text: str) -> bool:
    if "\n" in text or not text.startswith(("/", "~", "./", "../")):
        return False
    path = os.path.expanduser(text)  # noqa: PTH111 - must not fail for a user without a home
    folder = os.path.dirname(path)  # noqa: PTH120 - it may not be a path at all
    try:
        return os.path.exists(path) or (folder not in ("", "/") and os.path.isdir(folder))  # noqa: PTH110, PTH112
    except ValueError:  # a NUL in it
        return False


def secrets_of(environ: Mapping[str, str], more: Iterable[str] = (), known: Iterable[str] = ()) -> dict[str, str]:
    """Each secret, and the name of its variable.

    `more` are names and patterns that the user adds; `known` are the variables that agents read their login from.
    """
    user = environ.get("USER") or environ.get("LOGNAME")
    named, asked = set(known), tuple(more)
    found: dict[str, str] = {}
    for name in sorted(environ):
        value = environ[name].strip()
        if matches(name, asked):
            worth = len(value) >= SHORTEST
        else:
            worth = (name in named or looks_like_credential(name)) and not is_trivial(name, value, user)
        if worth:
            found.setdefault(value, name)
            for line in value.splitlines() if "\n" in value else ():
                # An agent may print it line by line.
                if len(line) >= _SHORTEST_LINE and not any(c.isspace() for c in line):
                    found.setdefault(line, name)
    return found
