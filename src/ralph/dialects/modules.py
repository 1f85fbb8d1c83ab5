"""The module that acts on each convention's files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ralph.dialects.detect import Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ralph.config.filelayer import FileLayer
    from ralph.config.layers import Resolved
    from ralph.dialects.detect import Found
    from ralph.launching.launch import Launch
    from ralph.trust.approval import Trust


class Module(Protocol):
    """What a convention's module provides."""

    def layer(self, found: Found, workdir: Path, environ: Mapping[str, str]) -> FileLayer:
        """Its files as settings, with lines as origins; mistakes and remarks are kept in the layer."""

    def launch(self, resolved: Resolved, workdir: Path, trust: Trust) -> Launch:
        """How its agent is started."""

    def executables(self, found: Found, workdir: Path, environ: Mapping[str, str]) -> list[Path]:
        """The files of the repository that would be executed; nothing is run to find out."""


#: The setting that chooses each convention's kind of agent.
AGENT_SETTINGS = {Dialect.PROVIDER: "claude_command", Dialect.DRIVER: "driver", Dialect.SCRIPT: "agent_script"}


def module(dialect: Dialect) -> Module:
    """Imported late: a run needs one of them at most."""
    match dialect:
        case Dialect.PROVIDER:
            from ralph.dialects import provider

            return provider
        case Dialect.DRIVER:
            from ralph.dialects import driver

            return driver
        case Dialect.SCRIPT:
            from ralph.dialects import script

            return script
        case Dialect.ORCHESTRATOR:
            raise ValueError("ralph.yml is read by ralph.config")
