"""Merges the layers of settings: flags, then environment, project file, user file and defaults.

All mistakes in all layers are reported at once.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config import agentlist, guards, yamlfile
from ralph.config.convert import convert, short, split
from ralph.config.filelayer import FileLayer, read_layer
from ralph.config.settings import BY_NAME, HOSTED, OPTIONS, VARIABLES, Option, Settings, default
from ralph.errors import UsageError, did_you_mean, nearest
from ralph.system.files import refuse_outside
from ralph.system.folders import user_config_dir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Resolved(msgspec.Struct, frozen=True):
    """The effective settings, and where each value came from."""

    settings: Settings
    #: for each setting, where its value came from: `--flag`, `RALPH_X`, `ralph.yml:3`, `default`
    origins: dict[str, str]
    #: for each setting from a file, the directory of that file: relative paths start there
    bases: dict[str, Path]
    files: list[Path]
    warnings: list[str]
    #: settings that an agent may ignore: if it cannot follow one, that is a warning and not an error
    hints: frozenset[str] = frozenset()
    #: which convention's files were read instead of a ralph.yml, and why
    follows: str = ""
    #: the environment of everything that ralph starts: the user's, without the withheld variables
    environ: dict[str, str] = {}
    #: the withheld variables, whose values must still be masked
    withheld: dict[str, str] = {}
    #: the project's values that are looser than the user's; used only if the user approved them
    loosened: tuple[guards.Loosened, ...] = ()
    #: the project's part of each list that also has entries of the user
    projects_part: dict[str, tuple[str, ...]] = {}

    def is_default(self, name: str) -> bool:
        return self.origins[name] == "default"

    def warn(self, *more: str) -> Resolved:
        """A copy with more warnings."""
        return msgspec.structs.replace(self, warnings=[*self.warnings, *more]) if more else self


class _Layer(msgspec.Struct):
    values: dict[str, Any]
    origins: dict[str, str]
    base: Path | None = None
    hints: frozenset[str] = frozenset()
    #: it is a file of the user
    own: bool = False
    #: values of the user's own file of the same convention, with their origins
    users: dict[str, tuple[Any, str]] = {}

    def is_projects(self, name: str) -> bool:
        """Whether the project set it, and not the user: in a file of their own, by a flag or in the environment."""
        if name not in self.values or self.base is None or self.own:
            return False
        origin = self.origins[name]
        return not (re.fullmatch(r"[A-Z][A-Z0-9_]*", origin) or origin == self.users.get(name, (None, ""))[1])


class _Findings(msgspec.Struct):
    """The problems and warnings so far."""

    problems: list[str]
    warnings: list[str]

    def raise_if_wrong(self) -> None:
        if not self.problems:
            return
        lines = self.problems if len(self.problems) == 1 else ["", *(f"  {p}" for p in self.problems)]
        head = "" if len(self.problems) == 1 else f"{len(self.problems)} settings are wrong:"
        notes = [f"warning: {w}" for w in self.warnings]
        raise UsageError(head + "\n".join([*lines, *notes]))


def resolve(
    workdir: Path,
    flags: Mapping[str, Any],
    config_file: Path | None = None,
    *,
    environ: Mapping[str, str],
    dialect: FileLayer | None = None,
    may_loosen: frozenset[str] = frozenset(),
) -> Resolved:
    """All settings for a run in `workdir`. Raises one UsageError that lists everything that is wrong.

    `dialect` has the settings from another convention's files, which take the place of ralph.yml. Guards are the
    stricter of the project's and the user's, except those that the user lets the project loosen.
    """
    findings = _Findings([], [])
    files: list[Path] = []
    environ = dict(environ)
    layers = [
        _from_flags(flags, findings),
        _from_environment(environ, findings),
    ]
    if dialect is not None:
        layers.append(_from_layer(dialect, findings))
    project = config_file or (yamlfile.find_upward(workdir) if dialect is None else None)
    above = yamlfile.above_repository(workdir) if project is None and dialect is None else None
    if above is not None:
        text = f"{above} is not used, because it is not in the repository {workdir}; to use it: -c {above}"
        findings.warnings.append(text)
    user = user_config_dir(environ) / "ralph.yml"
    for path in (project, user if os.path.lexists(user) and user != project else None):
        if path is not None:
            layer = _from_file(path, _shown(path, workdir), findings, typed=path == config_file, own=path == user)
            if layer is not None:
                layers.append(layer)
                files.append(path)
    findings.raise_if_wrong()
    return _merge(layers, files, findings, environ, may_loosen)


def users_own(environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings in the user's own file. Mistakes in it are left to `resolve`."""
    path = user_config_dir(environ) / "ralph.yml"
    layer = _from_file(path, "", _Findings([], []), typed=False, own=True) if os.path.lexists(path) else None
    return layer.values if layer else {}


