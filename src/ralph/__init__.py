"""Run any headless coding agent in a loop until the job is really done."""

__version__ = "0.1.0"
