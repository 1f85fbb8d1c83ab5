"""Flags over environment over project file over user file over defaults; all mistakes at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config import yamlfile
from ralph.config.durations import parse_duration
from ralph.config.settings import (
    BY_NAME,
    FIELDS,
    NOT_ACTED_ON,
    OPTIONS,
    SECTIONS,
    Option,
    Settings,
    default,
    is_duration,
    is_list,
)
from ralph.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping


class Resolved(msgspec.Struct, frozen=True):
    settings: Settings
    #: for each setting, where its value came from: `--flag`, `RALPH_X`, `ralph.yml:3`, `default`
    origins: dict[str, str]
    #: the folder of the file a value came from, for paths in it
    bases: dict[str, Path]
    files: list[Path]
    warnings: list[str]

    def is_default(self, name: str) -> bool:
        return self.origins[name] == "default"


class _Layer(msgspec.Struct):
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    base: Path | None = None


def user_config_dir() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "ralph"


def resolve(
    workdir: Path,
    flags: Mapping[str, Any],
    config_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Resolved:
    """All settings for a run in `workdir`. Raises one UsageError that lists everything that is wrong."""
    problems: list[str] = []
    warnings: list[str] = []
    files: list[Path] = []
    layers = [
        _from_flags(flags, problems),
        _from_environment(os.environ if environ is None else environ, problems),
    ]
    project = config_file or yamlfile.find_upward(workdir)
    user = user_config_dir() / "ralph.yml"
    for path in (project, user):
        if path is None or (path is user and not user.is_file()):
            continue
        try:
            layers.append(_from_file(yamlfile.load(path), workdir, problems, warnings))
            files.append(path)
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems))
    return _merge(layers, files, warnings)


def _merge(layers: list[_Layer], files: list[Path], warnings: list[str]) -> Resolved:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    bases: dict[str, Path] = {}
    for option in OPTIONS:
        name = option.name
        layer = next((layer for layer in layers if name in layer.values), None)
        if layer is None:
            values[name], origins[name] = default(name), "default"
        else:
            values[name], origins[name] = layer.values[name], layer.origins[name]
            if layer.base is not None:
                bases[name] = layer.base
    _one_agent(layers, values, origins, warnings)
    _one_of(layers, values, origins, "prompt", "prompt_file")
    return Resolved(Settings(**values), origins, bases, files, warnings)


def _one_agent(layers: list[_Layer], values: dict[str, Any], origins: dict[str, str], warnings: list[str]) -> None:
    """`agent` and `agent_cmd` are two answers to one question: the stronger layer's counts."""
    for index, layer in enumerate(layers):
        both = "agent" in layer.values and "agent_cmd" in layer.values
        if both and index == 0:
            raise UsageError("--agent and --agent-cmd are two answers to one question: give one of them")
        if both:
            warnings.append(f"{layer.origins['agent']} is used; {layer.origins['agent_cmd']} is not")
        if "agent" in layer.values:
            values["agent_cmd"], origins["agent_cmd"] = None, "default"
            return
        if "agent_cmd" in layer.values:
            values["agent"], origins["agent"] = "custom", layer.origins["agent_cmd"]
            return


def _one_of(layers: list[_Layer], values: dict[str, Any], origins: dict[str, str], *names: str) -> None:
    """Of settings that exclude each other, those of the strongest layer stay; two in the flags are a mistake."""
    for index, layer in enumerate(layers):
        given = [n for n in names if n in layer.values]
        if len(given) > 1 and index == 0:
            flags = " and ".join(BY_NAME[n].flags[-1] for n in given)
            raise UsageError(f"{flags} cannot be given together")
        if given:
            for name in names:
                if name != given[0]:
                    values[name], origins[name] = default(name), "default"
            return


def _from_flags(flags: Mapping[str, Any], problems: list[str]) -> _Layer:
    layer = _Layer({}, {})
    for name, value in flags.items():
        option = BY_NAME[name]
        flag = option.flags[-1] if option.flags else option.name.upper()
        _put(layer, option, _split(option, value), flag, flag, problems, strict=False)
    return layer


def _from_environment(environ: Mapping[str, str], problems: list[str]) -> _Layer:
    layer = _Layer({}, {})
    for option in OPTIONS:
        if option.name == "adapters":
            continue
        for variable in option.all_env:
            if environ.get(variable, "") != "":
                value = _split(option, environ[variable])
                _put(layer, option, value, variable, variable, problems, strict=False)
                break
    return layer


def _from_file(file: yamlfile.YamlFile, workdir: Path, problems: list[str], warnings: list[str]) -> _Layer:
    layer = _Layer({}, {}, file.path.parent)
    shown = _shown(file.path, workdir)
    by_key = {key: option for option in OPTIONS for key in option.all_keys}
    for option in OPTIONS:
        for key in option.all_keys:  # the flat one comes first, and wins
            entry = file.entries.get(key)
            if entry is not None and entry.value is not None:
                where = f"{shown}:{entry.line}"
                _put(layer, option, entry.value, where, f"{where}: {key}", problems, strict=True)
                break
    idle: list[str] = []
    for key, entry in file.entries.items():
        section = key.partition(".")[0]
        if key in by_key or section in by_key:
            continue
        if key in NOT_ACTED_ON or section in NOT_ACTED_ON:
            if "." not in key or section not in NOT_ACTED_ON:
                idle.append(key)
        elif key in SECTIONS:
            if not isinstance(entry.value, dict | None):
                problems.append(f"{shown}:{entry.line}: {key}: expected keys with values below it")
        else:
            hint = nearest(key, [*by_key, *NOT_ACTED_ON, *SECTIONS])
            warnings.append(f"{shown}:{entry.line}: unknown key '{key}'{hint}; it is ignored")
    if idle:
        warnings.append(f"{shown}: known, but not acted on yet: {', '.join(idle)}")
    return layer


def _put(
    layer: _Layer, option: Option, value: Any, origin: str, where: str, problems: list[str], *, strict: bool
) -> None:
    try:
        layer.values[option.name] = convert(option.name, value, strict=strict)
        layer.origins[option.name] = origin
    except ValueError as error:
        problems.append(f"{where}: {error}, not {_short(value)}")


def convert(name: str, value: Any, *, strict: bool) -> Any:
    """A value of the setting's type; ValueError says what was expected."""
    if is_duration(name):
        return parse_duration(value)
    try:
        return msgspec.convert(value, FIELDS[name].type, strict=strict)
    except msgspec.ValidationError as error:
        text = str(error)
        for kind in ("PromptMode", "Ui"):
            if text.startswith("Invalid enum value") and kind in str(FIELDS[name].type):
                choices = ", ".join(m.value for m in FIELDS[name].type)
                raise ValueError(f"expected one of {choices}") from None
        what, _, path = text.partition(" - at `$")
        what = what[0].lower() + what[1:]
        raise ValueError(what.partition(", got")[0] + (f" (at {path.rstrip('`')})" if path else "")) from None


def _split(option: Option, value: Any) -> Any:
    """Flags and variables carry lists as text; paths may be separated by commas."""
    if not is_list(option.name):
        return value
    items = [value] if isinstance(value, str) else list(value)
    if option.name in ("allowed_paths", "agent_priority"):
        return [part.strip() for item in items for part in item.split(",") if part.strip()]
    return items


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _shown(path: Path, workdir: Path) -> str:
    """Relative where that is shorter to read."""
    try:
        return str(path.relative_to(workdir))
    except ValueError:
        return str(path)
