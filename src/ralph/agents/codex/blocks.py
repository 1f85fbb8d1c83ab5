"""The shapes of lines in Codex's human transcript.

A command may print `user`, `codex` or `exec` on a line of its own, so these words alone prove nothing. Certain are:
`exec` with a whole command line and its directory after it; a status line while a command runs; a retry; the end.
What lies between two of them is divided afterwards (`_codex_divide`): output first, then thoughts, then words. Where
more than one line could begin the words, the last one does, so that output is never taken for the agent's own words.
"""

from __future__ import annotations

import re
from enum import Enum, auto

import msgspec

from ralph.transcripts.events import ToolStatus
from ralph.transcripts.numbers import amount, whole

#: Codex up to 0.9x prints this much of a command's output.
OUTPUT_LINES = 20
ROLES = frozenset({"user", "codex", "exec", "thinking"})
HEADER = re.compile(r"(\[\d{4}-\d\d-\d\dT[\d:.]+Z?\] )?OpenAI Codex v\d")
RULE = "--------"
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})*\Z|\d+\Z")
#: What the logging library of the CLI writes.
TRACE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z +(?:ERROR|WARN|INFO|DEBUG|TRACE) \w+(?:::\w+)*", re.ASCII)
NOTICE = ("ERROR: ", "warning: ", "deprecated: ", "mcp: ", "mcp startup: ", "hook: ", "model rerouted: ")
_NOTICE_FIRST = frozenset(notice[0] for notice in NOTICE)
MAYBE_NOTICE = _NOTICE_FIRST | frozenset("0123456789")
PATCHED = re.compile(r"patch: (completed|failed|declined|in_progress)\Z")
CHANGED = re.compile(r"[AMDR] \S")
PATCH_END = re.compile(r"apply_patch\(.*\) exited (-?\d+)(?: in (\S.*))?:\Z")
MCP = re.compile(r"mcp: ([\w.-]+/[\w.-]+) (?:(started)|\((completed|failed|in_progress)\))\Z")
#: Within output, all other lines can be nothing but output.
MAYBE = re.compile(r"(?:exec|apply patch|file update|thinking)\Z| |mcp: |(?:ERROR: )?Re-?connecting|[^\x1b\r]*[\x1b\r]")
TITLE = re.compile(r"\*\*[^*]+\*\*\s*\Z")
_DIRECTORY = re.compile(r"(.*) in ((?:/|[A-Za-z]:[\\/]|~).*)\Z", re.DOTALL)
_STATUS = re.compile(
    r"(.*?) (?:succeeded|exited (-?\d+)|(declined)|(in progress))(?: in (\d[\d.a-z ]*))?:\Z", re.DOTALL
)
_OK = ToolStatus.OK
_TIME = re.compile(r"(?:(\d+)h ?)?(?:(\d+)m ?)?(?:([\d.]+)s)?\Z")
#: From one quote to its partner, with what a backslash takes with it.
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)


class Part(Enum):
    """Where in the transcript we are."""

    HEADER = auto()
    ECHO = auto()  # the prompt, as it is known
    PROMPT = auto()  # the prompt, unknown: held until it is clear where it ends
    THINK = auto()  # thoughts; newer versions print them without a role
    AI = auto()
    TOOL = auto()  # a command's output, and what follows it: held as well
    PATCH = auto()  # the text of a change, held until its result


class Status(msgspec.Struct, frozen=True):
    """How a command ended."""

    status: ToolStatus
    duration_ms: int | None = None


class Command(msgspec.Struct, frozen=True):
    """What stands after `exec`; up to 0.9x on one line with how it ended."""

    text: str
    directory: str
    ended: Status | None = None


def duration_ms(text: str | None) -> int | None:
    """`17ms`, `1.25s`, `2m05s`, `2m 05s`."""
    if not text:
        return None
    if text.endswith("ms") and text[:-2].isdecimal():
        return whole(text[:-2])
    found = _TIME.match(text)
    if not found or not any(found.groups()):
        return None
    hours, minutes, seconds = found.groups()
    try:
        return int((whole(hours or "0") * 3600 + whole(minutes or "0") * 60 + amount(seconds or "0")) * 1000)
    except ValueError:
        return None


def read_status(line: str) -> tuple[str, Status] | None:
    """What stands before a status, and the status: ` succeeded in 3ms:`, ` exited 3 in 0ms:`, ` declined:`."""
    if line[-1:] != ":":
        return None
    before, word, took = line.rpartition(" succeeded in ")
    # As nearly all are. Before it may stand a command that says the same, or worse.
    if word and took[-3:] == "ms:" and took[:-3].isdecimal() and not (before and _tells(before)):
        return before, Status(_OK, whole(took[:-3]))
    found = _STATUS.match(line)
    if not found:
        return None
    before, code, declined, running, took = found.groups()
    if declined or (code is not None and whole(code) != 0):
        status = ToolStatus.FAIL
    else:
        status = ToolStatus.UNKNOWN if running else ToolStatus.OK
    return before, Status(status, duration_ms(took))


def _tells(text: str) -> bool:
    return " succeeded" in text or " exited" in text or " declined" in text or " in progress" in text


def quote_open(text: str) -> bool:
    """Whether a quote is still open: Codex joins a command as a shell reads it, so a newline is always in quotes."""
    if "\\" not in text:
        single, double = text.count("'"), text.count('"')
        if not single or not double:
            return (single + double) % 2 == 1
    rest = _QUOTED.sub("", text)
    return "'" in rest or '"' in rest


def read_command(text: str) -> Command | None:
    """The lines after `exec`, if they are a whole command with its directory."""
    ended = None
    told = read_status(text) if text[-1:] == ":" else None
    if told is not None:
        text, ended = told
    before, word, directory = text.rpartition(" in ")
    if not word or directory[:1] != "/":
        found = _DIRECTORY.match(text)
        if not found:
            return None
        before, directory = found.groups()
    return None if quote_open(before) else Command(before, directory, ended)


def is_notice(line: str) -> bool:
    """The CLI's own words, by how they begin."""
    first = line[:1]
    return (first in _NOTICE_FIRST and line.startswith(NOTICE)) or (first.isdecimal() and TRACE.match(line) is not None)
