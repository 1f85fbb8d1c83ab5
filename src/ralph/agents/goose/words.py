"""What goose itself says: banners, and errors that it puts into the agent's mouth."""

from __future__ import annotations

import re

from ralph.transcripts.classify import classify
from ralph.transcripts.events import Tag, Text, TranscriptEvent
from ralph.transcripts.meta import ErrorClass

RETRY_ADVICE = "Please retry if you think this is a transient or recoverable error."
RESEND_ADVICE = "Please resend your message to try again."
NEW_ADVICE = "Please try again or create a new session"
_ADVICE = (RETRY_ADVICE, RESEND_ADVICE, NEW_ADVICE)
_EMPTY = "The model returned an empty response. Please resend your message to continue."
#: Whole messages, which no model wrote. Newer releases name the model in each message of its own.
_OWN = re.compile(
    r"Ran into this error(?: trying to compact)?: .*"
    + re.escape(RETRY_ADVICE)
    + r"|Ran into this error trying to compact: .*"
    + r"|.*"
    + re.escape(RESEND_ADVICE)
    + "|"
    + re.escape(_EMPTY)
    + r"|I've reached the maximum number of actions I can do without user input\. Would you like me to continue\?"
    + r"|The provider refused this request\..*Please start a new session to continue.*"
    + r"|(?:Error: )?Unable to (?:truncate messages|continue: Context limit|compact).*",
    re.DOTALL,
)
_OWN_BEGINS = ("Ran into this error", "Network error: ", "Error: Unable to ", "Unable to ", "The provider refused ")
_TURNS = "I've reached the maximum number of actions"
_TURNS_END = "I can do without user input. Would you like me to continue?"
#: Tool results that goose wrote because it did not run the tool.
_REFUSED = re.compile(
    r"Let the user know the tool call was skipped in goose chat mode|The user has declined to run this tool|"
    r"Tool call was (?:denied|not approved)"
)
_APPROVAL = re.compile(r"approval required|requires? approval", re.IGNORECASE)

_BANNER_MODEL = re.compile(r"● (?:new session|resuming)[^·]* · (\S+) (\S+)|^starting session \| .*model: (\S+)")
_BANNER_SESSION = re.compile(r"\\____\)\s+(\S+) · |^session id: (\S+)$")
_BANNER = re.compile(
    r"__\( O\)>|\\____\)|L L\b.*goose is|(?:starting|resuming) session \||session id: |working directory: |logging to |"
    r"goose is (?:running|ready)"
)
#: A tool call in the text format: a rule, the tool's name, its arguments.
TEXT_TOOL = re.compile(r"\s*(?:─{3}|▸ \S)")
#: How a line begins that may be more than words: JSON, or goose's own.
_NOT_WORDS = frozenset("{[ReIPT")


def own_error(text: str, *, certain: bool) -> tuple[str, ErrorClass] | None:
    """The error that a message tells of, if goose wrote it and not a model.

    `certain` says that its metadata tell that no model wrote it; then its beginning is enough. What goose says besides
    errors (the final output of a recipe, say) is left to the agent.
    """
    bare = text.strip()
    if _OWN.fullmatch(bare) is not None or (certain and bare.startswith(_OWN_BEGINS)):
        return bare, error_class(bare)
    return None


def text_error(lines: list[str]) -> str | None:
    """The error that the text format ends with, from its last two lines. Tool output may stand right before it."""
    if not lines:
        return None
    *before, last = lines
    if last in _ADVICE and before:
        for begin in ("Ran into this error", "Network error: "):
            front, found, rest = before[0].rpartition(begin)
            if found and (not front.endswith(" ") or front in ("error: ", "Error: ")):
                return found + rest
    front, found, rest = last.rpartition(_TURNS)
    if found and rest.strip() == _TURNS_END and not front.endswith(" "):
        return found + rest
    # A tool's output may have begun the line.
    return _EMPTY if last.endswith(_EMPTY) and not last.removesuffix(_EMPTY).endswith(" ") else None


def is_own_line(line: str) -> bool:
    """A line of the text format that goose wrote, as far as one line tells."""
    return line.startswith(("Ran into this error", "error: Ran into", _TURNS, _EMPTY)) or line in _ADVICE


def text_block(lines: list[str]) -> list[TranscriptEvent]:
    """The first of these lines that are certainly words or calls of the text format, after its banner."""
    ai, tool = Tag.AI, Tag.TOOL
    events: list[TranscriptEvent] = []
    for line in lines:
        if "\x1b" in line or "\r" in line:
            break
        first = line[:1]
        if first in _NOT_WORDS and (first == "{" or first == "[" or is_own_line(line)):
            break
        events.append(Text(tool if ("─" in line or "▸" in line) and TEXT_TOOL.match(line) else ai, line))
    return events


def error_class(message: str) -> ErrorClass:
    """The class of an error in goose's own words."""
    if message.startswith(_TURNS):
        return ErrorClass.FAILED
    if message == _EMPTY:
        return ErrorClass.EMPTY
    if _APPROVAL.search(message):
        return ErrorClass.PERMISSION_DENIED
    if "No provider configured" in message:
        return ErrorClass.AUTH
    if "keychain" in message or message.startswith("Network error"):
        return ErrorClass.FAILED
    told = classify(message)
    if told is ErrorClass.FAILED and message.startswith("Ran into this error trying to compact"):
        return ErrorClass.CONTEXT_EXCEEDED  # it compacts because the context is full
    return told


def is_refusal(output: str) -> bool:
    return _REFUSED.match(output) is not None


def is_banner(line: str) -> bool:
    return _BANNER.match(line.strip()) is not None


def banner_model(line: str) -> str | None:
    found = _BANNER_MODEL.search(line.strip())
    return (found.group(2) or found.group(3)) if found else None


def banner_session(line: str) -> str | None:
    found = _BANNER_SESSION.search(line.strip())
    return (found.group(1) or found.group(2)) if found else None
