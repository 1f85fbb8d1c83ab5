"""What Gemini CLI (and its fork Qwen Code) says when something fails: API errors, its own limits, stderr."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.events import decode_json
from ralph.transcripts.json_lines import get_dict, get_int, get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount, whole

if TYPE_CHECKING:
    from ralph.transcripts.events import TranscriptEvent

#: Tools that the CLI takes away in headless mode unless they are approved: a call to them is then "not found".
GUARDED_TOOLS = frozenset({"run_shell_command", "write_file", "replace", "edit", "web_fetch"})

_API_ERROR = re.compile(r"\[API Error: (.*?)\](?:\n|\s*$)", re.DOTALL)
#: At the end of the agent's words, where the stream broke off.
_API_ERROR_LAST = re.compile(r"\[API Error: [^\]\n]*\]\s*$")
_REPORT = re.compile(r"^(.*?) Full report available at: \S+ ?(.*)$", re.DOTALL)
_ERROR_NAME = re.compile(r"^_?([A-Z]\w*Error): ")
_CODE = re.compile(r'"code":\s*"?(\d{3})\b')
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (?:not valid|expired|not found)", re.IGNORECASE)
_DELAY = re.compile(
    r"(?:suggested retry after|retry in|quota will reset after) ((?:[\d.]+(?:ms|[hms]) ?)+)", re.IGNORECASE
)
_PART = re.compile(r"([\d.]+)(ms|[hms])")
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
#: The CLI's exit codes, which its JSON gives as `code` where no HTTP status is known.
_BY_EXIT = {41: ErrorClass.AUTH, 55: ErrorClass.PERMISSION_DENIED}
#: What is over by itself.
_ENDING = frozenset({ErrorClass.RATE_LIMITED, ErrorClass.OVERLOADED, ErrorClass.QUOTA})


class Failure(NamedTuple):
    message: str
    error_class: ErrorClass
    retry_after: float | None = None

    def limit(self) -> list[TranscriptEvent]:
        """When to come back, if it was said."""
        if self.retry_after is None or self.error_class not in _ENDING:
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
    status = code if code is not None and 400 <= code < 600 else None
    body = _CODE.search(message)
    if status is None and body:
        status = int(body.group(1))
    delay = _delay(message)
    return Failure(_readable(message), _class(message, kind, code, status, delay), delay)


def split_api_error(text: str) -> tuple[str, str]:
    """The agent's words, and the API error that the CLI put in their place or at their end ("" if there is none)."""
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
    # Google calls the limit per minute a quota as well; that it will be over in seconds is what counts.
    if found is ErrorClass.QUOTA and delay is not None and delay <= 300:
        return ErrorClass.RATE_LIMITED
    if kind == "RetryableQuotaError" and found in (ErrorClass.QUOTA, ErrorClass.FAILED):
        return ErrorClass.RATE_LIMITED
    return found


def _delay(message: str) -> float | None:
    found = _DELAY.search(message)
    if not found:
        return None
    try:
        return sum(amount(n) * _SECONDS[unit] for n, unit in _PART.findall(found.group(1)))
    except ValueError:
        return None


