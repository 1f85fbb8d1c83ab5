"""Agents that do not end."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

from faults import tree
from faults.case import fault
from ralph.agents import registry

if TYPE_CHECKING:
    from faults.place import Place

_DEAF = "for n in (1, 2, 3, 10, 12, 13, 14, 15): signal.signal(n, signal.SIG_IGN)\n"


@fault("an agent that ignores TERM", "1 failed · timeout_wall")
def ignores_term(at: Place) -> None:
    at.see(at.run(at.agent(_DEAF + "work()"), "--wall-timeout", "1", "--max-failures", "1").ended())


@fault("an agent that stops itself (SIGSTOP)", "1 failed · timeout_idle")
def stopped(at: Place) -> None:
    agent = "say('good night'); os.kill(os.getpid(), signal.SIGSTOP)"
    at.see(at.run(at.agent(agent), "--idle-timeout", "1", "--max-failures", "1").ended())


@fault("an agent that forks away (setsid, twice)", "2 limit · ok; reported")
def forks_away(at: Place) -> None:
    agent = _DEAF + "if background():\n    time.sleep(0.3); work()\nelse:\n    say('bye')"
    at.see(at.run(at.agent(agent), "1").ended())
    at.reported("left processes behind")


@fault("… and empties its environment", "0 complete · ok")
def forks_away_clean(at: Place) -> None:
    agent = (
        "if background():\n"
        "    null = os.open('/dev/null', os.O_RDWR)\n"
        "    for fd in (0, 1, 2): os.dup2(null, fd)\n"
        "    os.chdir('/')\n"
        "    os.execve('/bin/sleep', ['sleep', '300'], {})\n"
        "say('<promise>COMPLETE</promise>')"
    )
    at.see(at.run(at.agent(agent)).ended())


@fault("… and ralph is killed with SIGKILL", "-9 no end · none")
def forks_away_killed(at: Place) -> None:
    running = at.run(at.agent(_DEAF + "if background():\n    time.sleep(300)\nready(); time.sleep(300)"))
    at.ready()
    running.send(signal.SIGKILL)
    code = running.ended()
    tree.settle(10)  # its keeper holds the lock until all processes have ended
    at.see(code, torn=True)


@fault("an agent that forks endlessly", "1 failed · timeout_wall", bound=90)
def forks_quickly(at: Place) -> None:
    # Each process forks a child and exits: killing the processes of a listing always comes too late.
    agent = (
        "say('here')\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "        while True:\n"
        "            time.sleep(0.001)\n"
        "            if os.fork(): os._exit(0)\n"
        "time.sleep(60)"
    )
    at.see(at.run(at.agent(agent), "--wall-timeout", "1", "--max-failures", "1").ended(40))


@fault("an agent that never exits after its result", "0 complete · ok; in time")
def lingers(at: Place) -> None:
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s-1", "model": "opus"},
        {
            "type": "assistant",
            "session_id": "s-1",
            "message": {"id": "m", "content": [{"type": "text", "text": "<promise>COMPLETE</promise>"}]},
        },
        {"type": "result", "subtype": "success", "is_error": False, "session_id": "s-1", "result": "done"},
    ]
    said = "".join(f"say({json.dumps(json.dumps(line))})\n" for line in lines)
    command = at.agent(f"if '--version' in sys.argv:\n    print('2.1.325')\nelse:\n{_indent(said)}    time.sleep(300)")
    folder = at.root / "bin"
    folder.mkdir()
    (folder / "claude").write_text(f'#!/bin/sh\n{command} "$@"\n')
    (folder / "claude").chmod(0o755)
    own = at.home / ".config" / "ralph" / "agents" / "claude.toml"
    own.parent.mkdir(parents=True)
    builtin = registry.builtin_file("claude")
    own.write_text("linger = 1.0\n" + builtin.read_text())
    at.env["PATH"] = f"{folder}:{at.env['PATH']}"
    began = time.monotonic()
    code = at.start("run", "--ui", "plain", "--agent", "claude").ended()
    took = time.monotonic() - began
    at.see(code)
    at.check("in time", took < 10, f"{took:.1f} s")


def _indent(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


@fault("an agent that closes stdout and keeps running", "2 limit · ok; waited for")
def closes_stdout(at: Place) -> None:
    agent = "say('bye'); os.close(1); os.close(2); time.sleep(1.5); ready()"
    at.see(at.run(at.agent(agent), "1").ended())
    at.check("waited for", (at.side / "ready").exists())


@fault("… forever", "1 failed · timeout_idle")
def closes_stdout_hangs(at: Place) -> None:
    agent = "say('bye'); os.close(1); os.close(2); time.sleep(300)"
    at.see(at.run(at.agent(agent), "--idle-timeout", "1", "--max-failures", "1").ended())


@fault("an agent that does not read its stdin", "2 limit · ok")
def ignores_stdin(at: Place) -> None:
    (at.repo / "PROMPT.md").write_text("x" * 4_000_000)
    at.see(at.run(at.agent("os.close(0); say('no need'); time.sleep(0.3)"), "1").ended())


@fault("a missing agent", "1 failed · ok not_found; reported")
def not_there(at: Place) -> None:
    (at.repo / "ralph.yml").write_text("agent: custom\ncommand: ./agent\nprompt_mode: stdin\n")
    (at.repo / "agent").write_text("#!/bin/sh\nrm agent; echo gone\n")
    (at.repo / "agent").chmod(0o755)
    at.see(at.start("run", "--ui", "plain", "--max-failures", "1").ended())
    at.reported("was not found")
