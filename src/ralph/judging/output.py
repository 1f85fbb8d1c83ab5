"""From an agent's bytes to events. Every run, replay and resumed run reads output this way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ralph.judging.topics import TopicReader
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text
from ralph.transcripts.framing import LineFramer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.judging.observe import Observation
    from ralph.transcripts.events import TranscriptEvent
    from ralph.transcripts.safe import SafeAdapter

# CSI and OSC sequences, other two-byte escapes; a line may end in an unfinished one.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])|\x1b\Z"
)

_LATE = "this was printed after the agent had exited or was told to, so it does not count as its answer:"


def from_terminal(line: str) -> str:
    """What a terminal would show of a line: no escape sequences, no overwritten text."""
    if "\x1b" in line:
        line = _ESCAPES.sub("", line)
    line = line.rstrip("\r")
    if "\r" in line:
        line = line.rpartition("\r")[2]
    if "\b" in line:
        kept: list[str] = []
        for character in line:
            if character != "\b":
                kept.append(character)
            elif kept:
                kept.pop()
        line = "".join(kept)
    return line


class OutputReader:
    """Frames bytes into lines, gives them to the adapter, and shows the events to the observation.

    Every method returns the events to record and show: those of the adapter, plus messages to topics.
    """

    def __init__(
        self,
        adapter: SafeAdapter,
        observation: Observation,
        *,
        pty: bool = False,
        aside: Callable[[str], list[TranscriptEvent]] | None = None,
    ) -> None:
        """`aside` reads the lines of a third stream, which some launchers have."""
        self._adapter = adapter
        self._observation = observation
        self._pty = pty
        self._read_aside = aside
        self._out = LineFramer()
        self._err = LineFramer()
        self._aside = LineFramer()
        self._topics = TopicReader()
        self._late = False
        self._late_words = False

    def stdout(self, chunk: bytes) -> list[TranscriptEvent]:
        return self._stdout_lines(self._out.feed(chunk))

    def stderr(self, chunk: bytes) -> list[TranscriptEvent]:
        return self._stderr_lines(self._err.feed(chunk))

    def aside(self, chunk: bytes) -> list[TranscriptEvent]:
        return self._aside_lines(self._aside.feed(chunk))

    def exited(self) -> list[TranscriptEvent]:
        """The agent itself has exited, or is being ended: what follows is recorded and shown, but is not its answer."""
        # A line of JSON may still be on its way through a `tee`.
        lines = [] if self._out.holds(b"{") else self._out.flush()
        events = [*self._stdout_lines(lines), *self.end_stderr(), *self._aside_lines(self._aside.flush())]
        self._late = True
        return events

    def end_stderr(self) -> list[TranscriptEvent]:
        """The last line of stderr, if it has no newline."""
        return self._stderr_lines(self._err.flush())

    def end(self) -> list[TranscriptEvent]:
        """Last lines without a newline, and what the adapter held back."""
        events = [
            *self._stdout_lines(self._out.flush()),
            *self.end_stderr(),
            *self._aside_lines(self._aside.flush()),
        ]
        self._late = self._late_words  # what the adapter held back is the agent's, unless others printed more
        return [*events, *self.add(self._adapter.flush())]

    def add(self, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
        """Events that come from elsewhere than the streams."""
        if not events:
            return events
        if self._late:
            events = self._not_its_words(events)
        self._observation.feed(events)
        return self._topics.extend(events)

    def _stdout_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        if not lines:
            return []
        return self.add(self._adapter.feed_lines([from_terminal(line) for line in lines] if self._pty else lines))

    def _not_its_words(self, events: list[TranscriptEvent]) -> list[TranscriptEvent]:
        """Marks words as those of another process, and says so once."""
        words = [event for event in events if isinstance(event, Text) and event.tag is Tag.AI]
        found = [Text(Tag.SYS, e.text) if isinstance(e, Text) and e.tag is Tag.AI else e for e in events]
        if not self._late_words and any(event.text.strip() for event in words):
            self._late_words = True
            found.insert(0, meta.notice(_LATE))
        return found

    def _stderr_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        return self.add(self._adapter.feed_stderr_lines(lines)) if lines else []

    def _aside_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        read = self._read_aside
        return self.add([event for line in lines for event in read(line)]) if read is not None else []
