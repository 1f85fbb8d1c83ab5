"""Whole runs, with the fixtures of the loop's tests."""

from __future__ import annotations

from loop.conftest import agent, mark, run, run_rtf1

__all__ = ["agent", "mark", "run", "run_rtf1"]
