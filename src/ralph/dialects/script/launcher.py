"""Runs an agent script: starts its iterations, and reads the response and the status that each one leaves."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.agents import adapters as transcripts
from ralph.agents import registry
from ralph.agents.spec import Delivery, Invocation
from ralph.dialects.script.config import leads_out
from ralph.dialects.script.probe import HERE, REQUIRED, Place, assigned, bash, probe
from ralph.dialects.script.response import IgnoringAdapter, RawAdapter, ResponseReader
from ralph.dialects.script.status import Status, context_notice, hook_notices
from ralph.errors import UsageError, nearest
from ralph.judging.signals import Markers
from ralph.launching.known import without_flags
from ralph.launching.launch import Launch
from ralph.launching.launcher import CommandLine, Launcher
from ralph.runners.process import Ended, EndKind
from ralph.system import files
from ralph.system.programs import which
from ralph.transcripts import meta
from ralph.transcripts.events import Tag, Text

if TYPE_CHECKING:
    from ralph.agents.spec import AgentSpec
    from ralph.config.layers import Resolved
    from ralph.dialects.script.probe import ProbeResult
    from ralph.judging.observe import Observation
    from ralph.transcripts.base import TranscriptAdapter
    from ralph.transcripts.events import TranscriptEvent
    from ralph.trust.approval import Trust

#: The variables that are replaced in a prompt, besides those that `config` sets.
_IN_PROMPTS = ("MODE", "SPECS_DIR", "RALPH_HOME", "RALPH_DIR", "AGENT")
_MODES = ("plan", "build", "prompt")
_LOG = "\x01"
_MAX_RESPONSE = 64 << 20


class View(msgspec.Struct, frozen=True):
    """How the raw output is shown: with one of ralph's adapters, or with the script's own filter (None)."""

    transcript: str | None
    why: str
    #: whether the transcript is a guess, which may turn out to be wrong
    guessed: bool = False


class ScriptLauncher(Launcher):
    def __init__(self, place: Place, script: Path, probed: ProbeResult, markers: Markers, view: View) -> None:
        self._place = place
        self._script = script
        self._markers = markers
        self._view = view
        self._shown = os.path.relpath(script, place.workdir)
        known = {"MODE": place.mode, "RALPH_HOME": place.home, "RALPH_DIR": str(place.root), "AGENT": script.stem}
        self._variables = probed.values | known
        names = "|".join(sorted(self._variables, key=len, reverse=True))
        self._pattern = re.compile(rf"\$(?:\{{({names})\}}|({names})(?![A-Za-z0-9_]))")
        self._reader = ResponseReader(markers)
        self.writes = (place.root / "last_agent_output",)
        self._adapter: TranscriptAdapter = IgnoringAdapter()
        runs = " ".join(probed.values.get(name, "") for name in ("AGENT_CLI", "AGENT_ARGS")).strip()
        self.delivery = f"as a file, to agent_invoke in {self._shown}, which runs {runs}"

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        place, folder = self._place, prompt_file.parent
        files = [str(folder), str(prompt_file), str(place.config or ""), str(self._script), self._script.stem]
        view = "filter" if self._view.transcript is None else "raw"
        log = folder.parent.parent / "session.log"
        argv = [bash(), str(HERE / "host.sh"), *files, view, str(place.root), place.home, place.mode, str(log)]
        return CommandLine(argv, None, aside=True)

    def render(self, prompt: str) -> str:
        """Replaces known variables, like `envsubst`. Any other `$WORD` stays as it is."""
        return self._pattern.sub(lambda found: self._variables[found.group(1) or found.group(2)], prompt)

    def adapter(self, prompt: str) -> TranscriptAdapter:
        name = self._view.transcript
        self._adapter = IgnoringAdapter() if name is None else RawAdapter(transcripts.create(name, prompt=prompt))
        return self._adapter

    def reader(self) -> ResponseReader:
        self._reader = ResponseReader(self._markers)
        return self._reader

    def aside(self, line: str) -> list[TranscriptEvent]:
        if line.startswith(_LOG):
            return [Text(Tag.SYS, line[1:])]
        return [Text(Tag.AI, line)]

    def finish(self, folder: Path, ended: Ended, seen: Observation) -> list[TranscriptEvent]:
        status = Status.read(folder / "script.status")
        events: list[TranscriptEvent] = [*hook_notices(status, self._shown), *context_notice(status)]
        if status.extracted:
            response = _response(folder / "response.md")
            self._reader.respond(response)
            if response.strip() and not seen.spoke:
                events.append(Text(Tag.AI, response.rstrip("\n")))  # it has not been shown yet
            worked = ended.kind is EndKind.EXITED and ended.status == 0
            if worked and not response.strip() and seen.error is None and (seen.result or {}).get("ok") is not False:
                events.append(meta.error(self._why_empty(folder), meta.ErrorClass.EMPTY))
            if worked:
                events += self._check_guess(folder)
        return events

    def _why_empty(self, folder: Path) -> str:
        size = (folder / "stdout.raw").stat().st_size
        if not size:
            return "the agent printed nothing"
        unit = "byte" if size == 1 else "bytes"
        return f"agent_extract_response found no response in the agent's output ({size:,} {unit})"

    def _check_guess(self, folder: Path) -> list[TranscriptEvent]:
        """Switches to the script's own filter if the output is not in the format that we guessed."""
        wrong = self._view.guessed and not self._adapter.structured and (folder / "stdout.raw").stat().st_size > 0
        if not wrong:
            return []
        text = (
            f"this is not a transcript of {self._view.transcript}: from now on, agent_format_display shows the output"
        )
        self._view = View(None, "the script's own display filter")
        return [meta.notice(text)]


