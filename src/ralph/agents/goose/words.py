"""What goose itself says: banners, and errors that look like the agent's messages."""

from __future__ import annotations

import re

from ralph.transcripts.classify import classify
from ralph.transcripts.meta import ErrorClass

_RETRY = "Please retry if you think this is a transient or recoverable error."
_RESEND = "Please resend your message to try again."
_ADVICE = (_RETRY, _RESEND, "Please try again or create a new session")
_EMPTY = "The model returned an empty response. Please resend your message to continue."
_TURNS = "I've reached the maximum number of actions"
_TURNS_END = "I can do without user input. Would you like me to continue?"
#: Whole messages that no model wrote.
_OWN = re.compile(
    rf"Ran into this error: .*{re.escape(_RETRY)}"
    rf"|Ran into this error trying to compact: .*|.*{re.escape(_RESEND)}|{re.escape(_EMPTY)}"
    rf"|{re.escape(f'{_TURNS} {_TURNS_END}')}"
    r"|The provider refused this request\..*Please start a new session to continue.*"
    r"|(?:Error: )?Unable to (?:truncate messages|continue: Context limit|compact).*",
    re.DOTALL,
)
_OWN_BEGINNINGS = ("Ran into this error", "Network error: ", "Error: Unable to ", "Unable to ", "The provider refused ")
_OWN_LINES = ("Ran into this error", "error: Ran into", _TURNS, _EMPTY)
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
#: A tool call in the text format: a rule or an arrow, then the tool's name.
_TOOL_LINES = ("───", "▸ ")


def own_error(text: str, *, certain: bool) -> tuple[str, ErrorClass] | None:
    """The error in a message that goose wrote instead of a model.

    `certain` means that the message's metadata rules out a model; then its beginning is enough. Other messages that
    goose wrote, such as the final output of a recipe, count as the agent's.
    """
    bare = text.strip()
    if _OWN.fullmatch(bare) is not None or (certain and bare.startswith(_OWN_BEGINNINGS)):
        return bare, error_class(bare)
    return None


def text_error(lines: list[str]) -> str | None:
    """The error at the end of the text format, from its last two lines. A tool's output may have begun the line."""
    *before, last = [line.rstrip() for line in lines] or [""]
    if last in _ADVICE and before:
        for begin in ("Ran into this error", "Network error: "):
            front, found, rest = before[0].rpartition(begin)
            if found and (not front.endswith(" ") or front in ("error: ", "Error: ")):
                return found + rest
    front, found, rest = last.rpartition(_TURNS)
    if found and rest.strip() == _TURNS_END and not front.endswith(" "):
        return found + rest
    return _EMPTY if last.endswith(_EMPTY) and not last.removesuffix(_EMPTY).endswith(" ") else None


def is_own_line(line: str) -> bool:
    """Whether goose wrote a line of the text format, as far as one line shows."""
    return line in _ADVICE or line.startswith(_OWN_LINES)


def is_tool_line(line: str) -> bool:
    return line.lstrip().startswith(_TOOL_LINES)


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
    found = classify(message)
    if found is ErrorClass.FAILED and message.startswith("Ran into this error trying to compact"):
        return ErrorClass.CONTEXT_EXCEEDED  # it compacts because the context is full
    return found


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
