"""Whole runs, as the tests of the loop make them."""

from __future__ import annotations

from loop.conftest import run, run_rtf1

__all__ = ["run", "run_rtf1"]
