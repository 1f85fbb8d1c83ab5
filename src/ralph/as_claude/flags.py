"""Reads Claude's command line the way Claude does, and keeps what matters to another agent."""

from __future__ import annotations

import re
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator


class Format(StrEnum):
    STREAM = "stream-json"
    JSON = "json"
    TEXT = "text"


class Flag(msgspec.Struct, frozen=True):
    """A flag with its values, as it was typed."""

    name: str
    values: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        return (self.name, *self.values)


class Asked(msgspec.Struct, frozen=True):
    """What the command line asks for. `prompt` is None if it comes on stdin."""

    prompt: str | None = None
    agent: str | None = None
    model: str | None = None
    format: Format = Format.STREAM
    effort: str | None = None
    #: the session to resume; empty if none was named
    resume: str | None = None
    continue_last: bool = False
    skip_permissions: bool = False
    #: instructions for the system prompt, and whether each is the path of a file that holds them
    system: tuple[tuple[str, bool], ...] = ()
    #: where to write a program that calls this command with these flags
    install: str | None = None
    #: the flags that only Claude itself understands
    others: tuple[Flag, ...] = ()


class _Takes(Enum):
    NOTHING = 0
    ONE = 1
    #: one, if the next word is not a flag
    MAYBE = 2
    #: one, and every further word up to the next flag
    MANY = 3


#: Flags that every run fulfils, or that only change what Claude itself shows.
_SETTLED = frozenset(
    {
        "--agent", "--allow-dangerously-skip-permissions", "--ax-screen-reader", "--brief",
        "--dangerously-skip-permissions", "--debug", "--debug-file", "--include-hook-events",
        "--include-partial-messages", "--install", "--mcp-debug", "--model", "--name", "--output-format", "--print",
        "--replay-user-messages", "--verbose",
    }
)  # fmt: skip

#: The flags of Claude Code 2.1, and ours: --agent names ralph's agent here, and --install writes a program.
_FLAGS = {
    _Takes.NOTHING: {
        "--allow-dangerously-skip-permissions", "--ax-screen-reader", "--background", "--bare", "--bg", "--brief",
        "--chrome", "--continue", "--dangerously-skip-permissions", "--desktop", "--disable-slash-commands",
        "--exclude-dynamic-system-prompt-sections", "--fork-session", "--forward-subagent-text", "--ide",
        "--include-hook-events", "--include-partial-messages", "--mcp-debug", "--no-chrome",
        "--no-session-persistence", "--print", "--replay-user-messages", "--restricted", "--safe-mode",
        "--strict-mcp-config", "--tmux", "--verbose",
    },
    _Takes.ONE: {
        "--agent", "--agents", "--append-system-prompt", "--append-system-prompt-file", "--autocompact",
        "--debug-file", "--effort", "--environment", "--fallback-model", "--input-format", "--install",
        "--json-schema", "--max-budget-usd", "--max-thinking-tokens", "--max-turns", "--model", "--name",
        "--output-format", "--permission-mode", "--permission-prompt-tool", "--permission-prompts", "--plugin-dir",
        "--plugin-url", "--remote-control-session-name-prefix", "--session-id", "--setting-sources", "--settings",
        "--system-prompt", "--system-prompt-file", "--system-prompt-snapshot",
    },
    _Takes.MAYBE: {
        "--cloud", "--debug", "--from-pr", "--prompt-suggestions", "--remote-control", "--resume", "--teleport",
        "--worktree",
    },
    _Takes.MANY: {
        "--add-dir", "--allowed-tools", "--allowedTools", "--betas", "--disallowed-tools", "--disallowedTools",
        "--file", "--mcp-config", "--tools",
    },
}  # fmt: skip
_TAKES = {name: takes for takes, names in _FLAGS.items() for name in names}
_SHORT = {"-c": "--continue", "-d": "--debug", "-n": "--name", "-p": "--print", "-r": "--resume", "-w": "--worktree"}
_SYSTEM = ("--system-prompt", "--append-system-prompt")

_FLAG = re.compile(r"--?[A-Za-z][\w-]*(=.*)?", re.DOTALL)


