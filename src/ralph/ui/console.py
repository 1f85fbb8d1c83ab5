"""Screens for people: rendered events as lines of text on a terminal or in a pipe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ralph.config.durations import format_duration
from ralph.system.terminal import safe
from ralph.system.text import AT_LEAST, count
from ralph.transcripts.events import Meta
from ralph.transcripts.meta import Kind
from ralph.ui.outlet import PATIENCE, Outlet
from ralph.ui.render import Renderer

if TYPE_CHECKING:
    from ralph.loop.screen import Status
    from ralph.transcripts.events import TranscriptEvent

_WIDTH = 7
_COLOURS = {
    "AI": "",
    "THINK": "2",
    "SYS": "33",
    "TOOL": "36",
    "PROMPT": "35",
    "USER": "35",
    "PLAN": "34",
    "ACTIONS": "34",
    "REPORT": "34",
    "VERIFY": "32",
    "STEER": "35",
    "RALPH": "1",
    "HEAD": "1;7",
}


class PlainScreen:
    """Lines without control codes, for pipes, logs and dumb terminals."""

    def __init__(self, fd: int | None = None, *, may_skip: bool = False) -> None:
        sys.stdout.flush()
        self._fd = sys.stdout.fileno() if fd is None else fd
        self._outlet = Outlet(self._fd, _gap, PATIENCE if may_skip else None)
        self._renderer = Renderer()

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        self._write(self._text(events))

    def status(self, status: Status) -> None:
        pass

    def close(self) -> None:
        pass

    def _text(self, events: list[TranscriptEvent]) -> str:
        render, line = self._renderer.lines, self._line
        return "".join([line(label, text) for event in events for label, text in render(event)])

    def _line(self, label: str, text: str) -> str:
        if label == "HEAD":
            return f"━━━ {text} ━━━\n"
        text = text.rstrip()
        return f"{label.ljust(_WIDTH)} {text}\n" if text else f"{label}\n"

    def _write(self, text: str, *, counts: bool = True) -> None:
        self._outlet.write(text.encode("utf-8", "replace"), counts=counts)


class RichScreen(PlainScreen):
    """The same lines in colour (unless NO_COLOR is set), and a status line below them."""

    def __init__(self, fd: int | None = None, *, may_skip: bool = False) -> None:
        super().__init__(fd, may_skip=may_skip)
        self._colour = not os.environ.get("NO_COLOR")
        self._status = ""

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        text = self._text(events)
        if text:
            erase = self._erase()
            if _is_turn(events[-1]):
                self._status = ""  # outdated until the next update
            self._write(erase + text + self._status)

    def status(self, status: Status) -> None:
        erase = self._erase()
        self._status = self._fit(status_text(status))
        self._write(erase + self._status, counts=False)

    def close(self) -> None:
        self._write(self._erase())
        self._status = ""

    def clear_status(self) -> None:
        self.close()

    def _erase(self) -> str:
        return "\r\x1b[2K" if self._status else ""

    def _fit(self, text: str) -> str:
        """Cuts the text one column short of the width, so that it never wraps."""
        try:
            columns = os.get_terminal_size(self._fd).columns  # not COLUMNS, which may describe another terminal
        except OSError:
            columns = 0
        width = (columns or 80) - 1
        text = text if len(text) <= width else text[: max(0, width - 1)] + "…"
        return f"\x1b[2m{text}\x1b[0m" if self._colour else text

    def _line(self, label: str, text: str) -> str:
        if not self._colour:
            return super()._line(label, text)
        colour = _COLOURS.get(label, "1")
        if label == "HEAD":
            return f"\x1b[{colour}m {text} \x1b[0m\n"
        start, end = (f"\x1b[{colour}m", "\x1b[0m") if colour else ("", "")
        if label == "THINK":
            return f"{start}{label:<{_WIDTH}} {text}{end}\n"
        if text.startswith(("✗", "  ✗")):
            return f"{start}{label:<{_WIDTH}}{end} \x1b[31m{text}\x1b[0m\n"
        return f"{start}{label:<{_WIDTH}}{end} {text}\n"


def _gap(lines: int) -> str:
    skipped = count(lines, "line")
    return f"{'RALPH'.ljust(_WIDTH)} … skipped {skipped} while the output was not read; `ralph show` shows everything\n"


def _is_turn(event: TranscriptEvent) -> bool:
    """Whether an iteration starts or ends."""
    return type(event) is Meta and event.meta.get("kind") in (Kind.ITERATION_START, Kind.ITERATION_END)


def status_text(status: Status) -> str:
    """The status line. What matters most comes first, because a narrow terminal cuts the end."""
    of = f"/{status.maximum}" if status.maximum else ""
    parts = [f"iteration {status.iteration}{of}", format_duration(status.elapsed)]
    if status.checking:
        return f"{safe(f'checking: {status.checking}')} · {format_duration(status.silent)} · run {parts[1]}"
    if status.paused:
        return f"paused for {format_duration(status.silent)} · run {parts[1]} · `{safe(status.paused)}` resumes it"
    if status.waiting:
        return f"waiting {format_duration(status.silent)} · run {parts[1]} · {safe(status.waiting)}"
    parts.append(f"last output {format_duration(status.silent)} ago")
    lower = AT_LEAST if status.at_least else ""
    parts.append(lower + count(status.tokens, "token") if status.tokens is not None else "tokens unknown")
    parts.append(f"{lower}${status.cost:.4f}" if status.cost is not None else "cost unknown")
    parts.append(count(status.tools, "tool") + (f" (now {safe(status.open_tool[:20])})" if status.open_tool else ""))
    return " · ".join(parts)
