"""The script convention: `agents/NAME.sh`, bash functions that know one agent, and `config` beside that folder."""

from ralph.dialects.script.config import executables, layer
from ralph.dialects.script.launcher import launch

__all__ = ["executables", "launch", "layer"]