def _readable(message: str) -> str:
    """The provider's sentence instead of its JSON."""
    if not message.startswith("{"):
        return message
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
_NOT_FOUND = re.compile(r'^Error executing tool (\S+): (?:Tool "\S+" not found|.*denied by policy)', re.IGNORECASE)
_STACK = ("    at ", "  status:", "  cause:", "  code:", "}")
_MOST_LINES = 40
#: Lines that nobody but the CLI would begin a text with: on a terminal they come on stdout.
FATAL_ANYWHERE = (
    "Please set an Auth method in your ",
    "Invalid auth method selected.",
    "When using Gemini API, you must specify",
    "Gemini CLI is not running in a trusted directory",
)
#: The beginnings of lines after which the CLI gives up, and what they mean.
_FATAL = (
    ("Please set an Auth method", ErrorClass.AUTH),
    ("Invalid auth method selected", ErrorClass.AUTH),
    ("When using Gemini API, you must specify", ErrorClass.AUTH),
    ("When using Vertex AI, you must specify", ErrorClass.AUTH),
    ("GEMINI_API_KEY environment variable not found", ErrorClass.AUTH),
    ("Failed to login", ErrorClass.AUTH),
    ("Failed to authenticate", ErrorClass.AUTH),
    ("Error authenticating", ErrorClass.AUTH),
    ("Manual authorization is required", ErrorClass.AUTH),
    ("Gemini CLI is not running in a trusted directory", ErrorClass.PERMISSION_DENIED),
    ("No auth type is selected", ErrorClass.AUTH),
    ("Reached max session turns", ErrorClass.FAILED),
    ("Run aborted: ", ErrorClass.FAILED),
    ("Error resuming session", ErrorClass.FAILED),
    ("Error starting session", ErrorClass.FAILED),
    ("Error: Session Id ", ErrorClass.FAILED),
    ("No saved session found", ErrorClass.FAILED),
    ("No input provided via stdin", ErrorClass.FAILED),
    ("Unknown argument", ErrorClass.FAILED),
    ("Not enough arguments following", ErrorClass.FAILED),
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class StderrReader:
    """Finds retries, fatal errors and refused tools among the lines of stderr, which are shown in any case."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._document: list[str] = []
        self._retried: Failure | None = None
        self.refused: str | None = None
        #: the error object that the json format ends with
        self.last_object: dict[str, Any] | None = None

    def feed(self, line: str) -> list[TranscriptEvent]:
        bare = _COLOUR.sub("", line).rstrip() if "\x1b" in line else line.rstrip()
        if self._document or bare == "{":
            return self.flush_held() + self._feed_document(bare)
        if self._held:
            if not bare.startswith(_STACK) and not _starts(bare) and len(self._held) < _MOST_LINES:
                self._held.append(bare)
                return self.flush_held() if _complete(bare) else []
            return self.flush_held() + ([] if bare.startswith(_STACK) else self.feed(line))
        if _starts(bare):
            self._held = [bare]
            return self.flush_held() if _complete(bare) else []
        retry = _RETRY_LINE.match(bare)
        if retry:
            failure = explain(retry.group(3))
            delay, attempt = whole(retry.group(1)) * 1000, whole(retry.group(2))
            return [meta.retry(failure.message, failure.error_class, attempt=attempt, delay_ms=delay)]
        for beginning, error_class in _FATAL:
            if bare.startswith(beginning):
                return [meta.error(bare, error_class)]
        denied = _NOT_FOUND.match(bare)
        if denied and (denied.group(1) in GUARDED_TOOLS or "denied by policy" in bare):
            self.refused = denied.group(1)
        return []

    def flush_held(self) -> list[TranscriptEvent]:
        """A message of several lines that is over."""
        if not self._held:
            return []
        text, self._held = "\n".join(self._held), []
        attempt = _ATTEMPT.match(text)
        if attempt is None:
            failure = self._cause(text)
            return [meta.error(failure.message, failure.error_class), *failure.limit()]
        if "Max attempts reached" in text:
            return []  # what comes of it is said next
        number, status, rest = attempt.groups()
        delay = _RETRYING.search(rest)
        failure = explain(_RETRYING.sub("", rest), code=int(status) if status else None)
        after = whole(delay.group(1)) if delay and delay.group(1) else None
        self._retried = failure
        return [meta.retry(failure.message, failure.error_class, attempt=whole(number), delay_ms=after)]

    def _cause(self, text: str) -> Failure:
        """Some releases say only where their report is, and in it stands what the retries were for."""
        report = _REPORT.match(text)
        if report is None:
            return explain(text)
        if report.group(2):
            return explain(report.group(2))
        retried = self._retried or Failure("", ErrorClass.FAILED)
        message = f"{report.group(1)}: {retried.message}" if retried.message else report.group(1)
        return Failure(message, retried.error_class, retried.retry_after)

    def _feed_document(self, line: str) -> list[TranscriptEvent]:
        self._document.append(line)
        if line != "}":
            if len(self._document) > _MOST_LINES:
                self._document = []
            return []
        text, self._document = "\n".join(self._document), []
        try:
            value = decode_json(text)
        except (ValueError, RecursionError):
            return []
        if isinstance(value, dict) and isinstance(value.get("error"), dict):
            self.last_object = value
        return []


def _starts(line: str) -> bool:
    """The first line of a message that may go on."""
    if line.startswith(("Error when talking to Gemini API", "[API Error: ")):
        return True
    return line.startswith("Attempt ") and _ATTEMPT.match(line) is not None


def _complete(line: str) -> bool:
    return line.endswith("]") or "Retrying " in line or "Max attempts reached" in line
