"""`ralph doctor`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.echo import echo, echo_json

if TYPE_CHECKING:
    from ralph.doctor.agents import AgentCheck
    from ralph.doctor.live import Live
    from ralph.doctor.report import Report
    from ralph.planning.settle import Settled

_ANY = ""


@click.command("doctor", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--live",
    metavar="[AGENT]",
    is_flag=False,
    flag_value=_ANY,
    default=None,
    help="Also send a tiny prompt to the agent, as a run would, and report the answer. This calls its model and may "
    "cost money.",
)
@click.option("--model", metavar="NAME", help="Model, as for `ralph run`.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.option("--cwd", metavar="DIR", help="Directory to check. [default: the current directory]")
@click.option("-c", "--config", "config_file", metavar="FILE", help="Use this ralph.yml instead of the nearest one.")
def doctor_command(live: str | None, as_json: bool, model: str | None, cwd: str | None, config_file: str | None) -> int:
    """Check whether a run can start here, and with which agents.

    Checks the agents and their logins, git, the configuration and the directory. It changes nothing, shows only the
    names of credentials, and contacts no model unless you use --live.

    Exit codes: 0 a run can start (and, with --live, the agent answered), 1 it cannot, 64 usage error.
    """
    import msgspec

    from ralph.doctor import report
    from ralph.launching.known import spec_of
    from ralph.launching.masking import resolved_masker

    settled, config_problem = _settle({k: v for k, v in (("cwd", cwd), ("model", model)) if v}, config_file)
    if live:
        live = spec_of(live, settled.workdir, settled.trust).name if live != "custom" else live
    found = report.examine(settled, config_problem)
    mask = resolved_masker(settled.resolved)
    if not as_json:
        echo(mask.text("\n".join(_lines(found))))
    answer, problem = None, None
    if live is not None:
        agent = live or found.would_use
        if not as_json and agent is not None:
            echo(f"\nSending a prompt to {agent} …")
        answer, problem = _ask(settled, live or None, found)
        if not as_json:
            echo(mask.text("\n".join(_live_lines(answer) if answer else [f"No prompt was sent: {problem}"])))
    if as_json:
        everything = msgspec.to_builtins(found) | {"live": msgspec.to_builtins(answer), "live_problem": problem}
        echo_json(mask.value(everything), indent=2)
    if live is None:
        return 0 if found.ready else 1
    # The named agent may answer even if the one that a run would use is missing.
    return 0 if answer is not None and answer.ok and not found.blocked else 1


def _ask(settled: Settled, agent: str | None, found: Report) -> tuple[Live | None, str | None]:
    """The answer, or why no prompt was sent."""
    from ralph.cli.execute import execute
    from ralph.doctor.live import ask
    from ralph.errors import UsageError

    if agent is None and found.would_use is None:
        return None, "a run cannot start"
    try:
        return ask(settled, agent, execute), None
    except UsageError as error:
        return None, str(error)


def _settle(flags: dict[str, Any], config_file: str | None) -> tuple[Settled, str | None]:
    """The settings. If they are wrong: the defaults, and what is wrong."""
    import os

    from ralph.config.layers import Resolved
    from ralph.config.settings import OPTIONS, Settings
    from ralph.errors import UsageError
    from ralph.planning.approvals import items_to_approve
    from ralph.planning.settle import Settled, settle, working_directory
    from ralph.trust.approval import from_environment

    workdir = working_directory(flags.get("cwd"))
    trust = from_environment(os.environ)
    try:
        settled = settle(flags, config_file, trust)
    except UsageError as error:
        origins = {option.name: "default" for option in OPTIONS}
        resolved = Resolved(Settings(), origins, {}, [], [], environ=dict(os.environ))
        return Settled(resolved, workdir, trust), str(error)
    wanted = items_to_approve(settled.resolved, settled.workdir)
    return Settled(settled.resolved, settled.workdir, settled.trust.recalling(wanted)), None


def _lines(found: Report) -> list[str]:
    lines = ["Agents"]
    for agent in found.agents:
        lines += _agent_lines(agent)
    if found.not_found:
        lines.append(f"  not found: {', '.join(found.not_found)} (`ralph agents` shows how to install them)")
    lines += ["", "Here"]
    for check in found.checks:
        first, *rest = check.text.split("\n")
        lines.append(f"  {check.state.value:<8} {check.name:<11} {first}")
        lines += [f"  {'':<20} {more}" for more in rest]
    lines.append("")
    if found.ready:
        missing = any(a.chosen and a.login is not None and a.login.state == "missing" for a in found.agents)
        login = " Its login seems to be missing (see above)." if missing else ""
        lines.append(f"A run can start. It would use {found.would_use}.{login}")
    else:
        lines.append("A run cannot start:")
        lines += [f"  {line}" for reason in found.why_not for line in reason.split("\n")]
    return lines


def _agent_lines(agent: AgentCheck) -> list[str]:
    from ralph.doctor.report import describe_version

    mark = "   <- a run would use this one" if agent.chosen else ""
    rows = [("program", agent.path)]
    if agent.argv:
        rows += [("argv", shlex.join(agent.argv)), ("prompt", agent.prompt or "")]
    if agent.env:
        rows.append(("env set", ", ".join(f"{k}={v}" for k, v in agent.env.items())))
    if agent.unset_env:
        rows.append(("env removed", ", ".join(agent.unset_env)))
    if agent.withheld:
        rows.append(("withheld", ", ".join(agent.withheld)))
    if agent.login is not None:
        rows.append(("login", f"{agent.login.state.value}: {agent.login.why}"))
    if agent.file is not None:
        rows.append(("defined in", agent.file + (" (replaces the built-in one)" if agent.replaces else "")))
    rows += [("note", note) for note in agent.notes]
    rows += [("warning", warning) for warning in agent.warnings]
    if agent.problem is not None:
        rows.append(("problem", agent.problem))
    lines = [f"  {agent.name} ({agent.title}) {describe_version(agent)}{mark}"]
    for name, value in rows:
        first, *rest = value.split("\n")
        lines.append(f"    {name:<13} {first}")
        lines += [f"    {'':<13} {more.strip()}" for more in rest]
    return lines


def _live_lines(answer: Live) -> list[str]:
    from ralph.loop.describe import describe_usage
    from ralph.transcripts.events import Usage

    usage = "none" if answer.usage is None else describe_usage(Usage(**answer.usage))
    rows = [
        ("outcome", f"{answer.outcome}: {answer.why}" if answer.why else answer.outcome),
        ("text", answer.text or "none"),
        ("session id", answer.session_id or "none"),
        ("usage", usage),
        ("took", f"{answer.seconds:.1f} s"),
    ]
    lines = []
    for name, value in rows:
        first, *rest = value.split("\n")
        lines.append(f"  {name:<11} {first}")
        lines += [f"  {'':<11} {more}" for more in rest]
    lines += [f"  {'it said':<11} {line}" for text in answer.messages for line in text.split("\n")]
    if answer.missing:
        lines.append(f"  warning     missing in its output, which usually has it: {', '.join(answer.missing)}")
    lines.append(f"{answer.agent} works." if answer.ok else f"{answer.agent} did not give a usable answer.")
    return lines