def _merge(
    layers: list[_Layer],
    files: list[Path],
    findings: _Findings,
    environ: dict[str, str],
    may_loosen: frozenset[str],
) -> Resolved:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    bases: dict[str, Path] = {}
    hints: set[str] = set()
    for index, each in enumerate(layers):
        conflict = agentlist.set_agent(each.values, each.origins)
        if conflict is not None:
            (findings.warnings if index else findings.problems).append(conflict)
    for option in OPTIONS:
        name = option.name
        layer = next((layer for layer in layers if name in layer.values), None)
        if layer is None:
            values[name], origins[name] = default(name), "default"
        else:
            values[name], origins[name] = layer.values[name], layer.origins[name]
            if layer.base is not None:
                bases[name] = layer.base
            if name in layer.hints:
                hints.add(name)
    combined = _combine_guards(layers, values, origins, bases, findings, may_loosen)
    _one_kind(layers, values, origins, findings)
    if all(values[name] is None for name in HOSTED):
        _one_agent(layers, values, origins, findings)
    by_flag = origins["on_limit"].startswith("-")
    no_list = agentlist.check_fallbacks(values, origins)
    if no_list is not None:
        (findings.problems if by_flag else findings.warnings).append(no_list)
    _one_prompt(layers, values, origins, findings)
    _unused(values, origins, findings)
    findings.raise_if_wrong()
    return Resolved(
        Settings(**values),
        origins,
        bases,
        files,
        findings.warnings,
        frozenset(hints),
        environ=environ,
        loosened=combined.loosened,
        projects_part=combined.projects_part,
    )


class _Combined(msgspec.Struct, frozen=True):
    loosened: tuple[guards.Loosened, ...]
    projects_part: dict[str, tuple[str, ...]]


def _combine_guards(
    layers: list[_Layer],
    values: dict[str, Any],
    origins: dict[str, str],
    bases: dict[str, Path],
    findings: _Findings,
    may_loosen: frozenset[str],
) -> _Combined:
    """Replaces each guard that the project decides by the stricter of its value and the user's."""
    loosened: list[guards.Loosened] = []
    projects_part: dict[str, tuple[str, ...]] = {}
    for name, guard in guards.GUARDS.items():
        layer = next((layer for layer in layers if name in layer.values), None)
        if layer is None or layer.base is None or not layer.is_projects(name):
            continue
        project = layer.values[name]
        user, origin, base = _users(name, layers, project)
        if user is None:
            continue
        try:
            combined = guards.stricter(name, project, user)
        except ValueError as error:
            findings.problems.append(f"{layer.origins[name]}: {name}: {error}")
            continue
        if combined == project or (name in may_loosen and guard is not guards.Guard.ALL):
            continue
        values[name] = combined
        if combined == user:
            origins[name], bases[name] = origin, base or layer.base
        else:
            origins[name] = f"{origin}, {layer.origins[name]}"
        if guard is guards.Guard.ALL:
            projects_part[name] = project
            continue
        value, instead = (guards.shown(name, each) for each in (project, combined))
        loosened.append(guards.Loosened(name, value, layer.origins[name], layer.base, instead, origin))
        findings.warnings.append(loosened[-1].warning)
    return _Combined(tuple(loosened), projects_part)


def _users(name: str, layers: list[_Layer], project: Any) -> tuple[Any, str, Path | None]:
    """The user's own value of a guard, or the default that protects the user (None: nothing), its origin and base."""
    for layer in layers:
        if name in layer.users:
            return *layer.users[name], None
        if layer.own and name in layer.values:
            return layer.values[name], layer.origins[name], layer.base
    return guards.users_part(name, project), "default", None


def _one_kind(layers: list[_Layer], values: dict[str, Any], origins: dict[str, str], findings: _Findings) -> None:
    """The strongest layer that names an agent decides its kind: a known one or a command, or another convention's."""
    kinds = [("agent", "agent_cmd"), *((name,) for name in HOSTED)]
    for index, layer in enumerate(layers):
        unset = (None,) if index == 0 else (None, "auto")
        given = [kind for kind in kinds if any(layer.values.get(name) not in unset for name in kind)]
        if not given:
            continue
        if len(given) > 1:
            names = [layer.origins[name] for kind in given for name in kind if name in layer.values]
            if index == 0:
                findings.problems.append(f"{' and '.join(names)} cannot be used together: give only one of them")
            else:
                findings.warnings.append(f"{', '.join(names[:-1])}: not used, because {names[-1]} takes precedence")
        for name in (name for kind in kinds if kind is not given[-1] for name in kind):
            values[name], origins[name] = default(name), "default"
        return


