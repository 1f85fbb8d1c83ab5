"""The script convention: bash functions for each agent in `agents/NAME.sh`, and a `config` next to that folder."""

from ralph.dialects.script.config import executables, layer
from ralph.dialects.script.launcher import launch

__all__ = ["executables", "launch", "layer"]
