"""What a transcript adapter is."""

from __future__ import annotations

import msgspec

from ralph.transcripts.events import Tag, Text, TranscriptEvent


class Capabilities(msgspec.Struct, frozen=True):
    """What an adapter can tell. Features of the screen appear only where these allow them."""

    supports_roles: bool = False
    supports_tool_events: bool = False
    supports_usage_events: bool = False
    supports_prompt_hiding: bool = False


#: Each look ahead copies so many lines at most, so that a block in which every other line is special costs little.
_AHEAD = 64


_ESCAPES = ("\x1b", "\r")


class Block:
    """Lines that came at once, and the events of those of them that have been taken."""

    __slots__ = ("_begin", "_done", "_known", "_text", "at", "events", "lines", "pos")

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        #: the first line that has not been taken
        self.at = 0
        self.events: list[TranscriptEvent] = []
        self._known: dict[tuple[str, ...], bool] = {}
        self._text: str | None = None
        #: a newline of the text: the lines before it have been taken
        self.pos = 0
        self._begin = self._done = 0

    def ahead(self) -> list[str]:
        """The next lines; not all of them, if there are many."""
        return self.lines[self.at : self.at + _AHEAD]

    def holds(self, any_of: tuple[str, ...]) -> bool:
        """Whether any line, taken or not, holds one of these; looked for once."""
        known = self._known.get(any_of)
        if known is None:
            text = "\n".join(self.lines)
            known = self._known[any_of] = any(part in text for part in any_of)
        return known

    def text(self) -> str:
        """All lines, with a newline before each and one after the last; `pos` is now the one before line `at`.

        Empty if a line holds newlines itself, which then would not tell where it ends.
        """
        if self._text is None:
            text = "\n".join(["", *self.lines, ""])
            self._text = text if text.count("\n") == len(self.lines) + 1 else ""
        if self._done < self.at:
            self.pos += sum(map(len, self.lines[self._done : self.at])) + self.at - self._done
            self._done = self.at
        self._begin = self.pos
        return self._text

    def took(self) -> None:
        """Sets `at` by `pos`, which has moved since `text`."""
        if self._text:
            all_of_them = self.pos == len(self._text) - 1
            passed = self._text.count("\n", self._begin, self.pos) if not all_of_them else len(self.lines) - self._done
            self.at = self._done = self._done + passed
            self._begin = self.pos

    def escaped(self) -> bool:
        """Whether any line, taken or not, holds an escape sequence or a carriage return."""
        return self.holds(_ESCAPES)

    def take(self, until: int, events: list[TranscriptEvent]) -> None:
        """The lines before `until` are done, and these are their events: both at once, so that none is lost."""
        self.events += events
        self.at = until


class TranscriptAdapter:
    """Lines in, events out: pure, stateful, no I/O.

    A line comes without its newline. An adapter never raises and never stays silent about a line it does not
    understand: that becomes text. Subclasses set `name` and `capabilities` and write `feed`; the methods that take
    many lines at once are for speed alone.
    """

    name: str = ""
    capabilities: Capabilities = Capabilities()

    #: True once the transcript has shown structure, so that the agent's final message can be told from the
    #: rest. Completion is stricter (the last line alone counts) while it is False.
    structured: bool = False

    #: Whether the text of an event may be a piece of a line that the next one goes on with.
    pieces: bool = False

    def __init__(self, prompt: str | None = None) -> None:
        #: What the agent was given, if it is known: an adapter may recognise its echo in the output.
        self.prompt = prompt

    def feed(self, line: str) -> list[TranscriptEvent]:
        """The events of one line of stdout."""
        raise NotImplementedError

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        """The events of one line of stderr. It is nobody's words unless an adapter knows better."""
        return [Text(Tag.SYS, line)]

    def feed_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        """The events of many lines of stdout, as `feed` would give them one by one."""
        return [event for line in lines for event in self.feed(line)]

    def feed_stderr_lines(self, lines: list[str]) -> list[TranscriptEvent]:
        """The same for stderr."""
        return [event for line in lines for event in self.feed_stderr(line)]

    def feed_block(self, block: Block) -> None:
        """Takes the lines of stdout from `block.at` on, up to one that it leaves to `feed`; more than one is quicker.

        Only for speed, and only for text, whose lines are short: what comes out must be what `feed` would have given.
        State changes after everything that could fail, right before `block.take`.
        """

    def feed_stderr_block(self, block: Block) -> None:
        """The same for stderr."""

    def flush(self) -> list[TranscriptEvent]:
        """What was held back, once the output has ended."""
        return []
