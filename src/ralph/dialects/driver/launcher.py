"""Starts the agent of a driver: the driver makes the command, the supervisor runs it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.agents.spec import MAX_ARGUMENT
from ralph.dialects.driver import fix_plan
from ralph.errors import UsageError
from ralph.launching.launcher import CommandLine, Examined, Launcher
from ralph.system.programs import which

if TYPE_CHECKING:
    from ralph.dialects.driver.host import Described, Host
    from ralph.transcripts.base import TranscriptAdapter


class DriverLauncher(Launcher):
    delivery = "as the driver wants it"

    def __init__(
        self,
        host: Host,
        described: Described,
        *,
        env: dict[str, str],
        plan: Path | None = None,
        context: bool = False,
        jq: str | None = None,
    ) -> None:
        self._host = host
        self.described = described
        self._env = env
        self._plan = plan
        self._context = context
        self._jq = jq
        self._loops = 0
        #: the driver's file
        self.path = host.driver
        self.resumes = described.sessions

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        if prompt_file.is_file():
            self._loops += 1
            argv = self._command(prompt_file, session if resume else None)
        else:  # nothing is started yet; the driver needs a real file all the same
            with tempfile.TemporaryDirectory(prefix="ralph-") as folder:
                stand_in = Path(folder) / prompt_file.name
                stand_in.write_bytes(prompt.encode("utf-8", "surrogateescape"))
                made = self._command(stand_in, session if resume else None)
            argv = [argument.replace(str(stand_in), str(prompt_file)) for argument in made]
        return CommandLine(argv, None, self._env)

    def _command(self, prompt_file: Path, session: str | None) -> list[str]:
        built = self._host.command(prompt_file, self._loop_context(), session or "", live=self.described.live)
        for index, argument in enumerate(built.argv):
            size = len(argument.encode("utf-8", "surrogateescape"))
            if size > MAX_ARGUMENT:
                raise UsageError(
                    f"the driver {self.described.name} puts the prompt into one argument (number {index}, {size:,} "
                    f"bytes), of which the system allows {MAX_ARGUMENT:,} bytes.\n"
                    "  Shorten the prompt, or let it point to a file that the agent reads."
                )
        return built.argv

    def _loop_context(self) -> str:
        """What that convention tells an agent whose session goes on."""
        if not self._context:
            return ""
        boxes = fix_plan.count(self._plan) if self._plan is not None else fix_plan.Boxes()
        left = f" Remaining tasks: {boxes.open}." if boxes.open or boxes.ticked else ""
        return f"Loop #{max(1, self._loops)}.{left}"

    def adapter(self, prompt: str) -> TranscriptAdapter | None:
        if self._jq is None:
            return None
        from ralph.dialects.driver.jq import JqAdapter

        return JqAdapter(self._jq, self.described.filter)

    def find_session(self, stdout: Path) -> str | None:
        if not self.described.extract_session_id_from_output:
            return None
        return self._session("driver_extract_session_id_from_output", stdout)

    def fallback_session(self, stdout: Path) -> str | None:
        if not self.described.fallback_session_id:
            return None
        return self._session("driver_fallback_session_id", stdout)

    def _session(self, hook: str, stdout: Path) -> str | None:
        said = (self._host.said(hook, str(stdout)) or "").strip()
        return said if said and said != "null" else None

    def examine(self) -> Examined:
        minimum = (self._host.said("driver_min_version") or "").strip() or None
        there = self._host.available()
        return Examined(
            version=self.version(),
            minimum=minimum,
            notes=(describe(self.described), f"driver_min_version: {minimum or 'it tells none'}"),
            problem="driver_check_available says that its CLI is not available" if there is False else None,
        )

    def version(self) -> str | None:
        """What the CLI says to --version."""
        from ralph.agents.detect import help_text

        program = which(self.described.binary)
        found = re.search(r"\d+(?:\.\d+)+", help_text(program, ("--version",))) if program else None
        return found[0] if found else None

    def help_for(self, outcome: str) -> str | None:
        if outcome != "permission_denied":
            return None
        return (self._host.said("driver_permission_denial_help") or "").rstrip() or None


def describe(driver: Described) -> str:
    """What it can do, in a line."""
    live = "no" if not driver.live else "a command of its own" if driver.prepare_live_command else "the usual command"
    ways = ["its own way"] if driver.extract_session_id_from_output else []
    ways += ["the output", *(["a last resort"] if driver.fallback_session_id else [])]
    said = [
        ("live output", live),
        ("a filter for it", "yes" if driver.stream_filter else "no"),
        ("sessions", ", ".join(ways) if driver.sessions else "no"),
        ("list of tools", "yes" if driver.allow_list else "no"),
    ]
    return "; ".join(f"{what}: {value}" for what, value in said)
