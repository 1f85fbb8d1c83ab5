"""Translates the files of another convention into a ralph.yml."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config.durations import write_duration
from ralph.config.settings import OPTIONS, is_duration

if TYPE_CHECKING:
    from ralph.config.filelayer import FileLayer
    from ralph.dialects.detect import Found


def as_yaml(found: Found, layer: FileLayer) -> str:
    """The text of a ralph.yml with the origin of every value. Remarks about the files come at the end."""
    lines = [
        f"# ralph.yml, translated from the {found.dialect} convention ({found.why}).",
        "# `ralph config` shows every setting, `ralph run --help` explains them.",
        "",
    ]
    for option in OPTIONS:
        if option.name not in layer.values or option.name == "dialect":
            continue
        value = layer.values[option.name]
        if value is None:
            continue
        text = _value(option.name, value)
        origin = _comment(layer.origins[option.name])
        if text.startswith("\n"):
            lines.append(f"{option.name}:  # {origin}{text}")
        else:
            lines.append(f"{option.name}: {text}  # {origin}")
    if layer.remarks:
        lines += ["", "# Remarks about those files:"]
        lines += [f"# {_comment(text)}" for _, text in layer.remarks]
    return "\n".join(lines) + "\n"


def _value(name: str, value: Any) -> str:
    """Writes JSON, which is also YAML, and quotes text that YAML would read as another type."""
    if is_duration(name):
        return write_duration(value) if value else "0"
    plain = msgspec.to_builtins(value)
    if isinstance(plain, list | tuple):
        return "".join(f"\n  - {json.dumps(item, ensure_ascii=False)}" for item in plain) if plain else "[]"
    return json.dumps(plain, ensure_ascii=False)


def _comment(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())