def parse(arguments: list[str]) -> Asked:
    """The prompt is the value of -p, or else the first argument that belongs to no flag, or else on stdin."""
    parser = _Parser(list(arguments))
    flags = list(parser.flags())
    last = {flag.name: flag.values[0] if flag.values else "" for flag in flags}
    _check_input(last.get("--input-format"))
    return Asked(
        parser.prompt,
        last.get("--agent"),
        last.get("--model"),
        _format(last.get("--output-format")),
        last.get("--effort"),
        last.get("--resume"),
        "--continue" in last,
        "--dangerously-skip-permissions" in last,
        tuple(
            (flag.values[0], flag.name.endswith("-file"))
            for flag in flags
            if flag.name.removesuffix("-file") in _SYSTEM
        ),
        last.get("--install"),
        tuple(flag for flag in flags if _is_other(flag)),
    )


def installed(arguments: list[str]) -> list[str]:
    """The arguments of an installed program: all of them except --install."""
    parser = _Parser(list(arguments))
    words = [word for flag in parser.flags() if flag.name != "--install" for word in flag.words]
    if parser.prompt is not None:
        raise UsageError("--install takes no prompt: the installed program gets it whenever it is called")
    return words


class _Parser:
    """Divides a command line into flags and the prompt. An unknown flag may have a value, which is its too."""

    def __init__(self, arguments: list[str]) -> None:
        self._rest = arguments
        self._after_p: str | None = None
        self._operand: str | None = None

    @property
    def prompt(self) -> str | None:
        return self._operand if self._after_p is None else self._after_p

    def flags(self) -> Iterator[Flag]:
        while self._rest:
            word = self._rest.pop(0)
            if word == "--":
                self._take_operand(*self._rest[:1])
                return
            flag = self._known(word) or self._unknown(word)
            if flag is not None:
                yield flag
            else:
                self._take_operand(word)

    def _take_operand(self, *words: str) -> None:
        if self._operand is None and words:
            self._operand = words[0]

    def _known(self, word: str) -> Flag | None:
        name, equals, value = word.partition("=")
        name = _SHORT.get(name, name)
        if name not in _TAKES:
            return self._combined(word)
        if name == "--print":
            self._read_prompt()
            return Flag(name)
        if equals:
            return Flag(name, (value,))
        return Flag(name, tuple(self._values(name)))

    def _combined(self, word: str) -> Flag | None:
        """Several short flags in one word (`-pc`), or one with its value (`-rID`)."""
        name = _SHORT.get(word[:2])
        if name is None or not re.fullmatch(r"-[A-Za-z][\w-]+", word):
            return None
        if _TAKES[name] is not _Takes.NOTHING:
            return Flag(name, (word[2:],))
        self._rest.insert(0, f"-{word[2:]}")
        return Flag(name)

    def _values(self, name: str) -> Iterator[str]:
        takes = _TAKES[name]
        if takes in (_Takes.ONE, _Takes.MANY):
            if not self._rest:
                raise UsageError(f"{name} needs a value")
            yield self._rest.pop(0)
        while takes in (_Takes.MAYBE, _Takes.MANY) and self._rest and not _may_be_flag(self._rest[0]):
            yield self._rest.pop(0)
            if takes is _Takes.MAYBE:
                return

    def _unknown(self, word: str) -> Flag | None:
        if not _FLAG.fullmatch(word):
            return None
        if "=" in word or not self._rest or _may_be_flag(self._rest[0]):
            return Flag(word)
        return Flag(word, (self._rest.pop(0),))

    def _read_prompt(self) -> None:
        """Reads the prompt after -p, which is optional. The last argument is a prompt even if it looks like a flag."""
        if not self._rest or self._rest[0] == "--" or _is_known(self._rest[0]):
            return
        if len(self._rest) == 1 or not _FLAG.fullmatch(self._rest[0]):
            self._after_p = self._rest.pop(0)


def _may_be_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")


def _is_known(word: str) -> bool:
    name = word.partition("=")[0]
    return name in _TAKES or name in _SHORT


def _is_other(flag: Flag) -> bool:
    """Whether a flag is for Claude alone: neither read here nor fulfilled anyway."""
    if flag.name in ("--effort", "--resume", "--continue", "--input-format"):
        return False
    if flag == Flag("--permission-mode", ("bypassPermissions",)):
        return False
    return flag.name not in _SETTLED and flag.name.removesuffix("-file") not in _SYSTEM


def _check_input(name: str | None) -> None:
    if name not in (None, "text"):
        raise UsageError(f"--input-format {name}: `ralph as-claude` reads the prompt as text only")


def _format(name: str | None) -> Format:
    if name is None:
        return Format.STREAM
    try:
        return Format(name)
    except ValueError:
        known = [f.value for f in Format]
        raise UsageError(f"--output-format: expected one of {', '.join(known)}{nearest(name, known)}") from None
