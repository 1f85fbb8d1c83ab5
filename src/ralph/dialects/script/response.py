"""Finds signals in the output of `agent_extract_response`, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.judging.echo import Recent, repeats
from ralph.judging.signals import Claim, FinalMessage, Signal
from ralph.transcripts.base import TranscriptAdapter
from ralph.transcripts.errors import is_cut

if TYPE_CHECKING:
    from ralph.judging.signals import Markers
    from ralph.transcripts.base import Capabilities
    from ralph.transcripts.events import TranscriptEvent


class ResponseReader:
    """Ignores the transcript, because a display filter mixes the agent's text with tool output and echoes."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._response: str | None = None

    def feed(self, text: str) -> None:
        pass

    def boundary(self, text: str = "") -> None:
        pass

    def respond(self, response: str) -> None:
        self._response = response

    def claim(self, *, structured: bool, prompt: str | None = None) -> Claim:
        """A marker counts alone on a line outside code, or on the last line: a code fence may have been left open.

        A script may return all of the output as the response, so that it contains an echo of the prompt.
        """
        if self._response is None:
            return Claim(Signal.NONE, "there is no response from the agent")
        message = FinalMessage(self._markers)
        message.feed(_without_echo(self._response, prompt, self._markers))
        claim = message.claim(structured=True)
        if claim.signal is Signal.NONE:
            last = message.claim(structured=False)
            if last.signal is not Signal.NONE:
                return last
        return Claim(claim.signal, claim.why.replace("its final message", "its response"))


def _without_echo(response: str, prompt: str | None, markers: Markers) -> str:
    """The response without the lines that have a marker only because they repeat the prompt."""
    every = markers.complete + markers.replan
    if not prompt or not any(marker in prompt for marker in every):
        return response
    kept: list[str] = []
    before = Recent()
    for line in response.split("\n"):
        echoed = any(marker in line and repeats(prompt, before.text, marker) for marker in every)
        kept.append("(an echo of the prompt)" if echoed else line)
        before.add(line)
    return "\n".join(kept)


class RawAdapter(TranscriptAdapter):
    """Shows the raw output with one of ralph's adapters.

    The response and the exit code tell how the iteration ended, so a transcript without a result is no error here.
    """

    def __init__(self, inner: TranscriptAdapter) -> None:
        super().__init__(inner.prompt)
        self._inner = inner
        self.name = inner.name
        self.pieces = inner.pieces

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return self._inner.capabilities

    @property
    def structured(self) -> bool:  # type: ignore[override]
        return self._inner.structured

    def feed(self, line: str) -> list[TranscriptEvent]:
        return self._inner.feed(line)

    def feed_stderr(self, line: str) -> list[TranscriptEvent]:
        return self._inner.feed_stderr(line)

    def flush(self) -> list[TranscriptEvent]:
        return [event for event in self._inner.flush() if not is_cut(event)]


class IgnoringAdapter(TranscriptAdapter):
    """Ignores the raw output, because the script's own display filter shows it."""

    name = "script"

    def feed(self, line: str) -> list[TranscriptEvent]:
        return []
