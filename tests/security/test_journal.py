"""A journal that came with a repository can be read, but its flags are not trusted."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from .support import AGENT, DONE, EVIL, contents, harmless

if TYPE_CHECKING:
    from pathlib import Path

    from .support import Ralph

RUN = "20260101-000000-000aa"
STATE: dict[str, Any] = {"iteration": 1, "rotation": {"names": ["a", "b"], "availability": []}}


def fake(repo: Path, facts: Any, events: list[dict[str, Any]], name: str = RUN) -> Path:
    run = repo / ".ralph" / "runs" / name
    (run / "iterations" / "0001").mkdir(parents=True)
    (run / "run.json").write_text(facts if isinstance(facts, str) else json.dumps(facts))
    lines = ({"seq": n, "time": 1.0, "iteration": 1} | event for n, event in enumerate(events, 1))
    (run / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "iterations" / "0001" / "stdout.raw").write_text("raw\n")
    return run


def meta(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "meta", "meta": {"kind": kind} | fields}


def typed(**values: Any) -> dict[str, Any]:
    """A run.json that claims that the user typed all of this."""
    origins = {name: f"--{name.replace('_', '-')}" for name in values}
    return {"run": RUN, "origins": origins, "settings": values, "config": None}


BEGUN = [meta("run_start"), meta("iteration_start", n=1, agent="custom")]


def test_flags_of_a_foreign_run_are_not_executed(ralph: Ralph, repo: Path) -> None:
    run = fake(repo, typed(agent_cmd=f"touch ran; echo '{DONE}'", verify=["touch ran"]), BEGUN)
    for command in (["--resume"], ["--resume", RUN], ["--resume", RUN, "--dry-run"], ["--agent", "demo", "--resume"]):
        done = ralph("run", *command)
        harmless(done)
        assert done.returncode == 64, done
        assert "--trust" in done.stderr
        assert not (repo / "ran").exists()
    assert "touch ran" in ralph("run", "--resume").stderr
    assert ralph("run", "--resume", "--trust").returncode == 0
    assert (repo / "ran").exists()
    assert run.exists()


def test_an_own_run_is_resumed_without_a_question_unless_it_was_changed_or_moved(ralph: Ralph, repo: Path) -> None:
    agent = f"test -e more && echo '{DONE}'"
    assert ralph("run", "1", "--agent-cmd", agent).returncode == 2
    (repo / "more").touch()
    run = next((repo / ".ralph" / "runs").iterdir())
    shutil.copytree(run, run.with_name("20990101-000000-000aa"))
    facts = (run / "run.json").read_text()
    moved = ralph("run", "3", "--resume", "20990101")
    assert (moved.returncode, "cannot tell whether you started run" in moved.stderr) == (64, True), moved
    (run / "run.json").write_text(facts.replace("test -e more", "touch ran"))
    assert ralph("run", "3", "--resume", run.name).returncode == 64
    assert not (repo / "ran").exists()
    (run / "run.json").write_text(facts)
    assert ralph("run", "3", "--resume", run.name).returncode == 0
    assert ralph("run", "3", "--resume", run.name).returncode == 0  # already complete


ODD: list[Any] = [None, True, -1, 1e308, "x", EVIL, [1], {"a": EVIL}, [[]]]
KINDS = ["run_start", "run_resume", "iteration_start", "iteration_end", "verify", "wait", "run_end", "verdict", "event"]
KINDS += ["notice", "retry", "error", "rate_limit", "parse_error"]
FIELDS = [
    "n",
    "max",
    "fallback",
    "agent",
    "prompt_chars",
    "prompt_from",
    "seconds",
    "at",
    "why",
    "text",
    "topic",
    "state",
]
FIELDS += [
    "payload",
    "target",
    "message",
    "class",
    "version",
    "cwd",
    "after",
    "iterations",
    "plan",
    "actions",
    "report",
]
FIELDS += ["outcome", "progress", "next", "ok", "command", "baseline", "note", "tail", "usage", "tools", "completed"]
FIELDS += ["session_id", "end", "exit_code", "summary", "reason", "run", "transcript", "limits", "breaker"]


@pytest.mark.endurance
def test_no_field_of_any_type_breaks_a_command(ralph: Ralph, repo: Path) -> None:
    for number, odd in enumerate(ODD):
        events = [meta(kind, **dict.fromkeys(FIELDS, odd)) for kind in KINDS]
        events.append({"type": "tool_end", "tool": {"id": EVIL, "status": "ok", "duration_ms": 10**40}})
        facts = {"started": odd, "agent": odd, "origins": odd, "settings": odd, "config": odd, "signature": odd}
        fake(repo, facts, events, f"2026010{number}-000000-000aa")
    fake(repo, "[" * 100_000, [], "20260120-000000-000aa")
    fake(repo, "[1]", [], "20260121-000000-000aa")
    fake(repo, typed(), [meta("run_start"), meta("iteration_end", state=STATE)], "20260122-000000-000aa")
    runs = [path.name for path in (repo / ".ralph" / "runs").iterdir()]
    for command in (["runs"], ["runs", "--json"], ["doctor"], *(["show", name] for name in runs), ["tail", "-f"]):
        done = ralph(*command)
        harmless(done)
        assert done.returncode in (0, 1), done
    for name in runs:
        done = ralph("run", "--agent-cmd", "true", "--resume", name, "--trust", "--max-iterations", "1")
        harmless(done)
        assert done.returncode in (0, 1, 2, 4, 64), done


def test_names_of_runs_do_not_control_the_terminal(ralph: Ralph, repo: Path) -> None:
    fake(repo, typed(agent_cmd=EVIL), BEGUN, name=EVIL.replace("/", ""))
    os.mkdir(os.fsencode(repo / ".ralph" / "runs") + b"/\xff\xfe\x1b[2J")  # noqa: PTH102 - a name that is not text
    (repo / ".ralph" / "runs" / EVIL / "lock").write_text(f"run {EVIL}, process 1\n")
    commands = (["runs"], ["runs", "--json"], ["show"], ["show", "nothing"], ["tail"], ["run", "--resume"], ["doctor"])
    for command in (*commands, AGENT):
        harmless(ralph(*command))


def test_links_and_pipes_in_a_run_are_not_read(ralph: Ralph, repo: Path, outside: Path) -> None:
    run = fake(repo, typed(), BEGUN)
    for name in ("events.jsonl", "run.json", "iterations/0001/stdout.raw"):
        (run / name).unlink()
        (run / name).symlink_to(outside / "secret")
    pipes = fake(repo, typed(), BEGUN, "20260102-000000-000aa")
    for name in ("events.jsonl", "run.json", "iterations/0001/stdout.raw"):
        (pipes / name).unlink()
        os.mkfifo(pipes / name)
    before = contents(outside)
    for name in (run.name, pipes.name):
        for command in (["show", name], ["show", name, "--raw"], ["tail", name], ["run", "--resume", name, "--trust"]):
            done = ralph(*command, timeout=20)
            harmless(done)
            assert "the-secret" not in done.stdout + done.stderr
    harmless(ralph("runs", timeout=20))
    assert contents(outside) == before


def test_a_run_works_without_a_place_for_its_key(ralph: Ralph, repo: Path) -> None:
    (repo / "nowhere").write_text("not a directory")
    assert ralph(*AGENT, env={"XDG_CONFIG_HOME": str(repo / "nowhere")}).returncode == 0
    done = ralph("run", "--resume", env={"XDG_CONFIG_HOME": str(repo / "nowhere")})
    assert "--trust" in done.stderr
