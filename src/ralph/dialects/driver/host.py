"""Calls a driver's hooks. Each call starts one bash, which sources the driver and runs the hook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.errors import UsageError
from ralph.system import short
from ralph.system.programs import which

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCRIPT = Path(__file__).parent / "host.sh"
#: A hook may call a slow CLI, but must not block a run forever.
_TIMEOUT = 60.0
_STDERR_SHOWN = 800
_MAX_OUTPUT = 64 << 20


class Description(msgspec.Struct, frozen=True):
    """What a driver reports about itself."""

    name: str
    title: str
    binary: str
    allow_list: bool
    sessions: bool
    live: bool
    #: which optional hooks it defines
    prepare_live_command: bool
    stream_filter: bool
    extract_session_id_from_output: bool
    fallback_session_id: bool
    #: the jq program that turns its stream into text
    filter: str = "empty"
    tools: tuple[str, ...] = ()


class BuiltCommand(msgspec.Struct, frozen=True):
    """The command that a driver built for a prompt."""

    argv: list[str]
    live: bool


class Host:
    """Runs one driver in one directory. `variables` are the ones that the convention's own loop would set."""

    def __init__(self, driver: Path, workdir: Path, variables: Mapping[str, str], environ: Mapping[str, str]) -> None:
        self.driver = driver
        self._workdir = workdir
        self.environ = {**environ, **variables}

    def describe(self) -> Description:
        answers, _ = self._call("describe")
        if answers[:1] == ["missing"]:
            hooks = answers[1].split()
            what = "a required hook" if len(hooks) == 1 else "required hooks"
            raise UsageError(f"the driver {self.driver} lacks {what}: {', '.join(hooks)}")
        facts: dict[str, Any] = {}
        rest = iter(answers)
        for key in rest:
            if key == "tools":
                next(rest, "")  # the number of tools
                facts[key] = tuple(rest)
                break
            value = next(rest, "")
            facts[key] = value == "yes" if key not in ("name", "title", "binary", "filter") else value
        if "tools" not in facts:
            raise UsageError(f"one of the hooks of the driver {self.driver} exited the shell")
        for key, hook in (("name", "driver_name"), ("binary", "driver_cli_binary")):
            if not facts.get(key):
                raise UsageError(f"the driver {self.driver}: {hook} prints nothing")
        return Description(**facts)

    def command(self, prompt_file: Path, context: str, session: str, *, live: bool) -> BuiltCommand:
        answers, errors = self._call("command", str(prompt_file), context, session, "yes" if live else "no")
        kind, *argv = answers or [""]
        if kind not in ("live", "plain") or not argv:
            code = f" (driver_build_command returned {argv[0]})" if kind == "failed" and argv else ""
            raise UsageError(f"the driver {self.driver} did not build a command{code}{errors}")
        return BuiltCommand(argv, kind == "live")

    def output_of(self, hook: str, *arguments: str) -> str | None:
        """What a hook prints. None if the driver does not define it."""
        answers, _ = self._call("output", hook, *arguments)
        return answers[1] if len(answers) == 2 else None

    def available(self) -> bool | None:
        """The result of driver_check_available. None if the driver does not define it."""
        answers, _ = self._call("available")
        return answers[0] == "yes" if answers else None

    def _call(self, *request: str) -> tuple[list[str], str]:
        """What host.sh answers, and the end of its stderr, ready to be appended to an error message."""
        bash = which("bash")
        if bash is None:
            raise UsageError(f"the driver {self.driver} is a bash script, but bash is not in PATH")
        command = [bash, "--noprofile", "--norc", str(_SCRIPT), str(self.driver), *request]
        try:
            done = short.run(command, timeout=_TIMEOUT, env=self.environ, cwd=self._workdir, limit=_MAX_OUTPUT)
        except (OSError, ValueError) as error:
            raise UsageError(f"the driver {self.driver} cannot be run: {error}") from None
        if done.status is None:
            what = request[1] if request[0] == "output" else request[0]
            raise UsageError(f"the driver {self.driver} did not answer: {done.reason} ({what})")
        printed = done.stderr.decode("utf-8", "replace").strip()
        errors = f":\n  {printed[-_STDERR_SHOWN:]}" if printed else ""
        if done.status != 0:
            raise UsageError(f"the driver {self.driver} failed (exit code {done.status}){errors}")
        return [part.decode("utf-8", "surrogateescape") for part in done.stdout.split(b"\0")[:-1]], errors
