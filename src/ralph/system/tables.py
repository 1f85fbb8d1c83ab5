"""Checking tables that people write: reports every problem, while msgspec stops at the first."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, get_args

import msgspec

from ralph.errors import nearest


def problems_in(table: Any, kind: type[msgspec.Struct], where: str = "") -> list[str]:
    """Everything in a table that does not fit the schema, key by key."""
    if not isinstance(table, dict):
        return [f"{where.rstrip('.')}: expected a table, got {_shown(table)}"]
    fields = {f.name: f for f in msgspec.structs.fields(kind)}
    found = [f"there is no key '{where}{key}'{nearest(key, fields)}" for key in table if key not in fields]
    for name, field in fields.items():
        if name not in table:
            if field.required:
                found.append(f"'{where}{name}' is missing")
            continue
        value = table[name]
        inner = _struct_in(field.type)
        if inner is None:
            found += _in_value(value, field.type, f"{where}{name}")
        elif isinstance(value, list):
            for number, item in enumerate(value, 1):
                found += problems_in(item, inner, f"{where}{name}[{number}].")
        elif getattr(field.type, "__origin__", None) is tuple:
            found.append(f"{where}{name}: expected [[{where}{name}]] tables, got {_shown(value)}")
        else:
            found += problems_in(value, inner, f"{where}{name}.")
    return found


def _in_value(value: Any, kind: Any, where: str) -> list[str]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what, _, at = str(error).partition(" - at `$")
        inside = at.rstrip("`")
        text = what[:1].lower() + what[1:].replace("`", "")
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            options = [option.value for option in kind]
            text = f"expected one of {', '.join(options)}, not {_shown(value)}{nearest(str(value), options)}"
        return [f"{where}{inside}: {text}"]
    return []


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a field holds, also as an optional one or in a list."""
    kinds = (kind, *get_args(kind))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, msgspec.Struct)), None)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
