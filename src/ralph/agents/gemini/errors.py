"""The errors of Gemini CLI and its fork Qwen Code: API errors, the CLI's own limits, stderr."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import LIMITS
from ralph.transcripts.events import decode_json
from ralph.transcripts.json_lines import get_dict, get_int, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount, whole

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: Tools that headless mode removes unless they are approved: a call to one of them is then "not found".
GUARDED_TOOLS = frozenset({"run_shell_command", "write_file", "replace", "edit", "web_fetch"})

_API_ERROR = re.compile(r"\[API Error: (.*?)\](?:\n|\s*$)", re.DOTALL)
#: At the end of the agent's words, where the stream broke off.
_API_ERROR_LAST = re.compile(r"\[API Error: [^\]\n]*\]\s*$")
_ERROR_NAME = re.compile(r"^_?([A-Z]\w*Error): ")
_CODE = re.compile(r'"code":\s*"?(\d{3})\b')
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (?:not valid|expired|not found)", re.IGNORECASE)
_DELAY = re.compile(
    r"(?:suggested retry after|retry in|quota will reset after) ((?:\d+(?:\.\d+)?(?:ms|[hms]) ?)+)", re.IGNORECASE
)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[hms])")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_BY_TYPE = {
    "FatalAuthenticationError": ErrorClass.AUTH,
    "ValidationRequiredError": ErrorClass.AUTH,
    "FatalUntrustedWorkspaceError": ErrorClass.PERMISSION_DENIED,
    "TerminalQuotaError": ErrorClass.QUOTA,
    "FatalTurnLimitedError": ErrorClass.FAILED,
    "FatalBudgetExceededError": ErrorClass.FAILED,
    "FatalInputError": ErrorClass.FAILED,
    "FatalConfigError": ErrorClass.FAILED,
    "ModelNotFoundError": ErrorClass.FAILED,
}
#: The CLI's exit codes. Its JSON reports one as `code` if it knows no HTTP status.
_BY_EXIT = {41: ErrorClass.AUTH, 55: ErrorClass.PERMISSION_DENIED}


class Failure(NamedTuple):
    message: str
    error_class: ErrorClass
    retry_after: float | None = None

    def limit(self) -> list[TranscriptEvent]:
        """When to try again, if the message says so."""
        if self.retry_after is None or self.error_class not in LIMITS:
            return []
        return [meta.rate_limit(message=self.message, retry_after=self.retry_after)]


def explain(text: str, kind: str | None = None, code: int | None = None) -> Failure:
    """The cause behind an error message of the CLI, without the advice that it adds for people."""
    inner = _API_ERROR.search(text)
    message = inner.group(1).strip() if inner else text.strip()
    named = _ERROR_NAME.match(message)
    if named:
        kind = named.group(1)
        message = message[named.end() :]
    body = _CODE.search(message)
    status = code if code is not None and 400 <= code < 600 else int(body.group(1)) if body else None
    delay = _delay(message)
    return Failure(_readable(message), _class(message, kind, code, status, delay), delay)


def split_api_error(text: str) -> tuple[str, str]:
    """The agent's words, and the API error that the CLI printed after or instead of them ("" if there is none)."""
    if text.startswith("[API Error: "):
        return "", text
    found = _API_ERROR_LAST.search(text) if "[API Error: " in text else None
    return (text[: found.start()], found.group()) if found else (text, "")


def _class(message: str, kind: str | None, code: int | None, status: int | None, delay: float | None) -> ErrorClass:
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if code in _BY_EXIT:
        return _BY_EXIT[code]
    if _BAD_KEY.search(message):
        return ErrorClass.AUTH
    found = classify(message, status)
    # Google also calls its limit per minute a quota; a short delay tells the two apart.
    if found is ErrorClass.QUOTA and delay is not None and delay <= 300:
        return ErrorClass.RATE_LIMITED
    if kind == "RetryableQuotaError" and found in (ErrorClass.QUOTA, ErrorClass.FAILED):
        return ErrorClass.RATE_LIMITED
    return found


def _delay(message: str) -> float | None:
    found = _DELAY.search(message)
    return sum(amount(n) * _SECONDS[unit] for n, unit in _PART.findall(found.group(1))) if found else None


def _readable(message: str) -> str:
    """The provider's sentence instead of its JSON."""
    try:
        error = get_dict(decode_json(message), "error")
    except (ValueError, RecursionError):
        return message
    code, words = get_int(error, "code"), get_str(error, "message")
    if words is None:
        return message
    return f"{code}: {words}" if code else words


