"""Kimi's tool calls. No field of its JSON reports a failure: kimi-cli and Kimi Code write it into the output."""

from __future__ import annotations

import re
from typing import Any

from ralph.transcripts import meta
from ralph.transcripts.events import ToolStatus, TranscriptEvent, decode_json
from ralph.transcripts.json_lines import get_str
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.tool_calls import ToolCalls

_SHELLS = frozenset({"Bash", "Shell", "PowerShell"})
#: The last line of a shell's output in Kimi Code.
_FAILED = re.compile(r"Command (?:failed with exit code: -?\d+|killed|was |timed out)|Session closed$")
#: How the output begins if a tool was not run.
_NOT_RUN = re.compile(
    r'Tool "([^"]+)" was (?:denied|not run)\b|(?:<system>ERROR: )?The tool call is rejected by the user'
)
_DONE = re.compile(r"(?:Wrote|Appended|Replaced|Edited|Updated|Created) ")


class KimiTools(ToolCalls):
    def begin(self, call: str, function: dict[str, Any]) -> list[TranscriptEvent]:
        return self.start(call, get_str(function, "name") or "tool", _input(function.get("arguments")))

    def finish(
        self, call: str, output: str, status: ToolStatus | None = None, *, kimi_code: bool = False
    ) -> list[TranscriptEvent]:
        """Without a status, the output decides; `kimi_code` says which CLI wrote it."""
        name = self.name(call) or "tool"
        refused = _NOT_RUN.match(output)
        if refused and refused.group(1) in (None, name):
            return self.end(call, output, ToolStatus.FAIL, refusal=output.partition("\n")[0][:300])
        return self.end(call, output, status or _status(name, output, kimi_code=kimi_code))

    @property
    def refusal(self) -> str | None:
        """Why a tool was refused that did not run later either."""
        return next(iter(self.refused.values()), None)

    def result(self) -> TranscriptEvent:
        """The verdict of a run that ended by itself."""
        if self.refusal is None:
            return meta.result(ok=True)
        return meta.result(ok=False, reason=self.refusal, error_class=ErrorClass.PERMISSION_DENIED)


def _status(name: str, output: str, *, kimi_code: bool) -> ToolStatus:
    if output.startswith("<system>"):
        return ToolStatus.FAIL if output.startswith("<system>ERROR") else ToolStatus.OK
    if name in _SHELLS:
        last = output[-500:].rstrip().rpartition("\n")[2]
        return ToolStatus.FAIL if _FAILED.match(last) else ToolStatus.OK
    # Kimi Code has no common wording for the failures of its other tools.
    return ToolStatus.OK if not kimi_code or _DONE.match(output) else ToolStatus.UNKNOWN


def _input(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = decode_json(arguments)
        except (ValueError, RecursionError):
            return {"arguments": arguments}
    return arguments if isinstance(arguments, dict) else None


def content_text(content: Any) -> str:
    """A string, or the text of one or more parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(content_text, content) if text)
    return get_str(content, "text") or ""
