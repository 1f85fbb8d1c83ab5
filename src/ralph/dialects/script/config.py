"""Turns `config`, a bash file, into settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ralph.config.filelayer import FileLayer
from ralph.dialects.script.probe import Place, assigned, probe
from ralph.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ralph.dialects.detect import Found

_PROMPT = "prompts/build.md"


def layer(found: Found, workdir: Path, environ: Mapping[str, str]) -> FileLayer:
    """Sources `config` in bash to get its values, so it must be approved first."""
    config = found.path
    root = config.parent
    shown = os.path.relpath(config, workdir)
    result = FileLayer(shown, workdir)
    lines = assigned(config)
    try:
        values = probe(Place(root, workdir, config=config), None, lines, environ).values
    except UsageError as error:
        result.problem(1, str(error))
        return result
    _add_agent(result, root, values, lines, environ)
    _add_count(result, "max_iterations", "DEFAULT_MAX_ITERATIONS", values, lines)
    _add_count(result, "max_failures", "MAX_RETRIES", values, lines)
    if result.values.get("max_failures") == 0:  # no retries there, but no limit here
        result.set("max_failures", 1, result.origins["max_failures"])
    if not (workdir / "PROMPT.md").exists() and (root / _PROMPT).is_file():
        result.set("prompt_file", os.path.relpath(root / _PROMPT, workdir), "the convention's default")
    return result


def executables(found: Found, workdir: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files of the repository that a run would execute.

    Unless AGENT names the script, only `config` knows which one it is, so all of them are listed.
    """
    chosen = environ.get("AGENT")
    scripts = sorted((found.path.parent / "agents").glob("*.sh"))
    named = [script for script in scripts if script.stem == chosen]
    return [path for path in (found.path, *(named or scripts)) if path.is_relative_to(workdir)]


def leads_out(script: Path, root: Path) -> bool:
    """Whether a script is a link out of the folder `root`."""
    return not script.resolve().is_relative_to(root.resolve())


def _add_agent(
    result: FileLayer, root: Path, values: dict[str, str], lines: dict[str, int], environ: Mapping[str, str]
) -> None:
    """Adds the script that AGENT names. The environment overrides the file."""
    name, origin = environ.get("AGENT", ""), "AGENT"
    if not name:
        name, origin = values.get("AGENT", ""), f"{result.shown}:{lines.get('AGENT', 1)}"
    if not name:
        scripts = sorted((root / "agents").glob("*.sh"))
        names = ", ".join(script.stem for script in scripts)
        if len(scripts) > 1:
            result.problem(1, f"AGENT is not set: set it to one of {names}")
            return
        name, origin = scripts[0].stem, "the only script in agents/"
    if "/" in name or name.startswith("."):
        result.problem(
            lines.get("AGENT", 1), f"AGENT: expected the name of a script in agents/, not '{name}' ({origin})"
        )
        return
    script = root / "agents" / f"{name}.sh"
    if leads_out(script, root):
        result.problem(lines.get("AGENT", 1), f"AGENT: agents/{name}.sh ({origin}) is a link out of the project")
        return
    result.set("agent_script", os.path.relpath(script, result.base), origin)


def _add_count(result: FileLayer, setting: str, variable: str, values: dict[str, str], lines: dict[str, int]) -> None:
    text = values.get(variable, "").strip()
    line = lines.get(variable, 1)
    if not text:
        return
    if not (text.isascii() and text.isdigit()):
        result.problem(line, f"{variable}: expected a whole number, not '{text}'")
        return
    result.set(setting, int(text), f"{result.shown}:{line}")
