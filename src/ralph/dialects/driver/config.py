"""`.ralphrc`, the prompt and the plan of the driver convention as settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.config.convert import short
from ralph.config.filelayer import FileLayer
from ralph.config.settings import Signals
from ralph.dialects.driver import fix_plan, keys, ralphrc
from ralph.errors import UsageError, nearest
from ralph.system import files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ralph.dialects.detect import Found

#: The first that is there is read; projects that were set up by hand have the second.
PLACES = (".ralph/.ralphrc", ".ralphrc")
PROMPT = ".ralph/PROMPT.md"
#: Origin of what no file says.
BY_DEFAULT = "the driver convention's default"
DEFAULT_DRIVER = "claude-code"


def layer(found: Found, workdir: Path, environ: Mapping[str, str]) -> FileLayer:  # noqa: ARG001
    """All that its files say, whichever of them was found: they belong together."""
    shown, file = read(workdir, environ)
    result = FileLayer(shown, workdir, hints=frozenset({"allowed_tools"}))
    for line, text in file.problems:
        result.problem(line, text)
    for line, text in file.remarks:
        result.remark(line, text)
    said = _said(shown, file, environ)
    _settings(result, said)
    _files(result, workdir)
    _others(result, file)
    for name, value in (
        ("driver", DEFAULT_DRIVER),
        ("wall_timeout", keys.Defaults().wall_timeout),
        ("continue_session", keys.Defaults().continue_session),
        ("signals", Signals.STATUS),
    ):
        if name not in result.values:
            result.values[name], result.origins[name] = value, BY_DEFAULT
    result.remarks.sort()
    return result


def read(workdir: Path, environ: Mapping[str, str]) -> tuple[str, ralphrc.RcFile]:
    """The file that holds here, and its name; an empty one if there is none."""
    shown = next((place for place in PLACES if (workdir / place).is_file()), None)
    if shown is None:
        return PLACES[-1], ralphrc.RcFile()
    files.refuse_outside(workdir / shown, shown, workdir, "Put the file itself there.")
    try:
        text = files.read_text(workdir / shown, "surrogateescape")
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}") from None
    return shown, ralphrc.read(text, environ)


class _Word:
    """What was said for a key: in the environment or, weaker, in a line of the file."""

    def __init__(self, text: str, origin: str, line: int) -> None:
        self.text, self.origin, self.line = text, origin, line


def _said(shown: str, file: ralphrc.RcFile, environ: Mapping[str, str]) -> dict[str, _Word]:
    said = {key: _Word(a.value, f"{shown}:{a.line}", a.line) for key, a in file.values.items()}
    for old, key in keys.OLD_NAMES.items():
        if old in said:
            said.setdefault(key, said[old])
        if environ.get(old):
            said[key] = _Word(environ[old], old, 0)
    for key in (*keys.SETTINGS, *keys.HEEDED):
        if environ.get(key):
            said[key] = _Word(environ[key], key, 0)
    return said


def _settings(result: FileLayer, said: dict[str, _Word]) -> None:
    gates_hold = _gates_hold(result, said)
    for key, name in keys.SETTINGS.items():
        word = said.get(key)
        if word is None or not word.text.strip() or (key == "QUALITY_GATES" and not gates_hold):
            continue
        try:
            if key == "PERMISSION_DENIAL_MODE":
                threshold = said.get("CB_PERMISSION_DENIAL_THRESHOLD")
                value = keys.denied_after(word.text.strip(), threshold.text.strip() if threshold else "")
            else:
                value = keys.value_of(key, word.text.strip())
        except ValueError as error:
            _wrong(result, key, word, str(error))
            continue
        if name in result.values:  # the test command and the gates are checks, both of them
            value, origin = result.values[name] + value, f"{result.origins[name]}, {word.origin}"
        else:
            origin = word.origin
        result.values[name], result.origins[name] = value, origin


def _gates_hold(result: FileLayer, said: dict[str, _Word]) -> bool:
    """Gates that only warn would not hold completion back there; here they would, so they are not checks."""
    mode, gates = said.get("QUALITY_GATE_MODE"), said.get("QUALITY_GATES")
    if mode is None or not mode.text.strip() or gates is None or not gates.text.strip():
        return True
    try:
        keys.check_mode(mode.text.strip())
    except ValueError as error:
        _wrong(result, "QUALITY_GATE_MODE", mode, str(error))
        return True
    if mode.text.strip() != "warn":
        return True
    result.remark(
        gates.line,
        f"QUALITY_GATES are not run, as QUALITY_GATE_MODE is warn ({mode.origin}); 'block' makes them checks",
    )
    return False


def _files(result: FileLayer, workdir: Path) -> None:
    """Names of files are seen from `.ralph/`, then from the project."""
    for name, usual in (("prompt_file", PROMPT if (workdir / PROMPT).is_file() else None), ("fix_plan", None)):
        given = result.values.get(name)
        if isinstance(given, str):
            inside = f".ralph/{given}"
            result.values[name] = inside if (workdir / inside).is_file() else given
        elif usual is not None:
            result.values[name], result.origins[name] = usual, BY_DEFAULT
    if "fix_plan" not in result.values:
        plan = fix_plan.find(workdir)
        if plan is not None:
            result.values["fix_plan"], result.origins["fix_plan"] = plan, BY_DEFAULT


def _others(result: FileLayer, file: ralphrc.RcFile) -> None:
    """Keys that are no settings: those known are named together, the others one by one."""
    idle = [key for key in file.values if key in keys.NOT_ACTED_ON]
    for key, assignment in file.values.items():
        if key not in keys.KNOWN:
            result.remark(assignment.line, f"unknown key '{key}'{nearest(key, keys.KNOWN)}; only a driver may read it")
    if idle:
        result.remarks.append((0, f"{result.shown}: known, but not acted on yet: {', '.join(idle)}"))


def _wrong(result: FileLayer, key: str, word: _Word, expected: str) -> None:
    text = f"{key}: {expected}, not {short(word.text)}"
    if word.line:
        result.problem(word.line, text)
    else:
        result.problems.append((0, text))