def _one_agent(layers: list[_Layer], values: dict[str, Any], origins: dict[str, str], findings: _Findings) -> None:
    """`agent` and `agent_cmd` exclude each other: the strongest layer that has one of them decides."""
    for index, layer in enumerate(layers):
        agent, command = layer.values.get("agent"), layer.values.get("agent_cmd")
        if agent is None and command is None:
            continue
        if command is not None and agent in (None, "auto", "custom"):
            values["agent"], origins["agent"] = "custom", layer.origins["agent_cmd"]
        elif command is not None and index == 0:
            findings.problems.append("--agent and --agent-cmd cannot be used together: give only one of them")
        elif agent == "custom" and values["command"] is None:
            pass  # its command may be in a weaker layer
        else:
            if command is not None:
                findings.warnings.append(_not_used(layer, "agent_cmd", "agent"))
            values["agent_cmd"], origins["agent_cmd"] = None, "default"
        return


def _one_prompt(layers: list[_Layer], values: dict[str, Any], origins: dict[str, str], findings: _Findings) -> None:
    """`prompt` and `prompt_file` exclude each other as well."""
    for index, layer in enumerate(layers):
        given = [n for n in ("prompt", "prompt_file") if n in layer.values]
        if not given:
            continue
        if len(given) > 1:
            if index == 0:
                findings.problems.append("--prompt and --prompt-file cannot be used together: give only one of them")
            else:
                findings.warnings.append(_not_used(layer, "prompt_file", "prompt"))
        other = "prompt_file" if given[0] == "prompt" else "prompt"
        values[other], origins[other] = default(other), "default"
        return


def _not_used(layer: _Layer, loser: str, winner: str) -> str:
    return f"{layer.origins[loser]}: {loser} is not used, because {winner} ({layer.origins[winner]}) takes precedence"


def _unused(values: dict[str, Any], origins: dict[str, str], findings: _Findings) -> None:
    """Warns about settings for custom agents that have no effect on the chosen agent."""
    if values["agent"] == "custom" and values["agent_cmd"] is None:
        return
    named = values["agent"] not in ("auto", "custom")
    names = ("args", "prompt_mode", "prompt_flag") if named else ("command", "args", "prompt_mode", "prompt_flag")
    idle = [f"{name} ({origins[name]})" for name in names if origins[name] != "default"]
    if idle:
        chosen = "--agent-cmd" if values["agent_cmd"] is not None else f"agent: {values['agent']}"
        findings.warnings.append(f"not used with {chosen}: {', '.join(idle)}; only agent: custom uses it")


def _from_flags(flags: Mapping[str, Any], findings: _Findings) -> _Layer:
    layer = _Layer({}, {})
    for name, value in flags.items():
        option = BY_NAME[name]
        flag = option.flags[-1] if option.flags else option.name.upper()
        _put(layer, option, value, flag, findings)
    return layer


def _from_environment(environ: Mapping[str, str], findings: _Findings) -> _Layer:
    layer = _Layer({}, {})
    for option in OPTIONS:
        if option.name == "adapters":
            continue
        variable = next((v for v in option.all_env if environ.get(v, "") != ""), None)
        if variable is not None:
            _put(layer, option, environ[variable], variable, findings)
    _unknown_variables(environ, findings)
    return layer


def _unknown_variables(environ: Mapping[str, str], findings: _Findings) -> None:
    """A warning for each variable that looks like a setting but is none; an error if it misspells a guard."""
    known = {name: option.name for option in OPTIONS if option.name != "adapters" for name in option.all_env}
    for name in sorted(environ):
        if not name.startswith("RALPH_") or name in known or name in VARIABLES or not environ[name]:
            continue
        ours = {known_name.removeprefix("RALPH_"): setting for known_name, setting in known.items()}
        guard = guards.near_miss(name.removeprefix("RALPH_"), ours)
        if guard is not None:
            findings.problems.append(f"unknown variable {name}{did_you_mean(f'RALPH_{guard}')}: correct or remove it")
        else:
            findings.warnings.append(f"unknown variable {name}{nearest(name, known)}; it is ignored")


def _put(layer: _Layer, option: Option, value: Any, where: str, findings: _Findings) -> None:
    try:
        layer.values[option.name] = convert(option.name, split(option, value), strict=False)
        layer.origins[option.name] = where
    except ValueError as error:
        findings.problems.append(f"{where}: {error}, not {short(value)}")


def _from_file(path: Path, shown: str, findings: _Findings, *, typed: bool, own: bool) -> _Layer | None:
    try:
        if not typed and not own:
            refuse_outside(path, shown, path.parent, f"To use that file anyway: -c {path.name}")
        layer = read_layer(yamlfile.load(path, shown, named=typed), shown)
    except UsageError as error:
        findings.problems.append(str(error))
        return None
    return _from_layer(layer, findings, own=own)


def _from_layer(layer: FileLayer, findings: _Findings, *, own: bool = False) -> _Layer:
    findings.problems += [text for _, text in layer.problems]
    findings.warnings += [text for _, text in layer.remarks]
    return _Layer(layer.values, layer.origins, layer.base, layer.hints, own, layer.users)


def _shown(path: Path, workdir: Path) -> str:
    """Relative to the working directory if it is in there."""
    try:
        return str(path.relative_to(workdir))
    except ValueError:
        return str(path)
