"""The driver convention: platform drivers, `.ralphrc`, the RALPH_STATUS block and the fix plan."""

from ralph.dialects.driver.config import layer
from ralph.dialects.driver.launch import executables, launch

__all__ = ["executables", "launch", "layer"]
