"""The shapes of lines in Codex's human-readable transcripts."""

from __future__ import annotations

import re

import msgspec

from ralph.transcripts.events import ToolStatus
from ralph.transcripts.numbers import amount, whole

HEADER = re.compile(r"(\[\d{4}-\d\d-\d\dT[\d:.]+Z?\] )?OpenAI Codex v\d")
RULE = "--------"
ERROR = "ERROR: "
#: A line of the CLI's logging library.
TRACE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z +(?:ERROR|WARN|INFO|DEBUG|TRACE) \w+(?:::\w+)*", re.ASCII)
#: A line of the CLI's that can interrupt the agent's words.
FAILURE = re.compile(rf"{ERROR}|{TRACE.pattern}", re.ASCII)
#: A line that the CLI itself writes.
NOTICE = re.compile(rf"(?:ERROR|warning|deprecated|mcp|mcp startup|hook|model rerouted): |{TRACE.pattern}", re.ASCII)
#: `apply patch` and `patch: completed`: newer versions report a whole patch at once.
PATCHED = re.compile(r"patch: (completed|failed|declined|in_progress)\Z")
#: `file update` and a changed file: older versions show the change, then how it ended.
CHANGED = re.compile(r"[AMDR] \S")
PATCH_END = re.compile(r"apply_patch\(.*\) exited (-?\d+)(?: in (\S.*))?:\Z")
MCP = re.compile(r"mcp: ([\w.-]+/[\w.-]+) (?:(started)|\((completed|failed|in_progress)\))\Z")

_DIRECTORY = re.compile(r"(.*) in ((?:/|[A-Za-z]:[\\/]|~).*)\Z", re.DOTALL)
_STATUS = re.compile(
    r" (succeeded|exited -?\d+|declined|in progress)"
    r"(?: in (\d[\d.]*[a-z]{0,2}(?: ?\d[\d.]*[a-z]{1,2}){0,3}))?:\Z"
)
#: Everything else is an exit code other than 0.
_STATUSES = {
    "succeeded": ToolStatus.OK,
    "exited 0": ToolStatus.OK,
    "declined": ToolStatus.FAIL,
    "in progress": ToolStatus.UNKNOWN,
}
_TIME = re.compile(r"(?:(\d+)h ?)?(?:(\d+)m ?)?(?:([\d.]+)s)?\Z")
#: As a shell reads it: characters, escaped ones and closed quotes, then a quote that is not closed.
_OPEN_QUOTE = re.compile(r"(?:[^'\"\\]++|\\.|'[^']*+'|\"(?:[^\"\\]|\\.)*+\")*+(['\"]?)", re.DOTALL)


class Status(msgspec.Struct, frozen=True):
    """How a command ended."""

    status: ToolStatus
    duration_ms: int | None = None


class Command(msgspec.Struct, frozen=True):
    """The last line of a command: its directory and, up to 0.9x, how it ended."""

    text: str
    directory: str
    ended: Status | None = None


def duration_ms(text: str | None) -> int | None:
    """Reads `17ms`, `1.25s`, `2m05s`, `2m 05s`."""
    if not text:
        return None
    if text.endswith("ms"):
        return whole(text[:-2]) if text[:-2].isdecimal() else None
    found = _TIME.match(text)
    if not found or not any(found.groups()):
        return None
    hours, minutes, seconds = found.groups()
    try:
        return int((whole(hours or "0") * 3600 + whole(minutes or "0") * 60 + amount(seconds or "0")) * 1000)
    except ValueError:
        return None


def read_status(line: str) -> tuple[str, Status] | None:
    """A status such as ` succeeded in 3ms:`, ` exited 3 in 0ms:` or ` declined:`, and the text before it."""
    found = _STATUS.search(line) if line.endswith(":") else None
    if not found:
        return None
    word, took = found.groups()
    return line[: found.start()], Status(_STATUSES.get(word, ToolStatus.FAIL), duration_ms(took))


def read_patch_end(line: str) -> Status | None:
    found = PATCH_END.match(line)
    if not found:
        return None
    return Status(ToolStatus.FAIL if whole(found.group(1)) else ToolStatus.OK, duration_ms(found.group(2)))


def open_quote(text: str) -> str:
    """The quote that is still open at the end of a text, or nothing."""
    found = _OPEN_QUOTE.match(text)
    return found.group(1) if found else ""


def read_command(line: str, quote: str) -> Command | None:
    """The last line of a command, if this is one. `quote` is the quote that the lines before it left open."""
    before, ended = read_status(line) or (line, None)
    found = _DIRECTORY.match(before)
    if not found or open_quote(quote + found.group(1)):
        return None
    return Command(found.group(1), found.group(2), ended)
