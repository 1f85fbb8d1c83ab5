"""Words that look like the agent's claim to be done, and are not."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from faults.case import fault

if TYPE_CHECKING:
    from faults.place import Place

_MARK = "<promise>COMPLETE</promise>"
_PROMPT = f"Work through the list, one item at a time.\n\nWhen all of it is done, end with this line:\n\n{_MARK}\n"
_ECHO = "text = open('PROMPT.md').read()\n"
#: Waits in another process until the agent has exited.
_LATER = (
    "agent = os.getpid()\n"
    "if os.fork() == 0:\n"
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "    while os.getppid() == agent: time.sleep(0.01)\n"
    "    time.sleep(0.05)\n"
)
_BLOCK = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---"


def _echoing(at: Place, code: str) -> None:
    (at.repo / "PROMPT.md").write_text(_PROMPT)
    at.see(at.run(at.agent(_ECHO + code), "1").ended())


@fault("the prompt ends with the marker and is echoed", "2 limit · ok")
def echo_after_banner(at: Place) -> None:
    _echoing(at, "say('agent 1.0'); say(''); out(text.encode())")


@fault("… indented", "2 limit · ok")
def echo_indented(at: Place) -> None:
    _echoing(at, "say('agent 1.0')\nfor line in text.splitlines(): say('    ' + line)")


@fault("… by a last `cat PROMPT.md`", "2 limit · ok")
def echo_at_the_end(at: Place) -> None:
    _echoing(at, "say('I look at the task again.'); out(text.encode())")


@fault("… and the agent's answer follows", "0 complete · ok")
def answer_after_echo(at: Place) -> None:
    _echoing(at, f"say('agent 1.0'); out(text.encode()); say({_MARK!r})")


@fault("the marker in bold", "0 complete · ok")
def bold(at: Place) -> None:
    at.see(at.run(at.agent("say('All done.'); say('**LOOP_COMPLETE**')"), "1").ended())


@fault("a background process prints the marker after the agent's exit", "2 limit · ok; reported")
def late(at: Place) -> None:
    at.see(at.run(at.agent(f"{_LATER}    say({_MARK!r})\n    os._exit(0)\nsay('working')"), "1").ended())
    at.reported("does not count")


@fault("… completes a line that the agent began", "2 limit · ok")
def late_rest(at: Place) -> None:
    at.see(at.run(at.agent(f"{_LATER}    say('COMPLETE')\n    os._exit(0)\nout(b'LOOP_')"), "1").ended())


@fault("… prints it in reaction to TERM", "2 limit · ok")
def on_term(at: Place) -> None:
    agent = (
        "read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    def bye(*_):\n"
        f"        say({_MARK!r})\n"
        "        os._exit(0)\n"
        "    signal.signal(signal.SIGTERM, bye)\n"
        "    os.write(write, b'x')\n"
        "    while True: time.sleep(0.05)\n"
        "os.read(read, 1)\n"
        "say('working')"
    )
    at.see(at.run(at.agent(agent), "1").ended())


@fault("a status block as an example in an earlier message", "2 limit · ok×2")
def status_example(at: Place) -> None:
    words = [f"I will end with\n```\n{_BLOCK}\n```", "There is more to do."]
    events: list[dict[str, object]] = [{"type": "text", "tag": "AI", "text": text} for text in words]
    tool = {"id": "t", "name": "ls"}
    events[1:1] = [{"type": "tool_start", "tool": tool}, {"type": "tool_end", "tool": {**tool, "status": "ok"}}]
    code = "\n".join(f"say({'@@RALPH@@ ' + json.dumps(event)!r})" for event in events)
    at.see(at.run(at.agent(code), "2", "--transcript", "rtf1", "--signals", "status").ended())


@fault("a status block that contradicts the fix plan", "2 limit · ok×2; reported")
def open_boxes(at: Place) -> None:
    (at.repo / ".ralph").mkdir()
    shutil.move(at.repo / "PROMPT.md", at.repo / ".ralph" / "PROMPT.md")
    (at.repo / ".ralph" / "fix_plan.md").write_text("- [x] one\n- [ ] two\n")
    at.see(at.run(at.agent(f"say({_BLOCK!r})"), "2").ended())
    at.reported("1 box is still open in fix_plan.md")


@fault("Kiro quotes the marker from a tool's output", "2 limit · ok")
def kiro_quotes(at: Place) -> None:
    lines = ["\x1b[38;5;141m> \x1b[0mI read it.", "🛠️  Using tool: fs_read (trusted)", "> notes", f"> {_MARK}", _MARK]
    code = "\n".join(f"say({line!r})" for line in lines)
    at.see(at.run(at.agent(code), "1", "--transcript", "kiro").ended())
