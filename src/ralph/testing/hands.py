"""What a scripted agent can say and do. All of it is printed as RTF1, and all of it really happens."""

from __future__ import annotations

import difflib
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

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

#: Seconds a viewer gets, after words and before the next tool.
_READ = 0.35
_LOOK = 0.08


class Hands:
    """Works in one directory. `pace` 0 leaves out the pauses that are there for people who watch."""

    def __init__(self, workdir: Path, pace: float = 1.0) -> None:
        self._workdir = workdir
        self._pace = pace
        self._ids = itertools.count(1)
        self._env = _child_environment(os.environ)

    # -- words

    def say(self, text: str) -> None:
        self._words(Tag.AI, text)

    def think(self, text: str) -> None:
        self._words(Tag.THINK, text)

    def usage(self, prompt_tokens: int, completion_tokens: int) -> None:
        self.emit(UsageEvent(Usage(prompt_tokens, completion_tokens, prompt_tokens + completion_tokens, "demo")))

    def emit(self, event: TranscriptEvent) -> None:
        sys.stdout.buffer.write(SENTINEL.encode() + encode(event) + b"\n")
        sys.stdout.buffer.flush()

    def _words(self, tag: Tag, text: str) -> None:
        self.emit(Text(tag, text))
        self._pause(_READ)

    # -- tools

    def shell(self, command: str) -> bool:
        """Runs a command, shows its output as it comes, and says whether it succeeded."""
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
        """Makes a file hold `text`, and shows what that changed. A reader never sees half of it."""
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
        """What a command prints, without showing it: for decisions, not for work."""
        done = subprocess.run(
            argv, cwd=self._workdir, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return done.stdout.decode("utf-8", "replace")

    def _start(self, name: str, arguments: dict[str, str]) -> tuple[str, float]:
        self._pause(_LOOK)
        tool = f"demo-{next(self._ids)}"
        self.emit(ToolStart(ToolCall(tool, name, dict(arguments))))
        self._pause(_LOOK)
        return tool, time.monotonic()

    def _end(self, tool: str, started: float, *, ok: bool) -> bool:
        took = round((time.monotonic() - started) * 1000)
        self.emit(ToolEnd(ToolResult(tool, ToolStatus.OK if ok else ToolStatus.FAIL, took)))
        self._pause(_LOOK)
        return ok

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds * self._pace)


def python() -> str:
    """The name by which a command of `Hands.shell` reaches the Python that runs us."""
    return Path(sys.executable).name


def without_git(environ: dict[str, str]) -> dict[str, str]:
    """GIT_DIR and its like, as in a git hook, would lead git to another repository than the one it stands in."""
    return {name: value for name, value in environ.items() if not name.startswith("GIT_")}


def _child_environment(environ: os._Environ[str]) -> dict[str, str]:
    clean = without_git(dict(environ))
    clean.pop("PYTHONSAFEPATH", None)  # it would hide a project's modules from its own tests
    path = f"{Path(sys.executable).parent}{os.pathsep}{environ.get('PATH', os.defpath)}"
    return clean | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHON_COLORS": "0"}


def _changed(before: str | None, after: str) -> str:
    if before is None:
        return f"{len(after.splitlines())} lines"
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in diff if line[1:].strip() and not line.startswith(("---", "+++", "@@")))
