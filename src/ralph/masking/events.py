"""Masks events before they reach the journal and the screen. Events without secrets pass at almost no cost."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ralph.masking.finder import forms, merged
from ralph.masking.formats import hinted
from ralph.masking.masker import replaced
from ralph.masking.pem import block_spans
from ralph.masking.split_secrets import SplitSecretMasker, key_of
from ralph.masking.text_ends import TextEnds
from ralph.masking.views import bare, may_differ
from ralph.transcripts.events import Meta, Text, ToolOutput, TranscriptEvent, encode_lines, replace_surrogates
from ralph.transcripts.meta import OURS

if TYPE_CHECKING:
    from ralph.masking.masker import Masker

_Struct = TypeVar("_Struct", bound=msgspec.Struct)
#: How many characters at the end of a text are compared with the secrets.
_CUT = 4


class EventMasker:
    """Masks one stream of events. Stateful, because a secret may be split across several events."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._on = masker.on
        known = {form for value in masker.secrets for form in forms(value)}
        # Encoded as JSON, and without their first characters, which may have come with an earlier event.
        whole = {msgspec.json.encode(replace_surrogates(form))[1:-1] for form in known}
        self._needles = [needle[min(_CUT - 1, len(needle) - 5) :] for needle in whole]
        self._cuts = frozenset(form[i : i + _CUT] for form in known for i in range(len(form) - _CUT))
        self._pieces = False
        self._split = SplitSecretMasker(masker.finder, lambda event: masked_event(masker, event))
        #: the ends of the texts that were passed on without a closer look
        self._ends = TextEnds(_CUT)
        #: the texts whose last event ended inside a private key
        self._within: set[str] = set()

    def expect_pieces(self, possible: bool) -> None:
        """Called when the events of another process begin: whether their texts may be pieces of lines."""
        self._pieces = possible and self._on
        self._ends.clear()
        self._within.clear()
        self._split.forget()

    def encode(self, events: list[TranscriptEvent]) -> tuple[list[TranscriptEvent], bytes]:
        """Masks events and encodes them as lines of JSON. Some may be held back until the next call, or `release`."""
        lines = encode_lines(events)
        if not self._on or not (self._within or self._split.busy or self._suspicious(events, lines)):
            if self._pieces:
                for ended in self._ends.keep():
                    self._split.end(ended)
            return events, lines
        if self._pieces:
            self._split.remember(self._ends.take())
            events = self._split.feed(events)
        else:
            events = [self._masked(event) for event in events]
        return events, encode_lines(events)

    def waiting(self, longer_than: float) -> bool:
        """Whether events have been held back for so long that the caller should `release` them."""
        return self._split.held_for() > longer_than

    def release(self) -> tuple[list[TranscriptEvent], bytes]:
        """The events that are held back, masked, and their lines of JSON."""
        events = self._split.flush()
        return events, encode_lines(events)

    def _suspicious(self, events: list[TranscriptEvent], lines: bytes) -> bool:
        if len(events) == 1 and type(events[0]) is Meta:
            return True  # ralph's own message, which may quote the start of a secret
        if self._masker.patterns or self._hinted(lines):
            return True
        if may_differ(lines) and (self._pieces or self._hinted(bare(lines))):
            return True
        return self._pieces and self._may_be_cut(events)

    def _hinted(self, lines: bytes) -> bool:
        return hinted(lines, pieces=self._pieces) or any(needle in lines for needle in self._needles)

    def _may_be_cut(self, events: list[TranscriptEvent]) -> bool:
        """Whether a text ends with characters that occur in a known secret, or is too short to tell."""
        ends = self._ends.scan(events)
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
    """The event with all its texts masked. Its structure stays as it is, whatever the secrets and patterns are."""
    if isinstance(event, Meta):
        ours = event.meta.get("kind") in OURS
        masked = masker.value(event.meta, keys=not ours)
        return event if masked == event.meta else Meta(masked)
    return _masked_struct(masker, event)


def _masked_struct(masker: Masker, struct: _Struct) -> _Struct:
    changed = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct):
            masked: Any = _masked_struct(masker, value)
        elif isinstance(value, Enum):
            continue  # a string too, but one of ours
        else:
            masked = masker.value(value, name)
        if masked != value:
            changed[name] = masked
    return msgspec.structs.replace(struct, **changed) if changed else struct
