"""The shapes of lines in Codex's human transcript, and the division of what lies between two certain ones.

A command may print `user`, `codex` or `exec` on a line of its own, so these words alone prove nothing. Certain are:
`exec` with a whole command line and its directory after it; a status line while a command runs; a retry; the end.
What lies between two of them is divided afterwards: output first, then thoughts, then words. Where more than one
line could begin the words, the last one does, so that output is never taken for the agent's own words.
"""

from __future__ import annotations

import re

import msgspec

from ralph.transcripts._numbers import amount, whole
from ralph.transcripts.events import ToolStatus

#: Codex up to 0.9x prints this much of a command's output.
OUTPUT_LINES = 20
#: So many lines are quicker looked through as one text.
_MANY = 30
ROLES = frozenset({"user", "codex", "exec", "thinking"})
HEADER = re.compile(r"(\[\d{4}-\d\d-\d\dT[\d:.]+Z?\] )?OpenAI Codex v\d")
RULE = "--------"
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})*\Z|\d+\Z")
#: What the logging library of the CLI writes.
TRACE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z +(?:ERROR|WARN|INFO|DEBUG|TRACE) \w+(?:::\w+)*", re.ASCII)
NOTICE = ("ERROR: ", "warning: ", "deprecated: ", "mcp: ", "mcp startup: ", "hook: ", "model rerouted: ")
_NOTICE_FIRST = frozenset(notice[0] for notice in NOTICE)
_MAYBE_NOTICE = _NOTICE_FIRST | frozenset("0123456789")
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


def divide(lines: list[str], *, blank_after_output: bool, limit: int | None = None) -> tuple[int, int]:
    """Where the thoughts begin, and where `codex` stands before the words; both are the end if there are none.

    What comes first is a command's output, or the prompt. `blank_after_output`: newer versions leave a blank line
    after output that ended with a newline. `limit`: so many lines of output were printed at most.
    """
    words = len(lines)
    count = lines.count("codex")
    if count:
        most = words if limit is None else limit
        if count > 1:
            at = _speaks_at(lines, blank_after_output, most)
        else:
            at = lines.index("codex")
            at = at if at <= most and _may_speak(lines, at) else -1
        if at >= 0:
            words = at
    if words > _MANY and "**" not in "".join(lines):
        return words, words
    for i in range(words - 1, -1, -1):
        line = lines[i]
        if line[:2] == "**" and _is_title(line) and (i == 0 or not lines[i - 1].strip()):
            return i, words
    return words, words


def _is_title(line: str) -> bool:
    """Of a line that begins with two stars."""
    return (line[-2:] == "**" and len(line) > 4 and line.count("*") == 4) or TITLE.match(line) is not None


def _speaks_at(lines: list[str], blank_before: bool, limit: int) -> int:
    """The last `codex` that may begin a message, if possible one after a blank line; -1 if there is none."""
    at = found = blank = -1
    for _ in range(lines.count("codex")):
        at = lines.index("codex", at + 1)
        if at > limit:
            break
        if _may_speak(lines, at):
            found = at
            if at and not lines[at - 1].strip():
                blank = at
    return blank if blank_before and blank >= 0 else found


def _may_speak(lines: list[str], at: int) -> bool:
    """A message begins with a line of text."""
    if at + 1 >= len(lines):
        return False
    first = lines[at + 1]
    return first != "" and not first.isspace() and first not in ROLES


def trailer(lines: list[str]) -> tuple[int, int] | None:
    """Where `tokens used` stands at the end, and its number. At most a copy of the last words comes after it."""
    for i in range(len(lines) - 2, -1, -1):
        if lines[i] == "tokens used" and NUMBER.match(lines[i + 1]):
            copy = "\n".join(lines[i + 2 :]).strip()
            if copy and not "\n".join(lines[:i]).rstrip().endswith(copy):
                return None
            return i, whole(lines[i + 1].replace(",", ""))
    return None


def is_notice(line: str) -> bool:
    """The CLI's own words, by how they begin."""
    first = line[:1]
    return (first in _NOTICE_FIRST and line.startswith(NOTICE)) or (first.isdecimal() and TRACE.match(line) is not None)


def notices_at(lines: list[str], *, blank_before: bool) -> int:
    """Where the CLI's own lines at the end begin; with `blank_before` only if a blank line parts them from output."""
    at = len(lines)
    if not at or lines[-1][:1] not in _MAYBE_NOTICE:
        return at  # nearly always
    while at and is_notice(lines[at - 1]):
        at -= 1
    if blank_before and at and lines[at - 1].strip():
        return len(lines)
    return at
