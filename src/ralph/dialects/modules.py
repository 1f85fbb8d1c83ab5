"""Loads the module that handles a convention."""

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
    """The interface of a convention's module."""

    def layer(self, found: Found, workdir: Path, environ: Mapping[str, str]) -> FileLayer:
        """Its files as settings, each with its origin. The layer also contains problems and remarks."""

    def launch(self, resolved: Resolved, workdir: Path, trust: Trust) -> Launch:
        """How to start its agent."""

    def executables(self, found: Found, workdir: Path, environ: Mapping[str, str]) -> list[Path]:
        """The files of the repository that a run would execute. Nothing is executed to find out."""


#: The setting that selects the agent in each convention.
AGENT_SETTINGS = {Dialect.PROVIDER: "claude_command", Dialect.DRIVER: "driver", Dialect.SCRIPT: "agent_script"}


def module(dialect: Dialect) -> Module:
    """Imports the module of a convention. A run needs at most one of them."""
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
