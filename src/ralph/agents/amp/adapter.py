"""Amp: `--stream-json` in Claude Code's format, or text. Errors appear only on stderr."""

from __future__ import annotations

from typing import Any

from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolStatus, decode_json
from ralph.transcripts.json_lines import get_dict, get_int, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json.adapter import ClaudeLikeAdapter, Events
from ralph.transcripts.stream_json.errors import Failure, error_class

#: Printed on stdout in every format, before Amp waits for a login in the browser.
_LOGIN = "No API key found. Starting login flow"
_ERROR = "Error: "


class AmpAdapter(ClaudeLikeAdapter):
    name = "amp"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._logging_in = False
        self._messages = 0
        #: id, content and usage of the last message, if no user message followed it
        self._last: list[Any] | None = None

    def on_text(self, line: str) -> Events:
        line = strip_escapes(line)
        if line.startswith(_LOGIN) and not self._logging_in:
            self._logging_in = True
            return [Text(Tag.SYS, line), meta.error("not logged in: amp waits for a login", ErrorClass.AUTH)]
        if self.structured and not line:
            return []
        return [Text(Tag.SYS if self.structured or self._logging_in else Tag.AI, line)]

    def feed_stderr(self, line: str) -> Events:
        line = strip_escapes(line)
        events: Events = [Text(Tag.SYS, line)]
        if line.startswith(_ERROR):
            message = line.removeprefix(_ERROR)
            # Every model is reached through Amp's own server; this is how it reports that server's 5xx.
            busy = message.startswith("Amp server returned an error")
            kind = ErrorClass.OVERLOADED if busy else error_class(message)
            self.last_error = Failure(message, kind)
            events += [meta.error(message, kind), *self.limit_events(message, kind)]
        return events

    def on_assistant(self, value: dict[str, Any]) -> Events:
        """Skip the copy of a message: some releases occasionally print the last one twice.

        Messages may have no id. Since each one reports only its own tokens, it gets an id here.
        """
        message = get_dict(value, "message")
        if message:
            last, self._last = self._last, [message.get(key) for key in ("id", "content", "usage")]
            if self._last == last:
                return []
            if get_str(message, "id") is None:
                self._messages += 1
                value = {**value, "message": {**message, "id": f"message-{self._messages}"}}
        return super().on_assistant(value)

    def on_user(self, value: dict[str, Any]) -> Events:
        self._last = None
        return super().on_user(value)

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        """The result of a shell command is JSON in a string and includes the command's exit code."""
        code = None
        if text.startswith("{") and '"exitCode"' in text:
            try:
                result = decode_json(text)
            except (ValueError, RecursionError):
                result = None
            code = get_int(result, "exitCode")
            text = text if code is None else get_str(result, "output", "stdout") or ""
        return super().tool_status(text, failed=failed or bool(code))


ADAPTER = AmpAdapter
