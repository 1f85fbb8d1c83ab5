"""Running an agent script: what it takes to start an iteration, and what is made of what it leaves."""

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
from ralph.dialects.script.probe import HERE, REQUIRED, Place, assigned, bash, look
from ralph.dialects.script.response import ResponseReader, Unseen
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
    from ralph.dialects.script.probe import Answer
    from ralph.judging.observe import Observation
    from ralph.transcripts.base import TranscriptAdapter
    from ralph.transcripts.events import TranscriptEvent
    from ralph.trust.approval import Trust

#: What a prompt of this convention may name, besides the variables of `config`.
_IN_PROMPTS = ("MODE", "SPECS_DIR", "RALPH_HOME", "RALPH_DIR", "AGENT")
_MODES = ("plan", "build", "prompt")
_LOG = "\x01"


class View(msgspec.Struct, frozen=True):
    """How the raw output is shown: by an adapter of ours, or by the script's own filter (`transcript` is None)."""

    transcript: str | None
    why: str
    #: whether it was our idea: then it can turn out to be wrong
    guessed: bool = False


class ScriptLauncher(Launcher):
    def __init__(self, place: Place, script: Path, answer: Answer, markers: Markers, view: View) -> None:
        self._place = place
        self._script = script
        self._markers = markers
        self._view = view
        self._shown = os.path.relpath(script, place.workdir)
        known = {"MODE": place.mode, "RALPH_HOME": place.home, "RALPH_DIR": str(place.root), "AGENT": script.stem}
        self._variables = answer.values | known
        names = "|".join(sorted(self._variables, key=len, reverse=True))
        self._pattern = re.compile(rf"\$(?:\{{({names})\}}|({names})(?![A-Za-z0-9_]))")
        self._reader = ResponseReader(markers)
        self._adapter: TranscriptAdapter = Unseen()
        runs = " ".join(answer.values.get(name, "") for name in ("AGENT_CLI", "AGENT_ARGS")).strip()
        self.delivery = f"as a file, to agent_invoke in {self._shown}, which runs {runs}"

    def command_line(self, prompt: str, prompt_file: Path, session: str | None, *, resume: bool) -> CommandLine:
        place, folder = self._place, prompt_file.parent
        files = [str(folder), str(prompt_file), str(place.config or ""), str(self._script), self._script.stem]
        view = "filter" if self._view.transcript is None else "raw"
        log = folder.parent.parent / "session.log"
        argv = [bash(), str(HERE / "host.sh"), *files, view, str(place.root), place.home, place.mode, str(log)]
        return CommandLine(argv, None, aside=True)

    def render(self, prompt: str) -> str:
        """Known names only, as `envsubst` would: any other `$WORD` is the author's own."""
        return self._pattern.sub(lambda found: self._variables[found.group(1) or found.group(2)], prompt)

    def adapter(self, prompt: str) -> TranscriptAdapter:
        name = self._view.transcript
        self._adapter = Unseen() if name is None else transcripts.create(name, prompt=prompt)
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
            response = (folder / "response.md").read_text("utf-8", "replace")
            self._reader.respond(response)
            if response.strip() and not seen.spoke:
                events.append(Text(Tag.AI, response.rstrip("\n")))  # nothing else has shown it
            worked = ended.kind is EndKind.EXITED and ended.status == 0
            if worked and not response.strip() and seen.error is None and (seen.result or {}).get("ok") is not False:
                events.append(meta.error(self._silence(folder), meta.ErrorClass.EMPTY))
            if worked:
                events += self._look_again(folder)
        return events

    def _silence(self, folder: Path) -> str:
        size = (folder / "stdout.raw").stat().st_size
        if not size:
            return "the agent printed nothing"
        return f"agent_extract_response found no words of the agent in the {size:,} bytes that it printed"

    def _look_again(self, folder: Path) -> list[TranscriptEvent]:
        """Output that is not what its agent is known to write: the script's own filter knows it better."""
        wrong = self._view.guessed and not self._adapter.structured and (folder / "stdout.raw").stat().st_size > 0
        if not wrong:
            return []
        text = f"this is no transcript of {self._view.transcript}: from now on agent_format_display shows it"
        self._view = View(None, "the script's own display filter")
        return [meta.notice(text)]


