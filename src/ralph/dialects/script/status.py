"""Reads the status that host.sh leaves after an iteration, and turns it into notices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ralph.system import files
from ralph.transcripts import meta
from ralph.transcripts.events import Meta
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.transcripts.events import TranscriptEvent

_HOOKS = ("agent_pre_iteration", "agent_post_iteration")


class Status(msgspec.Struct, frozen=True):
    """The contents of `script.status`: names and values, each ended by NUL. Empty if the iteration was killed."""

    facts: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Status:
        try:
            parts = files.read_text(path).split("\0")
        except OSError:
            return cls({})
        return cls(dict(zip(parts[::2], parts[1::2], strict=False)))

    @property
    def extracted(self) -> bool:
        return "extracted" in self.facts

    def number(self, name: str) -> int | None:
        """A number such as `45`, `45.3` or `45%`, as scripts get them from awk and jq. None for anything else."""
        found = re.fullmatch(r"(\d{1,15})(\.\d*)? ?%?", self.facts.get(name, "").strip(), re.ASCII)
        return int(found.group(1)) if found else None


def hook_notices(status: Status, shown: str) -> list[TranscriptEvent]:
    """What went wrong outside the agent. It is an error if the shell exited before the agent had run."""
    events: list[TranscriptEvent] = []
    facts = status.facts
    for hook in _HOOKS:
        if hook in facts:
            events.append(meta.notice(f"{hook} returned {facts[hook]}"))
    if facts.get("extracted", "0") != "0":
        events.append(meta.notice(f"agent_extract_response returned {facts['extracted']}"))
    match facts.get("exited"):
        case None:
            pass
        case "agent_post_iteration":
            events.append(meta.notice("agent_post_iteration exited the shell"))
        case "load":
            events.append(meta.error(f"{shown} could not be sourced"))
        case phase:
            events.append(meta.error(f"{phase} in {shown} exited the shell"))
    if "slow_filter" in facts:
        text = "agent_format_display was stuck and has been stopped; --transcript NAME shows the output without it"
        events.append(meta.notice(text))
    return events


def context_notice(status: Status) -> list[TranscriptEvent]:
    """How full the agent's context was, if its script reports it."""
    used, maximum, percent = status.number("used"), status.number("max"), status.number("percent")
    if percent is None and used is not None and maximum:
        percent = round(100 * used / maximum)
    if used is None and percent is None:
        return []
    tokens = "" if used is None else f"{used:,}" + (f" of {maximum:,} tokens" if maximum else " tokens")
    share = "" if percent is None else f"{percent} %"
    full = percent is not None and percent >= (status.number("warn") or 80)
    text = f"context: {f'{tokens} ({share})' if tokens and share else tokens or share}{', nearly full' if full else ''}"
    numbers = {"used": used, "max": maximum, "percent": percent}
    known = {name: value for name, value in numbers.items() if value is not None}
    return [Meta({"kind": Kind.NOTICE.value, "text": text, "context": known})]
