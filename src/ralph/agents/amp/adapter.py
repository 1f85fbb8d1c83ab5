"""Amp: `--stream-json` in Claude's schema, text otherwise; its errors come on stderr alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text, ToolStatus, decode_json
from ralph.transcripts.json_lines import get_int, get_str, strip_escapes
from ralph.transcripts.meta import ErrorClass
from ralph.transcripts.stream_json.adapter import ClaudeLikeAdapter, Events
from ralph.transcripts.stream_json.errors import error_class
from ralph.transcripts.stream_json.tools import FAIL, OK

if TYPE_CHECKING:
    from ralph.transcripts.stream_json.lines import Assistant, User

#: Printed on stdout in every format, before it waits for a person at a browser.
_LOGIN = "No API key found. Starting login flow"
_ERROR = "Error: "


class AmpAdapter(ClaudeLikeAdapter):
    name = "amp"

    def __init__(self, prompt: str | None = None) -> None:
        super().__init__(prompt)
        self._logging_in = False
        # It tells the tokens of each message alone, and names none.
        self.usage.nameless_are_many = True
        self._message: tuple[bytes, object] | None = None

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
            # Its word for the 5xx of its own server, through which all of its models are reached.
            busy = message.startswith("Amp server returned an error")
            kind = ErrorClass.OVERLOADED if busy else error_class(message)
            self.trouble = (message, kind)
            events += [meta.error(message, kind), *self._limit_end(message, kind, None)]
        return events

    def _usual_message(self, line: Assistant, events: Events) -> bool:
        """Some releases now and then print the last message twice."""
        message = (bytes(line.message.usage), line.message.content)
        if message == self._message:
            return True
        self._message = message
        return super()._usual_message(line, events)

    def _usual_told(self, line: User, events: Events) -> None:
        self._message = None
        super()._usual_told(line, events)

    def tool_status(self, text: str, *, failed: bool) -> tuple[ToolStatus, str]:
        """A shell command's result is JSON in a string, with the command's own exit code."""
        status = FAIL if failed else OK
        if not text.startswith("{") or '"exitCode"' not in text:
            return status, text
        try:
            inner = decode_json(text)
        except (ValueError, RecursionError):
            return status, text
        code = get_int(inner, "exitCode")
        if code is None:
            return status, text
        return (ToolStatus.FAIL if code else status), get_str(inner, "output", "stdout") or ""


ADAPTER = AmpAdapter