def launch(resolved: Resolved, workdir: Path, trust: Trust) -> Launch:  # noqa: ARG001
    """Looks at the script, so that nothing is run with one that cannot work."""
    script = _locate(resolved, workdir)
    root = script.parent.parent if script.parent.name == "agents" else script.parent
    config = root / "config" if (root / "config").is_file() else None
    place = Place(root, workdir, _mode(resolved), config)
    names = {*_IN_PROMPTS, "AGENT_CLI", "AGENT_ARGS", *(assigned(config) if config else ())}
    answer = look(place, script, sorted(names), resolved.environ)
    shown = os.path.relpath(script, workdir)
    spec = _known(answer.values.get("AGENT_CLI", ""), script.stem)
    _check(answer, shown, spec)
    resolved = _without_pty(without_flags(resolved, "an agent script")).warn(*_needs(script, shown))
    view = _view(resolved, spec, script, shown)
    environment = dict(resolved.environ)
    for variable in spec.unset_env if spec else ():
        environment.pop(variable, None)
    launcher = ScriptLauncher(place, script, answer, Markers.configured(resolved.settings.completion_promise), view)
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
    """A path, seen from the file that says it or from here; or the name of a script in agents/."""
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
        there = sorted(path.stem for path in (tried[-1].parent).glob("*.sh"))
        hint = f"{nearest(written.stem, there)}; there are: {', '.join(there)}" if there else ""
        raise UsageError(f"there is no agent script {os.path.relpath(tried[0], workdir)} ({origin}){hint}")
    if by_name and leads_out(found, found.parent):
        raise UsageError(f"the agent script {wanted} ({origin}) is a link to a place outside: name it by its path")
    return Path(os.path.abspath(found))  # noqa: PTH100 - links stay as named


def _mode(resolved: Resolved) -> str:
    """MODE: what the user says, else what the prompt's name says, else the mode that does the work."""
    said = resolved.environ.get("MODE", "")
    if said in _MODES:
        return said
    stem = Path(resolved.settings.prompt_file or "").stem
    return stem if stem in _MODES else "build"


def _known(cli: str, name: str) -> AgentSpec | None:
    """The agent behind a script, if it is one that ralph knows: by its program, else by the script's name."""
    specs = registry.all_specs()
    program = Path(cli).name
    by_program = (s for s in specs if program in s.commands)
    return next(by_program, None) or next((s for s in specs if name in (s.name, *s.aliases)), None)


def _check(answer: Answer, shown: str, spec: AgentSpec | None) -> None:
    missing = [name for name in REQUIRED if name not in answer.functions]
    if missing:
        raise UsageError(f"{shown} does not define {', '.join(missing)}: an agent script needs {', '.join(REQUIRED)}")
    cli = answer.values.get("AGENT_CLI", "")
    if not cli:
        raise UsageError(f"{shown} does not set AGENT_CLI, the program of its agent")
    if not answer.installed:
        how = f"\n  To get it: {spec.install or spec.link}" if spec else ""
        raise UsageError(f"{shown} needs '{cli}' (its AGENT_CLI), which was not found in PATH{how}")


def _needs(script: Path, shown: str) -> list[str]:
    """Most scripts read JSON with jq and hide its errors: without it they would find no response at all."""
    uses = re.search(r"^[^#\n]*\bjq\b", files.read_text(script), re.MULTILINE)
    if uses and which("jq") is None:
        return [f"{shown} uses jq, which was not found in PATH: it may not find the agent's response"]
    return []


def _without_pty(resolved: Resolved) -> Resolved:
    if not resolved.settings.pty:
        return resolved
    origin = resolved.origins["pty"]
    text = "an agent script always runs with pipes, which its filter reads"
    if origin.startswith("-"):
        raise UsageError(f"{origin} has no effect: {text}; leave it out")
    settings = msgspec.structs.replace(resolved.settings, pty=False)
    return msgspec.structs.replace(resolved, settings=settings).warn(f"pty ({origin}) is not used: {text}")


def _view(resolved: Resolved, spec: AgentSpec | None, script: Path, shown: str) -> View:
    wanted = resolved.settings.transcript
    if wanted != transcripts.AUTO:
        return View(transcripts.canonical(wanted), "asked for")
    name = next((i.transcript for i in spec.invocation if i.transcript != "plain"), "plain") if spec else "plain"
    # Every structured format of theirs has to be asked for by a flag with this word in it.
    if spec is not None and name != "plain" and "json" in files.read_text(script):
        return View(name, f"what {spec.title} writes, which {shown} runs", guessed=True)
    return View(None, f"shown by agent_format_display in {shown}")
