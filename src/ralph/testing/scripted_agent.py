"""What a scripted agent can say and do. It prints everything as RTF1, and everything it prints really happens."""

from __future__ import annotations

import difflib
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

from ralph.system.text import count
from ralph.transcripts.events import (
    Tag,
    Text,
    ToolCall,
    ToolEnd,
    ToolOutput,
    ToolRef,
    ToolResult,
    ToolStart,
    ToolStatus,
    TranscriptEvent,
    Usage,
    UsageEvent,
    encode,
)
from ralph.transcripts.rtf1 import SENTINEL

#: Seconds for a viewer to read, after a text and around a tool.
_AFTER_TEXT = 0.35
_AROUND_TOOL = 0.08


class ScriptedAgent:
    """Works in one directory. With `pace` 0 it makes no pauses for viewers."""

    def __init__(self, workdir: Path, pace: float = 1.0) -> None:
        self._workdir = workdir
        self._pace = pace
        self._ids = itertools.count(1)
        self._env = _child_environment(os.environ)

    # -- text

    def say(self, text: str) -> None:
        self._text(Tag.AI, text)

    def think(self, text: str) -> None:
        self._text(Tag.THINK, text)

    def usage(self, prompt_tokens: int, completion_tokens: int) -> None:
        self.emit(UsageEvent(Usage(prompt_tokens, completion_tokens, prompt_tokens + completion_tokens, "demo")))

    def emit(self, event: TranscriptEvent) -> None:
        sys.stdout.buffer.write(SENTINEL.encode() + encode(event) + b"\n")
        sys.stdout.buffer.flush()

    def _text(self, tag: Tag, text: str) -> None:
        self.emit(Text(tag, text))
        self._pause(_AFTER_TEXT)

    # -- tools

    def shell(self, command: str) -> bool:
        """Runs a command and shows its output as it arrives. Returns whether it succeeded."""
        tool, started = self._start("shell", {"command": command})
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=self._workdir,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self.emit(ToolOutput(ToolRef(tool), line.decode("utf-8", "replace").rstrip("\n")))
        return self._end(tool, started, ok=process.wait() == 0)

    def read(self, name: str) -> str:
        tool, started = self._start("read", {"path": name})
        text = (self._workdir / name).read_text(encoding="utf-8")
        self.emit(ToolOutput(ToolRef(tool), text.rstrip("\n")))
        self._end(tool, started, ok=True)
        return text

    def write(self, name: str, text: str) -> None:
        """Replaces a file atomically, and shows what changed."""
        path = self._workdir / name
        before = path.read_text(encoding="utf-8") if path.exists() else None
        tool, started = self._start("write" if before is None else "edit", {"path": name})
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
        self.emit(ToolOutput(ToolRef(tool), _changed(before, text)))
        self._end(tool, started, ok=True)

    def ask(self, *argv: str) -> str:
        """The output of a command, which is not shown: for decisions, not for work."""
        done = subprocess.run(
            argv, cwd=self._workdir, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return done.stdout.decode("utf-8", "replace")

    def _start(self, name: str, arguments: dict[str, str]) -> tuple[str, float]:
        self._pause(_AROUND_TOOL)
        tool = f"demo-{next(self._ids)}"
        self.emit(ToolStart(ToolCall(tool, name, dict(arguments))))
        self._pause(_AROUND_TOOL)
        return tool, time.monotonic()

    def _end(self, tool: str, started: float, *, ok: bool) -> bool:
        took = round((time.monotonic() - started) * 1000)
        self.emit(ToolEnd(ToolResult(tool, ToolStatus.OK if ok else ToolStatus.FAIL, took)))
        self._pause(_AROUND_TOOL)
        return ok

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds * self._pace)


def python() -> str:
    """The name by which a command of `ScriptedAgent.shell` finds the Python that runs us."""
    return Path(sys.executable).name


def without_git(environ: dict[str, str]) -> dict[str, str]:
    """The environment without GIT_DIR and similar, which a git hook sets and which lead git to another repository."""
    return {name: value for name, value in environ.items() if not name.startswith("GIT_")}


def _child_environment(environ: os._Environ[str]) -> dict[str, str]:
    clean = without_git(dict(environ))
    clean.pop("PYTHONSAFEPATH", None)  # it would hide the project's modules from its own tests
    path = f"{Path(sys.executable).parent}{os.pathsep}{environ.get('PATH', os.defpath)}"
    return clean | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHON_COLORS": "0"}


def _changed(before: str | None, after: str) -> str:
    if before is None:
        return count(len(after.splitlines()), "line")
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in diff if line[1:].strip() and not line.startswith(("---", "+++", "@@")))
