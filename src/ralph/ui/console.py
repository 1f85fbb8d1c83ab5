"""Lines on a terminal or in a pipe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ralph.config.durations import format_duration
from ralph.system.terminal import safe
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
    """One line an event line, no control codes: for pipes, logs and dumb terminals."""

    def __init__(self, fd: int | None = None, *, hurried: bool = False) -> None:
        sys.stdout.flush()
        self._fd = sys.stdout.fileno() if fd is None else fd
        self._outlet = Outlet(self._fd, _gap, PATIENCE if hurried else None)
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
    """The same lines with colour (unless NO_COLOR is set), and a status line that is always the last one."""

    def __init__(self, fd: int | None = None, *, hurried: bool = False) -> None:
        super().__init__(fd, hurried=hurried)
        self._colour = not os.environ.get("NO_COLOR")
        self._status = ""

    def show(self, events: list[TranscriptEvent], lines: bytes) -> None:
        text = self._text(events)
        if text:
            erase = self._erase()
            if _is_turn(events[-1]):
                self._status = ""  # it is about what was before: until it is told anew it would only stand still
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
        """One column short of the width, so that it never wraps."""
        try:
            columns = os.get_terminal_size(self._fd).columns  # not COLUMNS, which may be another terminal's
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
    shown = "1 line was" if lines == 1 else f"{lines:,} lines were"
    return f"{'RALPH'.ljust(_WIDTH)} … {shown} not shown, as nobody read them here; `ralph show` has all\n"


def _is_turn(event: TranscriptEvent) -> bool:
    """An iteration begins, or ralph's own work after it."""
    return type(event) is Meta and event.meta.get("kind") in (Kind.ITERATION_START, Kind.ITERATION_END)


def status_text(status: Status) -> str:
    """What matters most comes first: a narrow terminal cuts the end."""
    of = f"/{status.maximum}" if status.maximum else ""
    parts = [f"iteration {status.iteration}{of}", format_duration(status.elapsed)]
    if status.checking:
        return f"{safe(f'checking: {status.checking}')} · {format_duration(status.silent)} · run {parts[1]}"
    if status.paused:
        return f"paused for {format_duration(status.silent)} · run {parts[1]} · `{safe(status.paused)}` lets it go on"
    if status.waiting:
        return f"waiting {format_duration(status.silent)} · run {parts[1]} · {safe(status.waiting)}"
    parts.append(f"last output {format_duration(status.silent)} ago")
    parts.append(f"{status.tokens:,} tokens" if status.tokens is not None else "tokens unknown")
    parts.append(f"${status.cost:.4f}" if status.cost is not None else "cost unknown")
    tools = "1 tool" if status.tools == 1 else f"{status.tools} tools"
    parts.append(tools + (f" (now {safe(status.open_tool[:20])})" if status.open_tool else ""))
    return " · ".join(parts)
