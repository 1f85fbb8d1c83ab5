"""Claude Code: stream-json with and without partial messages, json, text; and all who speak its stream-json."""

from __future__ import annotations

import re

from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json.adapter import ClaudeLikeAdapter, Events
from ralph.transcripts.stream_json.errors import error_class, reset_time

#: What the CLI prints in place of an answer in its text format: one line, nothing else.
_CLI_ERROR = re.compile(
    r"(?:Failed to authenticate\. )?API Error: (?:\d{3} |Request rejected \(\d{3}\) |Connection |Request timed out).*"
    r"|There's an issue with the selected model \(.*"
    r"|(?:Invalid API key|Not logged in|OAuth token \S+) · .*"
    r"|Credit balance is too low|Prompt is too long|Execution error|Error: Reached max turns \(\d+\)"
    r"|Claude AI usage limit reached\|\d{10}|.{0,40}\blimit(?: reached)? [·∙] resets .{1,40}"
)


class ClaudeAdapter(ClaudeLikeAdapter):
    name = "claude"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self.usage.may_be_old = True
        self._only_line: str | None = ""  # of a text output: None once there was a second one

    def on_text(self, line: str) -> Events:
        line = strip_escapes(line)
        if self.structured:
            return [Text(Tag.SYS, line)] if line else []
        if line.strip():
            self._only_line = line if self._only_line == "" else None
        return [Text(Tag.AI, line)]

    def flush(self) -> Events:
        events = super().flush()
        line = self._only_line
        if not self.structured and line and _CLI_ERROR.fullmatch(line.strip()):
            kind = error_class(line)
            end = reset_time(line, None)
            if kind is ErrorClass.RATE_LIMITED and end:
                events.append(meta.rate_limit(end, line))
            events.append(meta.error(line, kind))
        return events


ADAPTER = ClaudeAdapter
