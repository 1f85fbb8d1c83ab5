"""Finds signals in the output of `agent_extract_response`, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.judging.signals import Claim, FinalMessage, Signal
from ralph.transcripts.base import TranscriptAdapter

if TYPE_CHECKING:
    from ralph.judging.signals import Markers
    from ralph.transcripts.events import TranscriptEvent


class ResponseReader:
    """Ignores the transcript, because a display filter mixes the agent's text with tool output and echoes."""

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
        """A marker counts alone on a line outside code, or on the last line: a code fence may have been left open."""
        if not self._known:
            return Claim(Signal.NONE, "there is no response from the agent")
        claim = self._message.claim(structured=True)
        if claim.signal is Signal.NONE:
            last = self._message.claim(structured=False)
            if last.signal is not Signal.NONE:
                return last
        return Claim(claim.signal, claim.why.replace("its final message", "its response"))


class IgnoringAdapter(TranscriptAdapter):
    """Ignores the raw output, because the script's own display filter shows it."""

    name = "script"

    def feed(self, line: str) -> list[TranscriptEvent]:
        return []
