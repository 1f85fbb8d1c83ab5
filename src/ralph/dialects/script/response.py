"""Signals in what `agent_extract_response` printed, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.judging.signals import Claim, FinalMessage, Signal
from ralph.transcripts.base import TranscriptAdapter

if TYPE_CHECKING:
    from ralph.judging.signals import Markers
    from ralph.transcripts.events import TranscriptEvent


class ResponseReader:
    """Does not listen to the transcript: a display filter shows tools and echoes as well as words."""

    def __init__(self, markers: Markers) -> None:
        self._message = FinalMessage(markers)
        self._known = False

    def feed(self, text: str) -> None:
        pass

    def boundary(self) -> None:
        pass

    def respond(self, response: str) -> None:
        self._known = True
        self._message.feed(response)

    def claim(self, *, structured: bool) -> Claim:
        """Alone on a line, outside of code; or as the very last line, should an earlier message leave a fence open."""
        if not self._known:
            return Claim(Signal.NONE, "there is no response of the agent")
        claim = self._message.claim(structured=True)
        if claim.signal is Signal.NONE:
            last = self._message.claim(structured=False)
            if last.signal is not Signal.NONE:
                return last
        return Claim(claim.signal, claim.why.replace("its final message", "its response"))


class Unseen(TranscriptAdapter):
    """For raw output of which the script's own display filter shows what is worth seeing."""

    name = "script"

    def feed(self, line: str) -> list[TranscriptEvent]:
        return []
