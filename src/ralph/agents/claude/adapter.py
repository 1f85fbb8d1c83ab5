"""Claude Code: stream-json with and without partial messages, json and text; also other tools' stream-json."""

from __future__ import annotations

import re
from typing import Any

from ralph.transcripts import meta
from ralph.transcripts.events import Meta, Tag, Text, ToolStatus
from ralph.transcripts.json_lines import strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json.adapter import ClaudeLikeAdapter, Events, result_meta
from ralph.transcripts.stream_json.errors import error_class
from ralph.transcripts.stream_json.usage import RunUsage

#: What the CLI prints in place of an answer in its text format: a single line.
_CLI_ERROR = re.compile(
    r"(?:Failed to authenticate\. )?API Error: (?:\d{3} |Request rejected \(\d{3}\) |Connection |Request timed out).*"
    r"|There's an issue with the selected model \(.*"
    r"|(?:Invalid API key|Not logged in|OAuth token \S+) · .*"
    r"|Credit balance is too low|Prompt is too long|Execution error|Error: Reached max turns \(\d+\)"
    r"|Claude AI usage limit reached\|\d{10}|.{0,40}\blimit(?: reached)? [·∙] resets .{1,40}"
)
#: What the CLI puts in place of the output of a tool that it refused.
_REFUSED, _NOT_GRANTED = "Claude requested permissions to ", ", but you haven't granted it yet."


class ClaudeAdapter(ClaudeLikeAdapter):
    name = "claude"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt, RunUsage(check_result=True))
        self._refusal = ""
        self._only_line: str | None = ""  # of a text output: None as soon as there is a second line

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
            events += [*self.limit_events(line, kind), meta.error(line, kind)]
        return events

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        if failed and text.startswith(_REFUSED) and text.endswith(_NOT_GRANTED):
            self._refusal = text
        return super().tool_status(text, failed=failed)

    def success(self, value: dict[str, Any]) -> Meta:
        if self._refusal and "permission_denials" not in value:  # 1.0.60 does not list them
            return result_meta(value, self._refusal, ErrorClass.PERMISSION_DENIED)
        return super().success(value)


ADAPTER = ClaudeAdapter
