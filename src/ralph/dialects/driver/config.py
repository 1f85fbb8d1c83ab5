"""Turns `.ralphrc`, the prompt and the fix plan of the driver convention into settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralph.config import guards
from ralph.config.convert import short
from ralph.config.filelayer import FileLayer
from ralph.config.settings import Signals
from ralph.dialects.driver import fix_plan, keys, ralphrc
from ralph.errors import UsageError, did_you_mean, nearest
from ralph.system import files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ralph.dialects.detect import Found

#: Where the file may be. The first one that exists is read; projects set up by hand have the second one.
PLACES = (".ralph/.ralphrc", ".ralphrc")
PROMPT = ".ralph/PROMPT.md"
#: The origin of a value that no file sets.
BY_DEFAULT = "the driver convention's default"
DEFAULT_DRIVER = "claude-code"
_GATES = ("TEST_COMMAND", "QUALITY_GATES")
#: In bytes; many times what people write.
_MAX_SIZE = 64 << 10


class ConfiguredValue(msgspec.Struct, frozen=True):
    """The text that a key has, from the environment (`line` is 0) or from a line of the file."""

    text: str
    origin: str
    line: int = 0


def layer(found: Found, workdir: Path, environ: Mapping[str, str]) -> FileLayer:  # noqa: ARG001
    """The settings in all files of the convention, whichever of them led to its detection."""
    shown, file = read(workdir, environ)
    result = FileLayer(shown, workdir, hints=frozenset({"allowed_tools"}))
    for line, text in file.problems:
        result.problem(line, text)
    for line, text in file.remarks:
        result.remark(line, text)
    _add_settings(result, _configured(shown, file, environ))
    _add_files(result, workdir)
    _remark_on_other_keys(result, file)
    for name, value in (
        ("driver", DEFAULT_DRIVER),
        ("wall_timeout", keys.Defaults().wall_timeout),
        ("continue_session", keys.Defaults().continue_session),
        ("signals", Signals.STATUS),
    ):
        if name not in result.values:
            result.set(name, value, BY_DEFAULT)
    result.remarks.sort()
    return result


def read(workdir: Path, environ: Mapping[str, str]) -> tuple[str, ralphrc.RcFile]:
    """The project's `.ralphrc` and its name. Without such a file, the result is empty."""
    shown = next((place for place in PLACES if (workdir / place).is_file()), None)
    if shown is None:
        return PLACES[-1], ralphrc.RcFile()
    files.refuse_outside(workdir / shown, shown, workdir, "Put the file itself there.")
    try:
        text = files.read_text(workdir / shown, "surrogateescape", _MAX_SIZE)
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}") from None
    return shown, ralphrc.read(text, environ)


def _configured(shown: str, file: ralphrc.RcFile, environ: Mapping[str, str]) -> dict[str, ConfiguredValue]:
    """The text of every key. The environment overrides the file."""
    configured = {key: ConfiguredValue(a.value, f"{shown}:{a.line}", a.line) for key, a in file.values.items()}
    for alias, key in keys.ALIASES.items():
        if alias in configured:
            configured.setdefault(key, configured[alias])
        if environ.get(alias):
            configured[key] = ConfiguredValue(environ[alias], alias)
    for key in (*keys.SETTINGS, *keys.USED):
        if environ.get(key):
            configured[key] = ConfiguredValue(environ[key], key)
    return configured


def _add_settings(result: FileLayer, configured: dict[str, ConfiguredValue]) -> None:
    gates_enforced = _gates_enforced(result, configured)
    for key, name in keys.SETTINGS.items():
        entry = configured.get(key)
        if entry is None or not entry.text.strip() or (key == "QUALITY_GATES" and not gates_enforced):
            continue
        try:
            if key == "PERMISSION_DENIAL_MODE":
                threshold = configured.get("CB_PERMISSION_DENIAL_THRESHOLD")
                value = keys.denied_after(entry.text.strip(), threshold.text.strip() if threshold else "")
            else:
                value = keys.value_of(key, entry.text.strip())
        except ValueError as error:
            _add_problem(result, key, entry, str(error))
            continue
        if (doubt := keys.doubt(key, entry.text.strip())) is not None:
            _add_remark(result, entry, doubt)
        if name in result.values:  # the test command and the quality gates are both `verify` commands
            result.set(name, result.values[name] + value, f"{result.origins[name]}, {entry.origin}")
        else:
            result.set(name, value, entry.origin)


def _gates_enforced(result: FileLayer, configured: dict[str, ConfiguredValue]) -> bool:
    """Whether the quality gates become `verify` commands. Gates that only warn must not prevent completion."""
    given = {key: entry for key in _GATES if (entry := configured.get(key)) is not None and entry.text.strip()}
    mode = configured.get("QUALITY_GATE_MODE")
    set_to = mode.text.strip() if mode else ""
    if mode is not None and set_to and given:
        try:
            keys.check_mode(set_to)
        except ValueError as error:
            _add_problem(result, "QUALITY_GATE_MODE", mode, str(error))
            return True
    why = f"QUALITY_GATE_MODE is warn ({mode.origin})" if mode and set_to else "QUALITY_GATE_MODE is not set"
    for key, entry in given.items() if set_to in ("", "warn") else ():
        if set_to and key == "QUALITY_GATES":
            _add_remark(result, entry, f"{key} are not run because {why}; set it to block to run them")
        else:
            _add_remark(result, entry, f"{key} must pass before the work counts as complete, although {why}")
    return set_to != "warn"


def _add_files(result: FileLayer, workdir: Path) -> None:
    """Resolves file names relative to `.ralph/`, then to the project; adds the default prompt and fix plan."""
    for name in ("prompt_file", "fix_plan"):
        given = result.values.get(name)
        if isinstance(given, str):
            inside = f".ralph/{given}"
            result.set(name, inside if (workdir / inside).is_file() else given, result.origins[name])
    if "prompt_file" not in result.values and (workdir / PROMPT).is_file():
        result.set("prompt_file", PROMPT, BY_DEFAULT)
    if "fix_plan" not in result.values and (plan := fix_plan.find(workdir)) is not None:
        result.set("fix_plan", plan, BY_DEFAULT)


def _remark_on_other_keys(result: FileLayer, file: ralphrc.RcFile) -> None:
    """Lists the unsupported keys in one remark, and makes one remark for each unknown key."""
    unsupported = [key for key in file.values if keys.not_supported(key)]
    sandbox = file.values.get(f"{keys.SANDBOX}PROVIDER")
    if sandbox is not None and sandbox.value.strip():
        result.remark(sandbox.line, f"{keys.SANDBOX}PROVIDER: there is no sandbox; the agent runs on this machine")
    for key, assignment in file.values.items():
        if key in keys.KNOWN or key in unsupported:
            continue
        if guard := guards.near_miss(key, keys.SETTINGS):
            result.problem(assignment.line, f"unknown key '{key}'{did_you_mean(guard)}: correct or remove it")
        else:
            result.remark(assignment.line, f"unknown key '{key}'{nearest(key, keys.KNOWN)}; only a driver can use it")
    if unsupported:
        result.remarks.append((0, f"{result.shown}: not supported yet, ignored: {', '.join(unsupported)}"))


def _add_remark(result: FileLayer, entry: ConfiguredValue, text: str) -> None:
    result.remarks.append((entry.line, f"{entry.origin}: {text}"))


def _add_problem(result: FileLayer, key: str, entry: ConfiguredValue, expected: str) -> None:
    text = f"{key}: {expected}, not {short(entry.text)}"
    if entry.line:
        result.problem(entry.line, text)
    else:
        result.problems.append((0, text))
