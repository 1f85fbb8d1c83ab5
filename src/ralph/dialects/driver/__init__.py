"""The driver convention: platform drivers, `.ralphrc`, the RALPH_STATUS block and the plan of boxes."""

from ralph.dialects.driver.layer import layer
from ralph.dialects.driver.planner import executables, launch

__all__ = ["executables", "launch", "layer"]