def launch(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:  # noqa: ARG001
    """Probes the script first, so that no iteration starts with one that cannot work."""
    script = _locate(resolved, workdir)
    root = script.parent.parent if script.parent.name == "agents" else script.parent
    config = root / "config" if (root / "config").is_file() else None
    place = Place(root, workdir, _mode(resolved), config)
    names = {*_IN_PROMPTS, "AGENT_CLI", "AGENT_ARGS", *(assigned(config) if config else ())}
    probed = probe(place, script, sorted(names), resolved.environ)
    shown = os.path.relpath(script, workdir)
    spec = _known_agent(probed.values.get("AGENT_CLI", ""), script.stem)
    _check(probed, shown, spec)
    resolved = _without_pty(without_flags(resolved, "an agent script")).warn(*_jq_warnings(script, shown))
    view = _view(resolved, spec, script, shown)
    environment = dict(resolved.environ)
    for variable in spec.unset_env if spec else ():
        environment.pop(variable, None)
    launcher = ScriptLauncher(place, script, probed, Markers.configured(resolved.settings.completion_promise), view)
    return Launch(
        resolved,
        workdir,
        script.stem,
        f"agent script {shown}",
        None,
        [bash(), str(HERE / "host.sh"), str(script)],
        Invocation(prompt=Delivery.FILE),
        environment,
        view.transcript or "plain",
        view.why,
        launcher=launcher,
        dialect=f"script ({resolved.origins['agent_script']})",
    )


def _locate(resolved: Resolved, workdir: Path) -> Path:
    """Finds a script by its name in agents/, or by a path relative to the file that sets it or to the directory."""
    wanted, origin = resolved.settings.agent_script or "", resolved.origins["agent_script"]
    base = resolved.bases.get("agent_script")
    places = [base] if base is not None else [Path.cwd(), workdir]
    written = Path(wanted).expanduser()
    tried = [place / written for place in places]
    by_name = "/" not in wanted and not wanted.endswith(".sh")
    if by_name:
        tried += [place / folder / f"{wanted}.sh" for place in places for folder in ("agents", ".ralph/agents")]
    found = next((path for path in tried if path.is_file()), None)
    if found is None:
        others = sorted(path.stem for path in (tried[-1].parent).glob("*.sh"))
        hint = f"{nearest(written.stem, others)}; available scripts: {', '.join(others)}" if others else ""
        raise UsageError(f"there is no agent script {os.path.relpath(tried[0], workdir)} ({origin}){hint}")
    if by_name and leads_out(found, found.parent):
        raise UsageError(f"the agent script {wanted} ({origin}) is a link out of its folder: use its path instead")
    return Path(os.path.abspath(found))  # noqa: PTH100 - must not resolve links


def _mode(resolved: Resolved) -> str:
    """The value of MODE: from the environment, or else from the name of the prompt file, or else `build`."""
    mode = resolved.environ.get("MODE", "")
    if mode in _MODES:
        return mode
    stem = Path(resolved.settings.prompt_file or "").stem
    return stem if stem in _MODES else "build"


def _known_agent(cli: str, name: str) -> AgentSpec | None:
    """The agent that a script runs, if ralph knows it by its program or by the script's name."""
    specs = registry.all_specs()
    program = Path(cli).name
    by_program = (s for s in specs if program in s.commands)
    return next(by_program, None) or next((s for s in specs if name in (s.name, *s.aliases)), None)


def _check(probed: ProbeResult, shown: str, spec: AgentSpec | None) -> None:
    missing = [name for name in REQUIRED if name not in probed.functions]
    if missing:
        raise UsageError(f"{shown} does not define {', '.join(missing)}: an agent script needs {', '.join(REQUIRED)}")
    cli = probed.values.get("AGENT_CLI", "")
    if not cli:
        raise UsageError(f"{shown} does not set AGENT_CLI, the program of its agent")
    if not probed.installed:
        how = f"\n  To install it: {spec.install or spec.link}" if spec else ""
        raise UsageError(f"{shown} needs '{cli}' (its AGENT_CLI), which is not in PATH{how}")


def _jq_warnings(script: Path, shown: str) -> list[str]:
    """Most scripts read JSON with jq and hide its errors, so that without jq they find no response."""
    uses = re.search(r"^[^#\n]*\bjq\b", files.read_text(script), re.MULTILINE)
    if uses and which("jq") is None:
        return [f"{shown} uses jq, which is not in PATH: it may not find the agent's response"]
    return []


def _without_pty(resolved: Resolved) -> Resolved:
    if not resolved.settings.pty:
        return resolved
    origin = resolved.origins["pty"]
    text = "an agent script always runs on pipes, because its filter reads them"
    if origin.startswith("-"):
        raise UsageError(f"{origin} has no effect: {text}; remove the flag")
    settings = msgspec.structs.replace(resolved.settings, pty=False)
    return msgspec.structs.replace(resolved, settings=settings).warn(f"pty ({origin}) is not used: {text}")


def _view(resolved: Resolved, spec: AgentSpec | None, script: Path, shown: str) -> View:
    wanted = resolved.settings.transcript
    if wanted != transcripts.AUTO:
        return View(transcripts.canonical(wanted), "requested")
    name = next((i.transcript for i in spec.invocation if i.transcript != "plain"), "plain") if spec else "plain"
    # All structured formats need a flag of the agent's CLI that contains this word.
    if spec is not None and name != "plain" and "json" in files.read_text(script):
        return View(name, f"the format of {spec.title}, which {shown} runs", guessed=True)
    return View(None, f"shown by agent_format_display in {shown}")


def _response(path: Path) -> str:
    """What the script's own function extracted. The agent may have replaced the file."""
    try:
        return files.read_text(path, limit=_MAX_RESPONSE)
    except OSError:
        return ""
