"""The JSON schema of ralph.yml, generated from the table of settings."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.config.gates import GATES
from ralph.config.settings import FIELDS, NOT_ACTED_ON, OPTIONS, default, is_duration, is_list, is_yes_or_no

_DURATION: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\s*(\d+(\.\d+)?\s*|(\d+(\.\d+)?\s*(ms|s|m|h|d)\s*)+)$"},
    ]
}
_ADAPTERS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "type": ["object", "null"],
        "properties": {"enabled": {"type": "boolean"}, "timeout": _DURATION},
    },
}


def json_schema() -> dict[str, Any]:
    """The schema, for completion and checks in editors."""
    root: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ralph.yml",
        "type": "object",
        "properties": {},
        "additionalProperties": True,
        "$defs": {},
    }
    for option in OPTIONS:
        node = _node(option.name, root["$defs"]) | {"description": option.help}
        value = msgspec.to_builtins(default(option.name))
        if value not in (None, (), [], {}):
            node["default"] = value
        for key in option.all_keys:
            _put(root, key, node)
    for key in GATES:
        _put(root, key, {"description": "Gates with a command each, which is checked like those in verify."})
    for key in sorted(NOT_ACTED_ON):
        _put(root, key, {"description": "Accepted, but not acted on yet."})
    return root


def _node(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    if is_duration(name):
        return dict(_DURATION)
    if name == "adapters":
        return dict(_ADAPTERS)
    if is_list(name):  # a single value stands for a list of one
        return {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}
    if is_yes_or_no(name):
        return {"anyOf": [{"type": "boolean"}, {"enum": ["yes", "no"]}]}
    (node,), components = msgspec.json.schema_components([FIELDS[name].type], ref_template="#/$defs/{name}")
    definitions.update(components)
    return dict(node)


def _put(root: dict[str, Any], key: str, node: dict[str, Any]) -> None:
    section, _, inner = key.rpartition(".")
    holder = root["properties"]
    if section:
        holder = holder.setdefault(section, {"type": "object", "properties": {}})["properties"]
    holder[inner] = node
