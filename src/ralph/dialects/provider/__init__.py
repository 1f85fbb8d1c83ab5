"""The provider convention: anything that speaks Claude's stream-json, and `.ralphex/config`."""

from ralph.dialects.provider.config import layer
from ralph.dialects.provider.launcher import executables, launch

__all__ = ["executables", "launch", "layer"]
