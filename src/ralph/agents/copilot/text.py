"""The text that Copilot's CLI prints for people: tools between the words, errors and a summary on stderr.

On a terminal everything is on one stream, with errors and summary below the words.
"""

from __future__ import annotations

import re

from ralph.transcripts import meta
from ralph.transcripts.classify import classify
from ralph.transcripts.errors import fatal_error
from ralph.transcripts.events import Tag, Text, TranscriptEvent, Usage, UsageEvent
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.numbers import amount

_SUMMARY = re.compile(r"(Changes|Duration|Tokens|Resume|Requests|AI Credits) {3,}(\S.*)$")
#: The summary before 1.0: totals, then the tokens of each model.
_OLD_SUMMARY = re.compile(r"(?:Total (?:usage est|duration|session time|code changes)|API time spent)\b.*: ")
_OLD_MODELS = ("Breakdown by AI model:", "Usage by model:")
_OLD_MODEL = re.compile(r"\s+(\S+)\s+\S+ in(?:put)?, \S+ out(?:put)?\b")
_RESUME = re.compile(r"copilot --resume[= ](\S+)")
_COUNT = r"([\d.]+)([km]?)"
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}
_RETRYING = re.compile(r"● (Request failed .*Retrying\.\.\.)$")
_TOOL = re.compile(r"[●✗✘✓✔○◐] \S")
_REFUSED = re.compile(r"\s+└ (Permission denied because no .*|Permission to run this tool was denied .*)")
#: What the CLI says about a run that failed. The first two are certain on any stream, the others only on stderr.
_CERTAIN = ("Failed to get response from the AI model; ", "Authentication failed with provider at ")
_FATAL = (*_CERTAIN, "Error executing prompt: ", "Execution failed: ", "Model call failed: ", "Model '")
#: These may be mere remarks. They matter only if they say why a run failed.
_CAUSES = ("Error: ", "error: ", "Request failed", "Sorry, you", "You have ", "You've ", "Quota exceeded", "Rate limit")


def error_class(message: str, status: int | None = None) -> ErrorClass:
    """By what the provider said, which follows the number of retries and how long they took."""
    return classify(message.rpartition("Last error: ")[2], status)


class TextReader:
    """Follows one stream: stderr, or a stdout that also has stderr in it when it is a terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        self._stderr = stderr
        self._models = False
        self._in_tool = False
        self._after_blank = True

    def read(self, line: str) -> list[TranscriptEvent]:
        """The line as text, tagged as if it came from stdout, and the events it stands for."""
        text = strip_escapes(line) if "\x1b" in line else line
        after_blank, self._after_blank = self._after_blank, not text or text.isspace()
        if self._after_blank:
            self._in_tool = False
            return [Text(Tag.AI, text)]
        summary = _SUMMARY.match(text)
        if summary:
            return [Text(Tag.SYS, text), *_summary(summary.group(1), summary.group(2))]
        if text.startswith(_OLD_MODELS) or _OLD_SUMMARY.match(text):
            self._models = True
            return [Text(Tag.SYS, text)]
        if self._models and (model := _OLD_MODEL.match(text)):
            return [Text(Tag.SYS, text), *_model_usage(model.group(1), text)]
        if self._stderr:
            return [Text(Tag.SYS, text), *_stderr_error(text)]
        return self._stdout(text, after_blank)

    def _stdout(self, text: str, after_blank: bool) -> list[TranscriptEvent]:
        if text.startswith(_CERTAIN):
            return [Text(Tag.SYS, text), *fatal_error(text, error_class(text))]
        retrying = _RETRYING.match(text)
        if retrying:
            return [Text(Tag.SYS, text), meta.retry(retrying.group(1))]
        if after_blank and _TOOL.match(text):
            self._in_tool = True
            return [Text(Tag.TOOL, text)]
        if self._in_tool and text.startswith("  "):
            refused = _REFUSED.match(text)
            errors = [meta.error(refused.group(1), ErrorClass.PERMISSION_DENIED)] if refused else []
            return [Text(Tag.TOOL, text), *errors]
        self._in_tool = False
        return [Text(Tag.AI, text)]


def _stderr_error(text: str) -> list[TranscriptEvent]:
    if text.strip() == "Exiting…":
        return [meta.error("it was told to exit before it was done")]
    kind = error_class(text)
    if text.startswith(_FATAL) or (text.startswith(_CAUSES) and kind is not ErrorClass.FAILED):
        return fatal_error(text, kind)
    return []


def _model_usage(model: str, text: str) -> list[TranscriptEvent]:
    """The tokens of one model. Here, too, cached ones are part of the input."""
    usage = Usage(
        prompt_tokens=_count(_COUNT + r" in(?:put)?\b", text),
        completion_tokens=_count(_COUNT + r" out(?:put)?\b", text),
        model=model,
        cached_tokens=_count(_COUNT + r" cache(?:d| read)", text),
        cache_write_tokens=_count(_COUNT + " cache write", text),
    )
    return [] if usage.prompt_tokens is None and usage.completion_tokens is None else [UsageEvent(usage)]


def _summary(name: str, rest: str) -> list[TranscriptEvent]:
    """The session and the tokens, which the CLI rounds to three digits."""
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
