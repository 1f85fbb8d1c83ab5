"""Fixtures for other people's conventions."""

from __future__ import annotations

from driver_project import project
from fake_tools import tools

__all__ = ["project", "tools"]
