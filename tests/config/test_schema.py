"""The JSON schema accepts and rejects the same files as ralph."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from ralph.config.layers import resolve
from ralph.config.schema import json_schema
from ralph.config.settings import NOT_ACTED_ON, OPTIONS
from ralph.config.yamlfile import _plain
from ralph.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KEYWORDS = {
    "$schema", "$defs", "$ref", "title", "description", "default", "type", "properties", "additionalProperties",
    "items", "anyOf", "enum", "minimum", "pattern",
}  # fmt: skip


def is_valid(schema: Any, value: Any, root: dict[str, Any]) -> bool:
    """A validator for the part of JSON schema that ours uses; an unknown keyword fails the test."""
    if schema is True or schema == {}:
        return True
    assert schema.keys() <= _KEYWORDS, schema.keys() - _KEYWORDS
    if "$ref" in schema:
        return is_valid(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root)
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if kinds and not any(isinstance(value, _TYPES[k]) and (k == "boolean") >= isinstance(value, bool) for k in kinds):
        return False
    checks = [
        "enum" not in schema or value in schema["enum"],
        "minimum" not in schema or value >= schema["minimum"],
        "pattern" not in schema or re.search(schema["pattern"], value) is not None,
        "anyOf" not in schema or any(is_valid(option, value, root) for option in schema["anyOf"]),
    ]
    if isinstance(value, list):
        checks += [is_valid(schema.get("items", True), item, root) for item in value]
    if isinstance(value, dict):
        for key, item in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties", True))
            checks.append(is_valid(below, item, root))
    return all(checks)


GOOD = [
    "max_iterations: 5\nmax_runtime: 1h30m\nverify: [make test, ruff check]\n",
    "verify: make test\nui: json\npty: true\nmax_cost: 2.5\n",
    "cli:\n  backend: custom\n  command: x\n  args: [a, b]\n  prompt_mode: stdin\n",
    "event_loop:\n  max_runtime_seconds: 14400\n  prompt: hello\n",
    "adapters:\n  claude:\n    enabled: false\n    timeout: 5m\n  codex:\n",
    "hats:\n  builder: {name: x}\ntui: {prefix_key: a}\nverbose: true\n",
    "exclusive: no\n",
    "exclusive: false\n",
    "sleep: 0\nidle_timeout: 250ms\nwall_timeout: 2.5\nmax_runtime: 1h 30 m\n",
]
BAD = [
    "max_iterations: -1\n",
    "max_iterations: many\n",
    "max_iterations: 2.5\n",
    "max_iterations: true\n",
    "confirmations: 0\n",
    "ui: fancy\n",
    "pty: 'yes'\n",
    "exclusive: sometimes\n",
    "verify: 3\n",
    "verify: [3]\n",
    "sleep: banana\n",
    "sleep: -5\n",
    "sleep: 5 parsecs\n",
    "model: 4.5\n",
    "cli:\n  prompt_mode: pigeon\n",
    "cli: claude\n",
    "adapters:\n  claude:\n    enabled: 7\n",
    "adapters: [claude]\n",
]


def read(text: str) -> Any:
    from ruamel.yaml import YAML

    return _plain(YAML(typ="rt").load(text))


@pytest.mark.parametrize("text", GOOD)
def test_the_schema_accepts_what_ralph_accepts(tmp_path: Path, text: str) -> None:
    (tmp_path / "ralph.yml").write_text(text)
    resolve(tmp_path, {}, environ={})
    assert is_valid(json_schema(), read(text), json_schema())


@pytest.mark.parametrize("text", BAD)
def test_the_schema_rejects_what_ralph_rejects(tmp_path: Path, text: str) -> None:
    (tmp_path / "ralph.yml").write_text(text)
    with pytest.raises(UsageError):
        resolve(tmp_path, {}, environ={})
    assert not is_valid(json_schema(), read(text), json_schema())


def test_every_key_has_a_description() -> None:
    schema = json_schema()
    for key in [key for option in OPTIONS for key in option.all_keys] + sorted(NOT_ACTED_ON):
        section, _, inner = key.rpartition(".")
        place = schema["properties"][section]["properties"] if section else schema["properties"]
        assert place[inner]["description"], key


def test_every_reference_exists_and_every_default_is_valid() -> None:
    schema = json_schema()
    text = json.dumps(schema)
    assert set(re.findall(r'"#/\$defs/(\w+)"', text)) <= schema["$defs"].keys()
    for name, node in schema["properties"].items():
        if "default" in node:
            assert is_valid(node, node["default"], schema), name
