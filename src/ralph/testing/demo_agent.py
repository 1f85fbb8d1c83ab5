"""The demo agent: no model, but a real process that edits real files and runs real commands.

Like any agent in a loop it remembers nothing: what to do next it reads from the prompt and from the files, so
it can be stopped at any moment and started again. It is hasty: it runs only the test of the task at hand, and
so it says once that all is done when it is not.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from ralph.testing.demo_project import is_demo
from ralph.testing.demo_tasks import LIBRARY, TASK_LIST, TASKS, Task, entries, mend, tick
from ralph.testing.hands import Hands, python
from ralph.transcripts import meta

#: Set (to anything), it leaves out the pauses for people who watch.
FAST = "RALPH_DEMO_FAST"
_COMPLETE = "<promise>COMPLETE</promise>"
_NOTES = re.compile(r"\A<ralph-notes>\n(.*?)\n</ralph-notes>", re.DOTALL)
_FAILED_TEST = re.compile(r"^(?:FAIL|ERROR): (\w+)", re.MULTILINE)
_OURS = f"{LIBRARY} {TASK_LIST} tests"


class BeyondMeError(Exception):
    """Something that only a person or a better agent can do."""


def main() -> None:
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    workdir = Path.cwd()
    hands = Hands(workdir, pace=0.0 if os.environ.get(FAST) else 1.0)
    if not is_demo(workdir) or not (workdir / TASK_LIST).is_file():
        _elsewhere(hands)
        return
    try:
        _work(hands, workdir, prompt)
    except BeyondMeError as reason:
        hands.say(f"{reason}\nThat is beyond a demo agent: a person has to look at it.")
        hands.emit(meta.error(str(reason), meta.ErrorClass.QUESTION))


def failed_checks(prompt: str) -> list[str]:
    """The tests that fail according to ralph's notes in front of the prompt."""
    notes = _NOTES.match(prompt)
    return _FAILED_TEST.findall(notes.group(1)) if notes else []


def _elsewhere(hands: Hands) -> None:
    """Somebody's own directory: look, say who we are, change nothing."""
    hands.say("I am ralph's demo agent. I look around, and I change nothing.")
    hands.shell("ls")
    hands.usage(812, 64)
    hands.say("I have no model behind me and know only the project that `ralph demo` makes; try that to see me work.")
    hands.say("For your own work, name a real agent with --agent. There is nothing that I can do here, so I am done.")
    hands.say(_COMPLETE)


def _work(hands: Hands, workdir: Path, prompt: str) -> None:
    failing = failed_checks(prompt)
    if failing:
        hands.say(f"Ralph did not believe that all is done. It ran all the tests itself, and {_listed(failing)}.")
    else:
        hands.say("I look at the task list, and at what was done before.")
    tasks = entries(hands.read(TASK_LIST))
    hands.shell("git log --oneline -3 && git status --short")
    if _uncommitted(hands):
        hands.say("An iteration before me was cut short and did not commit. I go on from where it stopped.")
    waiting = [entry.name for entry in tasks if not entry.done]
    if failing or not waiting:
        _check_all(hands, workdir, waiting)
        return
    name = waiting[0]
    if name not in TASKS:
        raise BeyondMeError(f"I know only the tasks that the demo came with, and '{name}' is not one of them.")
    _do(hands, workdir, TASKS[name], waiting[1:])


def _do(hands: Hands, workdir: Path, task: Task, left: list[str]) -> None:
    hands.think(f"{task.name} is the first open task: write it, test it, tick it, commit it.")
    hands.say(task.idea)
    _change(hands, workdir, LIBRARY, task.apply(_text(workdir, LIBRARY)))
    _change(hands, workdir, task.test_file, task.test)
    if not hands.shell(f"{python()} -m unittest -q {task.test_module}"):
        raise BeyondMeError(f"The test of {task.name} fails, and I do not know why.")
    _change(hands, workdir, TASK_LIST, tick(_text(workdir, TASK_LIST), task.name))
    _commit(hands, task.commit)
    hands.usage(*task.tokens)
    if left:
        hands.say(f"{task.name} is done, {len(left)} to go. The next iteration takes {left[0]}.")
    else:
        hands.say(f"{task.name} works, and it was the last task. All done.")
        hands.say(_COMPLETE)


def _check_all(hands: Hands, workdir: Path, waiting: list[str]) -> None:
    """All the tests this time, and a repair if one fails."""
    everything = f"{python()} -m unittest -q"
    hands.think("Run all the tests, mend what fails, and only then say that it is done.")
    if not hands.shell(everything):
        _repair(hands, workdir)
        if not hands.shell(everything):
            raise BeyondMeError("The tests still fail, and I do not know why.")
    if _uncommitted(hands):
        _commit(hands, "Keep apostrophes inside of words")
    hands.usage(5_147, 356)
    if waiting:
        hands.say(f"All tests pass. The next iteration takes {waiting[0]}.")
    else:
        hands.say("All tasks are ticked, and now all the tests pass, not only mine.")
        hands.say(_COMPLETE)


def _repair(hands: Hands, workdir: Path) -> None:
    before = _text(workdir, LIBRARY)
    after = mend(before)
    if after == before:
        raise BeyondMeError("A test fails that I did not break.")
    hands.say('I see: \\w stands for letters, but not for the apostrophe, so "Don\'t" became two words. Both, then.')
    hands.write(LIBRARY, after)


def _change(hands: Hands, workdir: Path, name: str, text: str) -> None:
    """Writes what is not there yet: an iteration that was cut short may have done it already."""
    path = workdir / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        hands.write(name, text)


def _commit(hands: Hands, message: str) -> None:
    if not hands.shell(f"git add {_OURS} && git commit -m '{message}'"):
        raise BeyondMeError("git does not commit.")


def _uncommitted(hands: Hands) -> bool:
    return bool(hands.ask("git", "status", "--porcelain", "--", *_OURS.split()))


def _text(workdir: Path, name: str) -> str:
    return (workdir / name).read_text(encoding="utf-8")


def _listed(names: list[str]) -> str:
    return f"{names[0]} fails" if len(names) == 1 else f"these fail: {', '.join(names)}"


if __name__ == "__main__":
    main()
