"""Claude's command line, as far as it means anything to another agent."""

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
    """What was asked for; `prompt` is None if it comes on stdin."""

    prompt: str | None = None
    agent: str | None = None
    model: str | None = None
    format: Format = Format.STREAM


#: Flags of Claude's that have a value, so that it is not taken for the prompt.
_VALUES = frozenset(
    {
        "--add-dir", "--agents", "--allowed-tools", "--allowedTools", "--append-system-prompt",
        "--append-system-prompt-file", "--betas", "--debug-file", "--disallowed-tools", "--disallowedTools",
        "--effort", "--fallback-model", "--file", "--input-format", "--json-schema", "--max-budget-usd",
        "--max-turns", "--mcp-config", "--permission-mode", "--permission-prompt-tool", "--plugin-dir", "--resume",
        "-r", "--session-id", "--setting-sources", "--settings", "--system-prompt", "--system-prompt-file", "--tools",
    }
)  # fmt: skip

#: Flags of Claude's that have none: what follows one of them can be the prompt.
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
    """`-p PROMPT` wins; else the last word that belongs to no flag; else the prompt is on stdin."""
    prompt: str | None = None
    loose: str | None = None
    own: dict[str, str] = {}
    rest = list(arguments)
    free = True
    while rest:
        word = rest.pop(0)
        name, equals, given = word.partition("=")
        if word == "-p":
            if rest and (len(rest) == 1 or not _FLAG.fullmatch(rest[0])) and not _is_known(rest[0]):
                prompt = rest.pop(0)
            free = True
        elif name in ("--agent", "--model", "--output-format"):
            if not equals and not rest:
                raise UsageError(f"{name} needs a value")
            own[name] = given if equals else rest.pop(0)
            free = True
        elif name in _VALUES and not equals:
            if rest:
                rest.pop(0)
            free = True
        elif word in _SWITCHES:
            free = True
        elif _FLAG.fullmatch(word):
            free = bool(equals)  # of a flag that nobody knows, what follows may be its value
        elif free:
            loose = word
        else:
            free = True
    return Asked(prompt or loose, own.get("--agent"), own.get("--model"), _format(own.get("--output-format")))


def _is_known(word: str) -> bool:
    name = word.partition("=")[0]
    return name in _SWITCHES or name in _VALUES or name in ("-p", "--agent", "--model", "--output-format")


def _format(name: str | None) -> Format:
    if name is None:
        return Format.STREAM
    try:
        return Format(name)
    except ValueError:
        known = [f.value for f in Format]
        raise UsageError(f"--output-format: expected one of {', '.join(known)}{nearest(name, known)}") from None
