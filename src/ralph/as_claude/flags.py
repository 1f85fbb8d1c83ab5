"""Reads the part of Claude's command line that matters to another agent."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from ralph.errors import UsageError, nearest


class Format(StrEnum):
    STREAM = "stream-json"
    JSON = "json"
    TEXT = "text"


class Asked(msgspec.Struct, frozen=True):
    """What the command line asks for. `prompt` is None if it comes on stdin."""

    prompt: str | None = None
    agent: str | None = None
    model: str | None = None
    format: Format = Format.STREAM


#: The flags that have an effect here. All of them take a value.
_USED = frozenset({"--agent", "--model", "--output-format"})

#: Claude's flags with a value, which must not be mistaken for the prompt.
_VALUES = frozenset(
    {
        "--add-dir", "--agents", "--allowed-tools", "--allowedTools", "--append-system-prompt",
        "--append-system-prompt-file", "--betas", "--debug-file", "--disallowed-tools", "--disallowedTools",
        "--effort", "--fallback-model", "--file", "--input-format", "--json-schema", "--max-budget-usd",
        "--max-turns", "--mcp-config", "--permission-mode", "--permission-prompt-tool", "--plugin-dir", "--resume",
        "-r", "--session-id", "--setting-sources", "--settings", "--system-prompt", "--system-prompt-file", "--tools",
    }
)  # fmt: skip

#: Claude's flags without a value. The prompt may follow one of these.
_SWITCHES = frozenset(
    {
        "--allow-dangerously-skip-permissions", "--bare", "--brief", "--chrome", "--continue", "-c",
        "--dangerously-skip-permissions", "--debug", "-d", "--disable-slash-commands", "--fork-session", "--ide",
        "--include-hook-events", "--include-partial-messages", "--mcp-debug", "--no-chrome",
        "--no-session-persistence", "--print", "--replay-user-messages", "--strict-mcp-config", "--verbose",
    }
)  # fmt: skip

_FLAG = re.compile(r"--?[A-Za-z][\w-]*(=.*)?", re.DOTALL)


def parse(arguments: list[str]) -> Asked:
    """The prompt is the value of -p, or else the last argument that belongs to no flag, or else on stdin."""
    return _Parser(list(arguments)).parse()


class _Parser:
    """Reads Claude's command line. The flags that mean nothing to other agents are ignored, known or not."""

    def __init__(self, arguments: list[str]) -> None:
        self._rest = arguments
        self._prompt: str | None = None
        self._positional: str | None = None
        self._used: dict[str, str] = {}

    def parse(self) -> Asked:
        may_be_value = False  # whether the previous argument is an unknown flag, which may take a value
        while self._rest:
            argument = self._rest.pop(0)
            if self._known_flag(argument):
                may_be_value = False
            elif _FLAG.fullmatch(argument):
                may_be_value = "=" not in argument
            elif may_be_value:
                may_be_value = False
            else:
                self._positional = argument
        used = self._used
        return Asked(
            self._prompt or self._positional,
            used.get("--agent"),
            used.get("--model"),
            _format(used.get("--output-format")),
        )

    def _known_flag(self, argument: str) -> bool:
        """Reads a known flag and its value. False if this is not one."""
        name, equals, value = argument.partition("=")
        if argument == "-p":
            self._read_prompt()
        elif name in _USED:
            if not equals and not self._rest:
                raise UsageError(f"{name} needs a value")
            self._used[name] = value if equals else self._rest.pop(0)
        elif name in _VALUES and not equals:
            del self._rest[:1]
        else:
            return argument in _SWITCHES
        return True

    def _read_prompt(self) -> None:
        """Reads the value of -p, which is optional. The last argument is a prompt even if it looks like a flag."""
        if not self._rest or _is_known(self._rest[0]):
            return
        if len(self._rest) == 1 or not _FLAG.fullmatch(self._rest[0]):
            self._prompt = self._rest.pop(0)


def _is_known(argument: str) -> bool:
    name = argument.partition("=")[0]
    return name in _SWITCHES or name in _VALUES or name in _USED or name == "-p"


def _format(name: str | None) -> Format:
    if name is None:
        return Format.STREAM
    try:
        return Format(name)
    except ValueError:
        known = [f.value for f in Format]
        raise UsageError(f"--output-format: expected one of {', '.join(known)}{nearest(name, known)}") from None
