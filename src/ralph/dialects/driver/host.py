"""Asks a driver: each question is one bash that sources it by its path and calls its hooks."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.errors import UsageError
from ralph.system.programs import which

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCRIPT = Path(__file__).parent / "host.sh"
#: A hook may ask a CLI something; none may hold up a run for long.
_PATIENCE = 60.0
_STDERR_SHOWN = 800


class Described(msgspec.Struct, frozen=True):
    """What a driver says about itself."""

    name: str
    title: str
    binary: str
    allow_list: bool
    sessions: bool
    live: bool
    #: hooks that it has of its own
    prepare_live_command: bool
    stream_filter: bool
    extract_session_id_from_output: bool
    fallback_session_id: bool
    #: the jq program by which its stream is to be shown
    filter: str = "empty"
    tools: tuple[str, ...] = ()


class Built(msgspec.Struct, frozen=True):
    """The command that a driver made of a prompt."""

    argv: list[str]
    live: bool


class Host:
    """One driver in one directory; `variables` are those that the convention's loop would have set."""

    def __init__(self, driver: Path, workdir: Path, variables: Mapping[str, str], environ: Mapping[str, str]) -> None:
        self.driver = driver
        self._workdir = workdir
        self._environ = {**environ, **variables}

    def describe(self) -> Described:
        answers = self._ask("describe")
        if answers[:1] == ["missing"]:
            hooks = answers[1].split()
            what = "this required hook" if len(hooks) == 1 else "these required hooks"
            raise UsageError(f"the driver {self.driver} lacks {what}: {', '.join(hooks)}")
        facts: dict[str, Any] = {}
        rest = iter(answers)
        for key in rest:
            if key == "tools":
                next(rest, "")  # how many
                facts[key] = tuple(rest)
                break
            value = next(rest, "")
            facts[key] = value == "yes" if key not in ("name", "title", "binary", "filter") else value
        if "tools" not in facts:
            raise UsageError(f"the driver {self.driver} ended in the middle of one of its hooks")
        for key, hook in (("name", "driver_name"), ("binary", "driver_cli_binary")):
            if not facts.get(key):
                raise UsageError(f"the driver {self.driver}: {hook} says nothing")
        return Described(**facts)

    def command(self, prompt_file: Path, context: str, session: str, *, live: bool) -> Built:
        kind, *argv = self._ask("command", str(prompt_file), context, session, "yes" if live else "no") or [""]
        if kind not in ("live", "plain") or not argv:
            code = f" (driver_build_command returned {argv[0]})" if kind == "failed" and argv else ""
            raise UsageError(f"the driver {self.driver} made no command{code}{self._complaint}")
        return Built(argv, kind == "live")

    def said(self, hook: str, *arguments: str) -> str | None:
        """What a hook echoes; None if the driver has no such hook."""
        answers = self._ask("said", hook, *arguments)
        return answers[1] if len(answers) == 2 else None

    def available(self) -> bool | None:
        """What driver_check_available says, if it is there."""
        answers = self._ask("available")
        return answers[0] == "yes" if answers else None

    def _ask(self, *question: str) -> list[str]:
        bash = which("bash")
        if bash is None:
            raise UsageError(f"the driver {self.driver} is a bash script, and there is no bash in PATH")
        command = [bash, "--noprofile", "--norc", str(_SCRIPT), str(self.driver), *question]
        with tempfile.TemporaryFile() as stderr:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self._workdir,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise UsageError(f"the driver {self.driver} cannot be run: {error}") from None
            try:
                out, _ = process.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                _end(process.pid)
                process.communicate()
                verb = question[1] if question[0] == "said" else question[0]
                raise UsageError(f"the driver {self.driver} did not answer within {_PATIENCE:g} s ({verb})") from None
            _end(process.pid)
            stderr.seek(0)
            said = stderr.read().decode("utf-8", "replace").strip()
        self._complaint = f":\n  {said[-_STDERR_SHOWN:]}" if said else ""
        if process.returncode != 0:
            raise UsageError(f"the driver {self.driver} failed (exit code {process.returncode}){self._complaint}")
        return [part.decode("utf-8", "surrogateescape") for part in out.split(b"\0")[:-1]]


def _end(group: int) -> None:
    """A hook is a question: what it started goes with it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
