"""DriverLauncher: a driver builds the command for each iteration, and finds the agent's session."""

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
    from ralph.dialects.driver.host import Description, Host
    from ralph.transcripts.base import TranscriptAdapter


class DriverLauncher(Launcher):
    delivery = "by the driver"

    def __init__(
        self,
        host: Host,
        description: Description,
        *,
        env: dict[str, str],
        plan: Path | None = None,
        context: bool = False,
        jq: str | None = None,
    ) -> None:
        self._host = host
        self.description = description
        self._env = env
        self._plan = plan
        self._context = context
        self._jq = jq
        self._loops = 0
        self.path = host.driver
        self.resumes = description.sessions

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        if prompt_file.is_file():
            self._loops += 1
            argv = self._command(prompt_file, session if resume else None)
        else:  # a dry run, or a check before the start: the driver needs a real file even so
            with tempfile.TemporaryDirectory(prefix="ralph-") as folder:
                stand_in = Path(folder) / prompt_file.name
                stand_in.write_bytes(prompt.encode("utf-8", "surrogateescape"))
                built = self._command(stand_in, session if resume else None)
            argv = [argument.replace(str(stand_in), str(prompt_file)) for argument in built]
        return CommandLine(argv, None, self._env)

    def _command(self, prompt_file: Path, session: str | None) -> list[str]:
        built = self._host.command(prompt_file, self._loop_context(), session or "", live=self.description.live)
        for index, argument in enumerate(built.argv):
            size = len(argument.encode("utf-8", "surrogateescape"))
            if size > MAX_ARGUMENT:
                raise UsageError(
                    f"the driver {self.description.name} passes the prompt as one argument (number {index}, {size:,} "
                    f"bytes), but the system limit is {MAX_ARGUMENT:,} bytes.\n"
                    "  Shorten the prompt, or put the details in a file and tell the agent to read it."
                )
        return built.argv

    def _loop_context(self) -> str:
        """The note that this convention gives to an agent that resumes its session."""
        if not self._context:
            return ""
        boxes = fix_plan.count(self._plan) if self._plan is not None else fix_plan.Boxes()
        left = f" Remaining tasks: {boxes.open}." if boxes.open or boxes.ticked else ""
        return f"Loop #{max(1, self._loops)}.{left}"

    def adapter(self, prompt: str) -> TranscriptAdapter | None:
        if self._jq is None:
            return None
        from ralph.dialects.driver.jq import JqAdapter

        return JqAdapter(self._jq, self.description.filter, self._host.environ)

    def find_session(self, stdout: Path) -> str | None:
        if not self.description.extract_session_id_from_output:
            return None
        return self._session("driver_extract_session_id_from_output", stdout)

    def fallback_session(self, stdout: Path) -> str | None:
        if not self.description.fallback_session_id:
            return None
        return self._session("driver_fallback_session_id", stdout)

    def _session(self, hook: str, stdout: Path) -> str | None:
        session = (self._host.output_of(hook, str(stdout)) or "").strip()
        return session if session and session != "null" else None

    def examine(self) -> Examined:
        minimum = (self._host.output_of("driver_min_version") or "").strip() or None
        available = self._host.available()
        return Examined(
            version=self.version(),
            minimum=minimum,
            notes=(describe(self.description), f"driver_min_version: {minimum or 'not reported'}"),
            problem="driver_check_available reports that its CLI is not available" if available is False else None,
        )

    def version(self) -> str | None:
        """The version that the CLI prints for --version."""
        from ralph.agents.detect import help_text

        program = which(self.description.binary)
        found = re.search(r"\d+(?:\.\d+)+", help_text(program, ("--version",))) if program else None
        return found[0] if found else None

    def help_for(self, outcome: str) -> str | None:
        if outcome != "permission_denied":
            return None
        return (self._host.output_of("driver_permission_denial_help") or "").rstrip() or None


def describe(driver: Description) -> str:
    """What the driver supports, on one line."""
    live = "no" if not driver.live else "separate command" if driver.prepare_live_command else "same command"
    sources = ["driver hook"] if driver.extract_session_id_from_output else []
    sources += ["agent output", *(["fallback hook"] if driver.fallback_session_id else [])]
    facts = [
        ("live output", live),
        ("display filter", "yes" if driver.stream_filter else "no"),
        ("sessions", f"id from {', '.join(sources)}" if driver.sessions else "no"),
        ("tool allow-list", "yes" if driver.allow_list else "no"),
    ]
    return "; ".join(f"{what}: {value}" for what, value in facts)
