"""Long sessions made from real recordings: their middle parts repeated, with new ids each time."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.agents import adapters as registry
from ralph.transcripts.events import Meta, ToolStart
from ralph.transcripts.meta import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"
_ENDS = frozenset({Kind.RESULT.value, Kind.ERROR.value})
#: Longer lines are left out: a tool that prints a whole file in one line would be most of the bytes. In a text format,
#: a recording is cut at this length.
_LONGEST = 16_000
_ID = re.compile(r"(?:.*[a-z_])?(?:ID|Id|id|uuid)$")
_KEPT = re.compile(r"session|thread|model", re.IGNORECASE)


class Session(msgspec.Struct, frozen=True):
    """One output format of one agent: the folders of its recordings, and which of them are mixed."""

    adapter: str
    form: str
    folders: tuple[str, ...]
    names: tuple[str, ...]
    stderr: bool = False
    json: bool = True

    def lines(self, size: int) -> list[str]:
        """About `size` bytes: the start of one recording, then the middles of all in turn."""
        beginning: list[str] = []
        middles: list[list[str]] = []
        for path in self._paths():
            start, rest = self._parts(path)
            beginning = beginning or start
            if rest:
                middles.append(self._pieces(rest))
        if not middles:
            raise RuntimeError(f"there is no recording for {self.adapter}, {self.form}")
        lines, written, turn = beginning, 0, 0
        while written < size:
            for pieces in middles:
                # The ids are at the odd places. Each turn needs its own, because a known id would be taken for a copy,
                # and recordings share ids, too: the first call of a scripted model always has the same.
                body = "".join([f'{p[:-1]}-{turn}"' if n % 2 else p for n, p in enumerate(pieces)])
                lines += body.split("\n")
                written += len(body)
                turn += 1
        return lines

    def _pieces(self, lines: list[str]) -> list[str]:
        """The lines as one text, split at their ids."""
        body = "\n".join(lines)
        ids = sorted(_ids(lines)) if self.json else []
        return re.split("(" + "|".join(re.escape(f'"{i}"') for i in ids) + ")", body) if ids else [body]

    def _paths(self) -> Iterator[Path]:
        for folder in self.folders:
            for name in self.names:
                suffix = r"\.stderr" if self.stderr else r"\.(?:jsonl|txt)"
                wanted = re.compile(re.escape(name) + suffix + r"(?:\.gz)?")
                yield from (p for p in sorted((_FIXTURES / folder).iterdir()) if wanted.fullmatch(p.name))

    def _parts(self, path: Path) -> tuple[list[str], list[str]]:
        """The line that names the session (or the first line), and the lines after it except the end."""
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        adapter = registry.create(self.adapter)
        feed = adapter.feed_stderr if self.stderr else adapter.feed
        start: list[str] = []
        rest: list[str] = []
        taken = 0
        for line in data.decode("utf-8", "replace").rstrip("\n").split("\n"):
            if self.json and not _is_json(line):
                continue
            events = feed(line)
            kinds = {event.meta.get("kind") for event in events if isinstance(event, Meta)}
            if Kind.SESSION.value in kinds or not start:
                start.append(line)
                if any(isinstance(event, ToolStart) for event in events):
                    rest.append(line)  # otherwise its result would come without a call
            elif len(line) <= _LONGEST and not kinds & _ENDS:
                rest.append(line)
                taken += len(line)
                if not self.json and taken > _LONGEST:
                    break
        return start[:1], rest


def _is_json(line: str) -> bool:
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False  # a message of the CLI between its JSON, which msgspec alone cannot decode
    return True


def _ids(lines: list[str]) -> set[str]:
    """The ids that each turn of a session has for itself: of calls, messages and requests."""
    found: set[str] = set()
    for line in lines:
        _collect(msgspec.json.decode(line), found)
    return found


def _collect(value: Any, found: set[str]) -> None:
    if isinstance(value, list):
        for inner in value:
            _collect(inner, found)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(inner, str):
                _collect(inner, found)
            elif _ID.match(key) and not _KEPT.search(key) and any(c.isdigit() for c in inner):
                found.add(inner)


_CLAUDE = ("claude/2.1.325", "claude/2.0.76")
_CODEX_QUIET = ("text-success", "text-failtool", "text-long", "text-parallel")
_CODEX_TEXT = (
    *_CODEX_QUIET,
    *("text-bigtool", "text-unicode", "text-patch", "text-plan", "text-quotes", "text-roles", "text-nonl"),
)
SESSIONS = (
    Session("amp", "stream-json", ("amp/SYNTHETIC-from-sdk-types",), ("stream-json-success",)),
    Session(
        "claude",
        "stream-json",
        _CLAUDE,
        ("stream-json-success", "stream-json-failtool", "stream-json-parallel", "stream-json-long"),
    ),
    Session("claude", "partial messages", _CLAUDE, ("partial-success",)),
    Session("cline", "json", ("cline/3.0.65",), ("json-success", "json-failtool", "json-thinking", "json-unicode")),
    Session("codex", "json", ("codex/0.166.0",), ("json-success", "json-failtool", "json-long", "json-parallel")),
    Session("codex", "json, 0.50", ("codex/0.50.0",), ("json-success", "json-failtool")),
    Session("copilot", "json", ("copilot/1.0.102",), ("json-success", "json-failtool", "json-nostream-success")),
    Session(
        "cursor", "stream-json", ("cursor-agent/SYNTHETIC-from-docs",), ("stream-json-success", "stream-json-failed")
    ),
    Session("cursor", "partial output", ("cursor-agent/SYNTHETIC-from-docs",), ("stream-json-partial",)),
    Session(
        "droid",
        "stream-json",
        ("droid/0.215.0",),
        ("stream-json-success", "stream-json-failtool", "stream-json-longtool", "stream-json-unicode"),
    ),
    Session(
        "gemini",
        "stream-json",
        ("gemini/0.61.0",),
        ("stream-json-success", "stream-json-failtool", "stream-json-badtool", "stream-json-unicode"),
    ),
    Session(
        "goose",
        "stream-json",
        ("goose/1.52.0",),
        ("stream-json-success", "stream-json-failtool", "stream-json-success-anthropic", "stream-json-unicode"),
    ),
    Session("goose", "ACP", ("goose/1.52.0",), ("acp-success",)),
    Session(
        "kimi",
        "stream-json, kimi-cli",
        ("kimi-cli/1.51.0",),
        ("stream-json-success", "stream-json-failtool", "stream-json-unicode"),
    ),
    Session(
        "kimi",
        "stream-json, kimi-code",
        ("kimi-code/2.1.0",),
        ("stream-json-success", "stream-json-failtool", "stream-json-unicode"),
    ),
    Session("opencode", "json", ("opencode/1.18.33",), ("json-success", "json-failtool", "json-thinking-success")),
    Session("pi", "json", ("pi/0.73.1",), ("json-success", "json-failtool", "json-success-openaichat")),
    Session("qwen", "stream-json", ("qwen/0.24.4",), ("stream-json-success", "stream-json-failtool")),
    Session("qwen", "partial messages", ("qwen/0.24.4",), ("stream-json-partial-success",)),
    Session("codex", "text", ("codex/0.166.0",), _CODEX_TEXT, stderr=True, json=False),
    Session("codex", "text, tools that print nothing", ("codex/0.166.0",), _CODEX_QUIET, stderr=True, json=False),
    Session("codex", "text, 0.50", ("codex/0.50.0",), _CODEX_TEXT, stderr=True, json=False),
    Session("codex", "text, 0.50, tools that print nothing", ("codex/0.50.0",), _CODEX_QUIET, stderr=True, json=False),
    Session("goose", "text", ("goose/1.52.0",), ("text-success", "text-failtool"), json=False),
    Session("kiro", "text", ("kiro-cli/SYNTHETIC-from-reports",), ("text-success",), json=False),
    Session("ollama", "text", ("ollama/SYNTHETIC-from-source-v0.33.0-rc2",), ("text-success-nowordwrap",), json=False),
    Session("opencode", "text", ("opencode/1.18.33",), ("text-success", "text-failtool"), json=False),
    Session("plain", "text", ("claude/2.1.325",), ("text-success",), json=False),
)
