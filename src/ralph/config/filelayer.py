"""Reads a ralph.yml into values, problems and warnings, each with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config import guards
from ralph.config.convert import convert, short, split
from ralph.config.durations import parse_duration
from ralph.config.gates import GATES, GATES_SECTION, read_gates
from ralph.config.settings import (
    ADAPTER_NOT_ACTED_ON,
    NOT_ACTED_ON,
    OPTIONS,
    PROMPT_PARTS,
    RETIRED,
    SECTIONS,
    AdapterSettings,
    Option,
)
from ralph.errors import did_you_mean, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.config.yamlfile import Entry, YamlFile

#: Each unknown key is compared with all known ones.
_MAX_UNKNOWN = 20
_BY_KEY: dict[str, Option] = {key: option for option in OPTIONS for key in option.all_keys}


class FileLayer(msgspec.Struct):
    """The content of one file. `shown` is its name in messages."""

    shown: str
    base: Path
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    #: with their lines, so that they can be reported in the order of the file
    problems: list[tuple[int, str]] = []
    remarks: list[tuple[int, str]] = []
    #: settings that, in this file's convention, an agent may ignore
    hints: frozenset[str] = frozenset()
    #: keys that other tools support and ralph does not act on
    idle: list[str] = []
    #: values of the user's own file of this convention, with their origins, also where `values` has the project's
    users: dict[str, tuple[Any, str]] = {}

    def set(self, name: str, value: Any, origin: str) -> None:
        self.values[name], self.origins[name] = value, origin

    def problem(self, line: int, text: str) -> None:
        self.problems.append((line, f"{self.shown}:{line}: {text}"))

    def remark(self, line: int, text: str) -> None:
        self.remarks.append((line, f"{self.shown}:{line}: {text}"))


def read_layer(file: YamlFile, shown: str) -> FileLayer:
    layer = FileLayer(shown, file.path.parent, {}, {}, [], [])
    for option in OPTIONS:
        if option.name == "adapters":
            _adapters(layer, file.entries)
        else:
            _setting(layer, option, file.entries)
    _gates(layer, file.entries)
    _others(layer, file.entries)
    layer.problems.sort()
    layer.remarks.sort()
    if "driver" in layer.values:  # as in that convention's own files
        return msgspec.structs.replace(layer, hints=frozenset({"allowed_tools"}))
    return layer


def _setting(layer: FileLayer, option: Option, entries: dict[str, Entry]) -> None:
    """Reads one setting. If several of its keys are used, the flat one wins; the others are still checked."""
    winner: tuple[str, int] | None = None
    for key in option.all_keys:
        entry = entries.get(key)
        if entry is None or entry.value is None:
            continue
        try:
            given = split(option, entry.value) if isinstance(entry.value, str) else entry.value
            value = convert(option.name, given, strict=True)
        except ValueError as error:
            layer.problem(entry.line, f"{key}: {error}, not {short(entry.value)}")
            continue
        if winner is not None:
            layer.remark(entry.line, f"{key} is not used: {winner[0]} in line {winner[1]} takes precedence")
            continue
        winner = (key, entry.line)
        if option.name in ("agent", "agent_priority"):
            value = _check_agent(layer, key, entry.line, value)
        layer.values[option.name], layer.origins[option.name] = value, f"{layer.shown}:{entry.line}"


def _unknown(layer: FileLayer, name: str) -> str | None:
    """What is wrong with the name of an agent. Agents defined in the project itself are checked later."""
    from ralph.agents import registry

    if name in ("auto", "custom") or name in registry.names() or registry.project_files(layer.base):
        return None
    others = {alias for spec in registry.all_specs() for alias in spec.aliases}
    if name in others or any(name in (file.name, file.path.stem) for file in registry.own().broken):
        return None
    known = [*registry.names(), "custom"]
    return f"there is no agent '{name}'{nearest(name, known)}; choose one of {', '.join(known)}"


def _check_agent(layer: FileLayer, key: str, line: int, value: Any) -> Any:
    """An unknown agent is a problem; in a list of preferences, it is dropped with a warning."""
    if isinstance(value, str):
        wrong = _unknown(layer, value)
        if wrong is not None:
            layer.problem(line, f"{key}: {wrong}")
        return value
    ignored = {name: wrong for name in value if (wrong := _unknown(layer, name)) is not None}
    for name, wrong in ignored.items():
        layer.remark(line, f"{key}: '{name}' is ignored: {wrong}")
    return tuple(name for name in value if name not in ignored)


def _adapters(layer: FileLayer, entries: dict[str, Entry]) -> None:
    from ralph.agents import registry

    top = entries.get("adapters")
    if top is None or top.value is None:
        return
    if not isinstance(top.value, dict):
        layer.problem(top.line, f"adapters: expected names of agents, each with its settings, not {short(top.value)}")
        return
    found: dict[str, AdapterSettings] = {}
    names = {alias: spec.name for spec in registry.all_specs() for alias in spec.aliases}
    for name, body in top.value.items():
        key = f"adapters.{name}"
        line = entries[key].line
        _check_name(layer, name, line)
        if body is None:
            continue
        if not isinstance(body, dict):
            layer.problem(line, f"{key}: expected the keys enabled or timeout, not {short(body)}")
            continue
        found[names.get(name) or name] = _adapter(layer, key, entries, list(body))
    layer.values["adapters"], layer.origins["adapters"] = found, f"{layer.shown}:{top.line}"


def _check_name(layer: FileLayer, name: str, line: int) -> None:
    from ralph.agents import registry

    known = {*registry.names(), *(alias for spec in registry.all_specs() for alias in spec.aliases), "custom"}
    if name not in known and not registry.project_files(layer.base):
        layer.remark(line, f"adapters: there is no agent '{name}'{nearest(name, known)}; it is ignored")


def _adapter(layer: FileLayer, key: str, entries: dict[str, Entry], names: list[str]) -> AdapterSettings:
    enabled, timeout = True, None
    for name in names:
        entry = entries[f"{key}.{name}"]
        try:
            match name:
                case "enabled" if isinstance(entry.value, bool):
                    enabled = entry.value
                case "enabled":
                    raise ValueError("expected true or false")
                case "timeout":
                    timeout = parse_duration(entry.value)
                case _ if name in ADAPTER_NOT_ACTED_ON:
                    layer.idle.append(f"{key}.{name}")
                case _:
                    hint = nearest(name, ("enabled", "timeout"))
                    layer.remark(entry.line, f"unknown key '{key}.{name}'{hint}; it is ignored")
        except ValueError as error:
            layer.problem(entry.line, f"{key}.{name}: {error}, not {short(entry.value)}")
    return AdapterSettings(enabled, timeout)


def _gates(layer: FileLayer, entries: dict[str, Entry]) -> None:
    """Gates are checks, like the commands in `verify`."""
    section = entries.get(GATES_SECTION)
    if section is not None and isinstance(section.value, dict):
        layer.idle += [key for name in section.value if (key := f"{GATES_SECTION}.{name}") not in GATES]
    elif section is not None and section.value is not None:
        layer.remark(section.line, f"{GATES_SECTION}: expected gates, not {short(section.value)}; it is ignored")
    for key in GATES:
        entry = entries.get(key)
        if entry is None or entry.value is None:
            continue
        gates = read_gates(entry.value)
        for text in gates.remarks:
            layer.remark(entry.line, f"{key}: {text}")
        if gates.commands:
            before, origin = layer.values.get("verify", ()), f"{layer.shown}:{entry.line}"
            origin = f"{layer.origins['verify']}, {origin}" if before else origin
            layer.set("verify", tuple(dict.fromkeys((*before, *gates.commands))), origin)


def _unknown_keys(layer: FileLayer, unknown: list[tuple[str, int]]) -> None:
    for key, line in unknown[:_MAX_UNKNOWN]:
        _unknown_key(layer, key, line)
    if len(unknown) > _MAX_UNKNOWN:
        more = len(unknown) - _MAX_UNKNOWN
        layer.remark(unknown[_MAX_UNKNOWN][1], f"{more} more unknown keys begin here; they are ignored")


def _unknown_key(layer: FileLayer, key: str, line: int) -> None:
    """A warning, but an error if it looks like a mistyped limit or other guard: the user relies on that one."""
    guard = guards.near_miss(key, {key: option.name for key, option in _BY_KEY.items()})
    if guard is not None:
        layer.problem(line, f"unknown key '{key}'{did_you_mean(guard)}: correct or remove it")
    else:
        hint = nearest(key, [*_BY_KEY, *NOT_ACTED_ON, *SECTIONS])
        layer.remark(line, f"unknown key '{key}'{hint}; it is ignored")


def _others(layer: FileLayer, entries: dict[str, Entry]) -> None:
    """Keys that are not settings. Those that other tools support share one warning; each unknown key has its own."""
    idle = layer.idle
    unknown: list[tuple[str, int]] = []
    for key, entry in entries.items():
        parent = key.rpartition(".")[0]
        if key in _BY_KEY or key in (*GATES, GATES_SECTION) or (parent and parent not in SECTIONS):
            continue
        if key.startswith("_") and key not in NOT_ACTED_ON:
            continue  # by convention, a place for anchors
        if key in NOT_ACTED_ON:
            idle.append(key)
        elif key in RETIRED:
            layer.remark(entry.line, f"{key}: {RETIRED[key]}")
        elif key in SECTIONS:
            if not isinstance(entry.value, dict | None):
                layer.problem(entry.line, f"{key}: expected keys with values, not {short(entry.value)}")
        else:
            unknown.append((key, entry.line))
    _unknown_keys(layer, unknown)
    if idle:
        alone = "; the agent gets only your prompt" if PROMPT_PARTS & {*idle} else ""
        layer.remarks.append((0, f"{layer.shown}: known, but not acted on yet: {', '.join(idle)}{alone}"))
