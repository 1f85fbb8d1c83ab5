"""The division of what lies between two certain lines of Codex's human transcript: output, thoughts, words.

Once for lines, and once for a text, where it is searched from its end and no line of a long output is looked at alone.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from operator import itemgetter

from ralph.agents.codex.blocks import MAYBE_NOTICE, NUMBER, OUTPUT_LINES, ROLES, TITLE, is_notice
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.numbers import whole

#: So many lines are quicker looked through as one text.
_MANY = 30
#: The lines in which older versions may begin to speak, with the newline after the last of them at the end.
_FIRST_LINES = re.compile(rf"(?:\n[^\n]*+){{{OUTPUT_LINES + 1}}}")
_ESCAPE = re.compile(r"[\x1b\r]").search
_SPEAKS = "\ncodex\n"
#: With one of these no role begins, and no blank line.
_SURE = frozenset(string.ascii_letters + string.digits + string.punctuation) - {role[0] for role in ROLES}


def stripped(lines: list[str]) -> list[str]:
    """The lines without escape sequences and carriage returns; most have none."""
    text = "".join(lines)
    if "\x1b" not in text and "\r" not in text:
        return lines
    return [strip_escapes(line) if "\x1b" in line or "\r" in line else line for line in lines]


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


def notices_at(lines: list[str], *, blank_before: bool) -> int:
    """Where the CLI's own lines at the end begin; with `blank_before` only if a blank line parts them from output."""
    at = len(lines)
    if not at or lines[-1][:1] not in MAYBE_NOTICE:
        return at  # nearly always
    while at and is_notice(lines[at - 1]):
        at -= 1
    if blank_before and at and lines[at - 1].strip():
        return len(lines)
    return at


def divide_text(text: str, start: int, end: int, *, newer: bool, cut: bool) -> tuple[int, int] | None:
    """The same for the lines between two newlines of a text: the newlines before the thoughts and before `codex`.

    None if the CLI's own lines may stand at the end. `newer` versions leave a blank line after output, older ones print
    few lines of it. `cut`: the beginning is not here any more.
    """
    last = text.rfind("\n", start, end) + 1
    if text[last] in MAYBE_NOTICE and is_notice(text[last:end]):
        return None
    speak = _newer_speaks(text, start, end) if newer else -1 if cut else _older_speaks(text, start, end)
    if speak < 0:
        speak = end
    think = text.rfind("\n**", start, speak)
    while think >= 0:
        if _is_title(text[think + 1 : text.find("\n", think + 1)]) and (think == start or _blank(text, start, think)):
            return think, speak
        think = text.rfind("\n**", start, think)
    return speak, speak


def divide_escaped(text: str, start: int, end: int, *, newer: bool, cut: bool) -> tuple[int, int] | None:
    """The same for lines with escape sequences, of which none is looked at."""
    pieces: list[str] = []
    #: where in the text without them each line with some ends, and how much longer the text is up to there
    longer: list[tuple[int, int]] = []
    at, size, more = start, 0, 0
    while escape := _ESCAPE(text, at, end):
        begin, until = text.rfind("\n", start, escape.start()) + 1, text.find("\n", escape.start())
        bare = strip_escapes(text[begin:until])
        pieces += (text[at:begin], bare)
        size += begin - at + len(bare)
        more += until - begin - len(bare)
        longer.append((size, more))
        at = until
    pieces.append(text[at : end + 1])
    found = divide_text("".join(pieces), 0, end - start - more, newer=newer, cut=cut)
    if found is None:
        return None
    think, speak = found
    return start + think + _before(longer, think), start + speak + _before(longer, speak)


def _before(longer: list[tuple[int, int]], at: int) -> int:
    place = bisect_right(longer, at, key=itemgetter(0))
    return longer[place - 1][1] if place else 0


def _newer_speaks(text: str, start: int, end: int) -> int:
    found = -1
    at = text.rfind(_SPEAKS, start, end + 1)
    while at >= 0:
        if _speaks(text, at, end):
            if at > start and (text[at - 1] == "\n" or _blank(text, start, at)):
                return at
            if found < 0:
                found = at
        at = text.rfind(_SPEAKS, start, at + 1)
    return found


def _older_speaks(text: str, start: int, end: int) -> int:
    few = _FIRST_LINES.match(text, start, end)
    at = text.rfind(_SPEAKS, start, few.end() + 1 if few else end + 1)
    while at >= 0:
        if _speaks(text, at, end):
            return at
        at = text.rfind(_SPEAKS, start, at + 1)
    return -1


def _speaks(text: str, at: int, end: int) -> bool:
    """Whether the line after this `codex` may begin a message."""
    begin = at + 7
    if begin > end:
        return False
    if text[begin] in _SURE:
        return True
    first = text[begin : text.find("\n", begin)]
    return first != "" and not first.isspace() and first not in ROLES


def _blank(text: str, start: int, at: int) -> bool:
    """Whether the line that ends here is blank."""
    before = text[at - 1]
    return before == "\n" or (before.isspace() and not text[text.rfind("\n", start, at) : at].strip())