_ATTEMPT = re.compile(r"^Attempt (\d+) failed(?: with status (\d{3}))?[.:]? ?(.*)$", re.DOTALL)
_RETRYING = re.compile(r"\.? ?Retrying (?:after (\d+)ms|with backoff)\.\.\. ?", re.IGNORECASE)
_RETRY_LINE = re.compile(r"^Retrying in (\d+)s \(attempt (\d+)/\d+\): (.*)$")
_REPORT = re.compile(r"^(.*?) Full report available at: \S+ ?(.*)$", re.DOTALL)
_NOT_FOUND = re.compile(r'^Error executing tool (\S+): (?:Tool "\S+" not found|.*denied by policy)', re.IGNORECASE)
_STACK = ("    at ", "  status:", "  cause:", "  code:", "}")
_MOST_LINES = 40
_NO_AUTH = ("Please set an Auth method", "Invalid auth method selected", "When using Gemini API, you must specify")
_UNTRUSTED = "Gemini CLI is not running in a trusted directory"
#: Lines that only the CLI would begin a text with. On a terminal they come on stdout.
FATAL_ANYWHERE = (*_NO_AUTH, _UNTRUSTED)
#: How the lines begin after which the CLI gives up.
_FATAL = {
    ErrorClass.PERMISSION_DENIED: (_UNTRUSTED,),
    ErrorClass.AUTH: (
        *_NO_AUTH,
        "When using Vertex AI, you must specify",
        "GEMINI_API_KEY environment variable not found",
        "Failed to login",
        "Failed to authenticate",
        "Error authenticating",
        "Manual authorization is required",
        "No auth type is selected",
    ),
    ErrorClass.FAILED: (
        "Reached max session turns",
        "Run aborted: ",
        "Error resuming session",
        "Error starting session",
        "Error: Session Id ",
        "No saved session found",
        "No input provided via stdin",
        "Unknown argument",
        "Not enough arguments following",
    ),
}


class StderrReader:
    """Finds retries, fatal errors and refused tools on stderr. The caller shows the lines themselves."""

    def __init__(self) -> None:
        self._held: list[str] = []  # a message that may continue on the next line
        self._document: list[str] = []
        #: The latest failed attempt, until the model answers.
        self.retried: Failure | None = None
        self.refused: str | None = None
        #: The error object at the end of the json format.
        self.last_object: dict[str, Any] | None = None

    def recovered(self) -> None:
        """The model answered, so a retry has worked."""
        self.retried = None

    def feed(self, line: str) -> list[TranscriptEvent]:
        bare = strip_escapes(line).rstrip()
        if self._document or bare == "{":
            self._feed_document(bare)
            return self.flush_held()
        starts = _starts(bare)
        if self._held and not starts and len(self._held) < _MOST_LINES:
            if bare.startswith(_STACK):
                return self.flush_held()
            self._held.append(bare)
            return self.flush_held() if _complete(bare) else []
        events = self.flush_held()
        if not starts:
            return events + self._read(bare)
        self._held = [bare]
        return events + self.flush_held() if _complete(bare) else events

    def _read(self, line: str) -> list[TranscriptEvent]:
        retry = _RETRY_LINE.match(line)
        if retry:
            delay, attempt = whole(retry.group(1)) * 1000, whole(retry.group(2))
            return [self._retry(explain(retry.group(3)), attempt, delay)]
        for error_class, beginnings in _FATAL.items():
            if line.startswith(beginnings):
                return [meta.error(line, error_class)]
        denied = _NOT_FOUND.match(line)
        if denied and (denied.group(1) in GUARDED_TOOLS or "denied by policy" in line):
            self.refused = denied.group(1)
        return []

    def flush_held(self) -> list[TranscriptEvent]:
        """The events of a message of several lines, now that it is complete."""
        if not self._held:
            return []
        text, self._held = "\n".join(self._held), []
        attempt = _ATTEMPT.match(text)
        if attempt is None:
            failure = self._cause(text)
            return [meta.error(failure.message, failure.error_class), *failure.limit()]
        if "Max attempts reached" in text:
            return []  # the error itself follows
        number, status, rest = attempt.groups()
        delay = _RETRYING.search(rest)
        failure = explain(_RETRYING.sub("", rest), code=int(status) if status else None)
        return [self._retry(failure, whole(number), whole(delay.group(1)) if delay and delay.group(1) else None)]

    def _retry(self, failure: Failure, attempt: int, delay_ms: int | None) -> TranscriptEvent:
        self.retried = failure
        return meta.retry(failure.message, failure.error_class, attempt=attempt, delay_ms=delay_ms)

    def _cause(self, text: str) -> Failure:
        """Some releases only name the file of their report; the cause is then that of the retries."""
        report = _REPORT.match(text)
        if report is None:
            return explain(text)
        if report.group(2):
            return explain(report.group(2))
        if self.retried is None:
            return Failure(report.group(1), ErrorClass.FAILED)
        return self.retried._replace(message=": ".join(filter(None, (report.group(1), self.retried.message))))

    def _feed_document(self, line: str) -> None:
        self._document.append(line)
        if line == "}":
            text, self._document = "\n".join(self._document), []
            try:
                value = decode_json(text)
            except (ValueError, RecursionError):
                return
            if get_dict(value, "error"):
                self.last_object = value
        elif len(self._document) > _MOST_LINES:
            self._document = []


def _starts(line: str) -> bool:
    """Whether this is the first line of a message that may continue."""
    if line.startswith(("Error when talking to Gemini API", "[API Error: ")):
        return True
    return line.startswith("Attempt ") and _ATTEMPT.match(line) is not None


def _complete(line: str) -> bool:
    return line.endswith("]") or "Retrying " in line or "Max attempts reached" in line
