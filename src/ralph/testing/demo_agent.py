"""The demo agent: no model, but a real process that edits real files and runs real commands.

Like any agent in a loop it remembers nothing. It reads from the prompt and the files what to do next, so you can stop
it at any moment and start it again. It is hasty: it runs only the test of the current task, and so it claims once that
everything is done when it is not.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from ralph.testing.demo_project import is_demo
from ralph.testing.demo_tasks import LIBRARY, TASK_LIST, TASKS, Task, entries, repaired, tick
from ralph.testing.scripted_agent import ScriptedAgent, python
from ralph.transcripts import meta

#: Set to anything, it removes the pauses for viewers.
FAST = "RALPH_DEMO_FAST"
_COMPLETE = "<promise>COMPLETE</promise>"
_NOTES = re.compile(r"\A<ralph-notes>\n(.*?)\n</ralph-notes>", re.DOTALL)
_FAILED_TEST = re.compile(r"^(?:FAIL|ERROR): (\w+)", re.MULTILINE)
_OURS = f"{LIBRARY} {TASK_LIST} tests"


class NeedsPersonError(Exception):
    """The task needs a person or a better agent."""


def main() -> None:
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    workdir = Path.cwd()
    agent = ScriptedAgent(workdir, pace=0.0 if os.environ.get(FAST) else 1.0)
    if not is_demo(workdir) or not (workdir / TASK_LIST).is_file():
        _elsewhere(agent)
        return
    try:
        _work(agent, workdir, prompt)
    except NeedsPersonError as reason:
        agent.say(f"{reason}\nA demo agent cannot do that: a person has to look at it.")
        agent.emit(meta.error(str(reason), meta.ErrorClass.QUESTION))


def failed_checks(prompt: str) -> list[str]:
    """The tests that failed according to ralph's notes before the prompt."""
    notes = _NOTES.match(prompt)
    return _FAILED_TEST.findall(notes.group(1)) if notes else []


def _elsewhere(agent: ScriptedAgent) -> None:
    """In any other directory: look around and change nothing."""
    agent.say("I am ralph's demo agent. I only look around, and I change nothing.")
    agent.shell("ls")
    agent.usage(812, 64)
    agent.say("I have no model, and I know only the project that `ralph demo` creates. Try that to see me work.")
    agent.say("For your own work, name a real agent with --agent. There is nothing I can do here, so I am done.")
    agent.say(_COMPLETE)


def _work(agent: ScriptedAgent, workdir: Path, prompt: str) -> None:
    failing = failed_checks(prompt)
    if failing:
        agent.say(f"Ralph did not believe that everything is done. It ran all tests itself, and {_listed(failing)}.")
    else:
        agent.say("I'll look at the task list and at what was done before.")
    tasks = entries(agent.read(TASK_LIST))
    agent.shell("git log --oneline -3 && git status --short")
    if _uncommitted(agent):
        agent.say("The previous iteration was cut short and did not commit. I'll continue where it stopped.")
    waiting = [entry.name for entry in tasks if not entry.done]
    if failing or not waiting:
        _check_all(agent, workdir, waiting)
        return
    name = waiting[0]
    if name not in TASKS:
        raise NeedsPersonError(f"I know only the tasks that came with the demo, and '{name}' is not one of them.")
    _do(agent, workdir, TASKS[name], waiting[1:])


def _do(agent: ScriptedAgent, workdir: Path, task: Task, left: list[str]) -> None:
    agent.think(f"{task.name} is the first open task: write it, test it, tick it, commit it.")
    agent.say(task.idea)
    _change(agent, workdir, LIBRARY, task.apply(_text(workdir, LIBRARY)))
    _change(agent, workdir, task.test_file, task.test)
    if not agent.shell(f"{python()} -m unittest -q {task.test_module}"):
        raise NeedsPersonError(f"The test of {task.name} fails, and I do not know why.")
    _change(agent, workdir, TASK_LIST, tick(_text(workdir, TASK_LIST), task.name))
    _commit(agent, task.commit)
    agent.usage(*task.tokens)
    if left:
        agent.say(f"{task.name} is done, {len(left)} to go. The next iteration takes {left[0]}.")
    else:
        agent.say(f"{task.name} works, and it was the last task. All done.")
        agent.say(_COMPLETE)


def _check_all(agent: ScriptedAgent, workdir: Path, waiting: list[str]) -> None:
    """Runs all the tests this time, and repairs the library if one fails."""
    everything = f"{python()} -m unittest -q"
    agent.think("Run all the tests, fix what fails, and only then say that it is done.")
    if not agent.shell(everything):
        _repair(agent, workdir)
        if not agent.shell(everything):
            raise NeedsPersonError("The tests still fail, and I do not know why.")
    if _uncommitted(agent):
        _commit(agent, "Keep apostrophes inside words")
    agent.usage(5_147, 356)
    if waiting:
        agent.say(f"All tests pass. The next iteration takes {waiting[0]}.")
    else:
        agent.say("All tasks are ticked, and now all the tests pass, not only mine.")
        agent.say(_COMPLETE)


def _repair(agent: ScriptedAgent, workdir: Path) -> None:
    before = _text(workdir, LIBRARY)
    after = repaired(before)
    if after == before:
        raise NeedsPersonError("A test fails that I did not break.")
    agent.say('I see: \\w stands for letters, but not for the apostrophe, so "Don\'t" became two words. It needs both.')
    agent.write(LIBRARY, after)


def _change(agent: ScriptedAgent, workdir: Path, name: str, text: str) -> None:
    """Writes a file unless it is done already: an earlier iteration may have been cut short."""
    path = workdir / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        agent.write(name, text)


def _commit(agent: ScriptedAgent, message: str) -> None:
    if not agent.shell(f"git add {_OURS} && git commit -m '{message}'"):
        raise NeedsPersonError("git refuses to commit.")


def _uncommitted(agent: ScriptedAgent) -> bool:
    return bool(agent.ask("git", "status", "--porcelain", "--", *_OURS.split()))


def _text(workdir: Path, name: str) -> str:
    return (workdir / name).read_text(encoding="utf-8")


def _listed(names: list[str]) -> str:
    return f"{names[0]} fails" if len(names) == 1 else f"these fail: {', '.join(names)}"


if __name__ == "__main__":
    main()
