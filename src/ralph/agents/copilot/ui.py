"""What Copilot's CLI writes for people: tools between the words, errors and a summary on stderr (or below them)."""

from __future__ import annotations

import re

from ralph.transcripts import meta
from ralph.transcripts.classify import classify, retry_after
from ralph.transcripts.events import Meta, Tag, Usage, UsageEvent
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount

_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_SUMMARY = re.compile(r"(Changes|Duration|Tokens|Resume|Requests|AI Credits) {3,}(\S.*)$")
#: The same before 1.0: totals, then the tokens of each model.
_OLD_SUMMARY = re.compile(r"(?:Total (?:usage est|duration|session time|code changes)|API time spent)\b.*: ")
_OLD_MODELS = ("Breakdown by AI model:", "Usage by model:")
_OLD_MODEL = re.compile(r"\s+(\S+)\s+\S+ in(?:put)?, \S+ out(?:put)?\b")
_RESUME = re.compile(r"copilot --resume[= ](\S+)")
_COUNT = r"([\d.]+)([km]?)"
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}
_RETRYING = re.compile(r"● (Request failed .*Retrying\.\.\.)$")
_TOOL = re.compile(r"[●✗✘✓✔○◐] \S")
_REFUSED = re.compile(r"\s+└ (Permission denied because no .*|Permission to run this tool was denied .*)")
#: Its own words about a run that failed: the first two are certain wherever they stand, the next on stderr.
_CERTAIN = ("Failed to get response from the AI model; ", "Authentication failed with provider at ")
_FATAL = (*_CERTAIN, "Error executing prompt: ", "Execution failed: ", "Model call failed: ", "Model '")
#: These may be said in passing as well; they tell only why a run failed, if they do.
_CAUSES = ("Error: ", "error: ", "Request failed", "Sorry, you", "You have ", "You've ", "Quota exceeded", "Rate limit")


def error_class(message: str, status: int | None = None) -> ErrorClass:
    """Retries and how long they took stand before what the provider said."""
    return classify(message.rpartition("Last error: ")[2], status)


def error_events(message: str, kind: ErrorClass) -> list[Meta]:
    events = []
    wait = retry_after(message) if kind in (ErrorClass.RATE_LIMITED, ErrorClass.QUOTA) else None
    if wait is not None:
        events.append(meta.rate_limit(retry_after=wait, message=message))
    return [*events, meta.error(message, kind)]


class UiLines:
    """Follows one stream: stderr, or a stdout that may be both in one on a terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        self._stderr = stderr
        self._models = False
        self._in_tool = False
        self._after_blank = True

    def read(self, line: str) -> tuple[Tag, str, list[Meta | UsageEvent]]:
        """Whose line it is on stdout, its text, and what it means."""
        text = _COLOURS.sub("", line) if "\x1b" in line else line
        after_blank, self._after_blank = self._after_blank, not text.strip()
        if self._after_blank:
            self._in_tool = False
            return Tag.AI, text, []
        summary = _SUMMARY.match(text)
        if summary:
            return Tag.SYS, text, _summary(summary.group(1), summary.group(2))
        if text.startswith(_OLD_MODELS) or _OLD_SUMMARY.match(text):
            self._models = True
            return Tag.SYS, text, []
        if self._models and _OLD_MODEL.match(text):
            return Tag.SYS, text, _model_usage(text)
        if self._stderr:
            return Tag.SYS, text, [*_told_on_stderr(text)]
        if text.startswith(_CERTAIN):
            return Tag.SYS, text, [*error_events(text, error_class(text))]
        retrying = _RETRYING.match(text)
        if retrying:
            return Tag.SYS, text, [meta.retry(retrying.group(1))]
        if after_blank and _TOOL.match(text):
            self._in_tool = True
            return Tag.TOOL, text, []
        if self._in_tool and text.startswith("  "):
            refused = _REFUSED.match(text)
            told = [meta.error(refused.group(1), ErrorClass.PERMISSION_DENIED)] if refused else []
            return Tag.TOOL, text, [*told]
        self._in_tool = False
        return Tag.AI, text, []


def _told_on_stderr(text: str) -> list[Meta]:
    if text.strip() == "Exiting…":
        return [meta.error("it was told to exit before it was done")]
    kind = error_class(text)
    if text.startswith(_FATAL) or (text.startswith(_CAUSES) and kind is not ErrorClass.FAILED):
        return error_events(text, kind)
    return []


def _model_usage(text: str) -> list[Meta | UsageEvent]:
    """Cached tokens are a part of the input here, too."""
    found = _OLD_MODEL.match(text)
    usage = Usage(
        prompt_tokens=_count(_COUNT + r" in(?:put)?\b", text),
        completion_tokens=_count(_COUNT + r" out(?:put)?\b", text),
        model=found.group(1) if found else None,
        cached_tokens=_count(_COUNT + r" cache(?:d| read)", text),
        cache_write_tokens=_count(_COUNT + " cache write", text),
    )
    return [] if usage.prompt_tokens is None and usage.completion_tokens is None else [UsageEvent(usage)]


def _summary(name: str, rest: str) -> list[Meta | UsageEvent]:
    """The session and the tokens; those of more than three digits are rounded by the CLI."""
    match name:
        case "Resume":
            found = _RESUME.search(rest)
            return [meta.session(found.group(1))] if found else []
        case "Tokens":
            usage = Usage(
                prompt_tokens=_count("↑ " + _COUNT, rest),
                completion_tokens=_count("↓ " + _COUNT, rest),
                cached_tokens=_count(_COUNT + " cached", rest),
                reasoning_tokens=_count(_COUNT + " reasoning", rest),
            )
            return [] if usage == Usage() else [UsageEvent(usage)]
    return []


def _count(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    if found is None:
        return None
    number, factor = found.groups()
    return round(amount(number) * _FACTORS[factor]) if number.count(".") <= 1 and number != "." else None
