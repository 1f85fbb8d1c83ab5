"""Events on their way to the journal and the screen, with secrets masked; clean ones pass at almost no cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.masking.finder import forms, merged
from ralph.masking.formats import hinted
from ralph.masking.joining import Joiner, key_of
from ralph.masking.masker import replaced
from ralph.masking.pem import block_spans
from ralph.masking.tails import Tails
from ralph.transcripts.events import Meta, Text, ToolOutput, TranscriptEvent, encode_lines

if TYPE_CHECKING:
    from ralph.masking.masker import Masker

_CUT = 4


class EventMasker:
    """One stream of events. Stateful: a key may go over several of them."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._on = masker.on
        known = {form for value in masker.secrets for form in forms(value)}
        # As JSON has them; without their first characters, which may have come with an event before.
        whole = {msgspec.json.encode(form)[1:-1] for form in known}
        self._needles = [needle[min(_CUT - 1, len(needle) - 5) :] for needle in whole]
        self._cuts = frozenset(form[i : i + _CUT] for form in known for i in range(len(form) - _CUT))
        self._pieces = False
        self._joiner = Joiner(masker.finder, lambda event: masked_event(masker, event))
        #: of what has gone out unexamined
        self._tails = Tails(_CUT)
        #: texts whose last event ended within a private key
        self._within: set[str] = set()

    def expect_pieces(self, possible: bool) -> None:
        """Whether texts of events may be pieces of lines in what comes now, from another process."""
        self._pieces = possible and self._on
        self._tails.clear()
        self._within.clear()
        self._joiner.forget()

    def encode(self, events: list[TranscriptEvent]) -> tuple[list[TranscriptEvent], bytes]:
        """The events to be shown and kept, and their lines of JSON. Some may be held back until more is known."""
        lines = encode_lines(events)
        if not self._on or not (self._within or self._joiner.busy or self._suspicious(events, lines)):
            if self._pieces:
                for over in self._tails.keep():
                    self._joiner.end(over)
            return events, lines
        if self._pieces:
            self._joiner.remember(self._tails.take())
            events = self._joiner.feed(events)
        else:
            events = [self._masked(event) for event in events]
        return events, encode_lines(events)

    def waiting(self, longer_than: float) -> bool:
        """Whether events are held back for so long that they should go out, by `release`."""
        return self._joiner.waits_for() > longer_than

    def release(self) -> tuple[list[TranscriptEvent], bytes]:
        """All that is held back."""
        events = self._joiner.flush()
        return events, encode_lines(events)

    def _suspicious(self, events: list[TranscriptEvent], lines: bytes) -> bool:
        if len(events) == 1 and type(events[0]) is Meta:
            return True  # ralph's own words, which may quote the beginning of something
        if self._masker.patterns or hinted(lines, pieces=self._pieces):
            return True
        for needle in self._needles:
            if needle in lines:
                return True
        return self._pieces and self._may_be_cut(events)

    def _may_be_cut(self, events: list[TranscriptEvent]) -> bool:
        """Whether a text ends within what could be a secret that is known by its value, or is a scrap."""
        ends = self._tails.look(events)
        ends.discard("")
        return not ends.isdisjoint(self._cuts) or min(map(len, ends), default=_CUT) < _CUT

    def _masked(self, event: TranscriptEvent) -> TranscriptEvent:
        key = key_of(event)
        if key is None or not isinstance(event, Text | ToolOutput):
            return masked_event(self._masker, event)
        blocks, within = block_spans(event.text, within=key in self._within)
        (self._within.add if within else self._within.discard)(key)
        spans = merged([*blocks, *self._masker.finder.spans(event.text)])
        return msgspec.structs.replace(event, text=replaced(event.text, spans)) if spans else event


def masked_event(masker: Masker, event: TranscriptEvent) -> TranscriptEvent:
    """Any event, all its texts masked."""
    plain = msgspec.to_builtins(event)
    masked = masker.value(plain)
    return event if masked == plain else msgspec.convert(masked, TranscriptEvent)
