"""The faults: one module per kind, one function per fault."""

from __future__ import annotations

import importlib

#: In the order of the table.
_MODULES = (
    "stops",
    "controls",
    "processes",
    "keeper",
    "tree",
    "output",
    "words",
    "endings",
    "prompts",
    "screens",
    "disk",
    "clock",
    "resources",
    "endurance",
    "models",
)


def load() -> None:
    for name in _MODULES:
        importlib.import_module(f"faults.rows.{name}")
