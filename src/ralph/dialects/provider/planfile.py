"""Plans: Markdown files with checkboxes. Each iteration does one task section."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.dialects.detect import user_file
from ralph.dialects.provider.task_prompt import TASK_PROMPT
from ralph.errors import UsageError
from ralph.launching.prompt import PromptSource
from ralph.system import files, git

if TYPE_CHECKING:
    from ralph.config.layers import Resolved

#: The project's own prompt for following a plan.
TEMPLATE = ".ralphex/prompts/task.txt"
_TASK = re.compile(r"^#{2,4}\s+(?:Task|Iteration)\b", re.IGNORECASE)
_HEADING = re.compile(r"^(#{1,6})\s")
_OPEN = re.compile(r"^\s*[-*+]\s+\[ \]\s*(.*)")


class OpenBox(msgspec.Struct, frozen=True):
    line: int
    text: str


def find(folder: Path) -> list[Path]:
    """The plans in a folder that are not done yet. Those that are done are in its `completed/`."""
    try:
        return sorted(p for p in folder.iterdir() if p.suffix == ".md" and p.is_file())
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return []


def open_boxes(text: str) -> list[OpenBox]:
    """The open boxes in task sections, or all open boxes if the plan has no task sections."""
    everywhere: list[OpenBox] = []
    in_tasks: list[OpenBox] = []
    level, any_task, fenced = 0, False, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if fenced:
            continue
        if heading := _HEADING.match(line):
            depth = len(heading.group(1))
            if _TASK.match(line):
                level, any_task = depth, True
            elif depth <= level:
                level = 0
        elif box := _OPEN.match(line):
            found = OpenBox(number, box.group(1).strip())
            everywhere.append(found)
            if level:
                in_tasks.append(found)
    return in_tasks if any_task else everywhere


def still_open(path: Path) -> str | None:
    """Why this plan is not done. None if it is."""
    try:
        boxes = open_boxes(files.read_text(path))
    except OSError:
        return None  # the agent has moved it to `completed/`
    if not boxes:
        return None
    many = f" and {len(boxes) - 1} more" if len(boxes) > 1 else ""
    return f"{path.name} has an open box on line {boxes[0].line} ('{boxes[0].text[:60]}'){many}"


def locate(resolved: Resolved, workdir: Path) -> Path:
    name = resolved.settings.plan or ""
    written = Path(name).expanduser()
    places = [workdir] if resolved.bases.get("plan") else [Path.cwd(), workdir]
    path = next((place / written for place in places if (place / written).is_file()), None)
    if path is None:
        raise UsageError(f"the plan '{name}' ({resolved.origins['plan']}) does not exist")
    return path


def source(resolved: Resolved, workdir: Path) -> PromptSource:
    """The prompt for following the plan: the project's or the user's `task.txt`, or else ralph's own."""
    path = locate(resolved, workdir)
    shown = str(path.relative_to(workdir)) if path.is_relative_to(workdir) else str(path)
    template, origin = _template(workdir, resolved.environ)
    text = template
    for name, value in _variables(shown, workdir).items():
        text = text.replace("{{" + name + "}}", value)
    return PromptSource(text, None, f"{shown}, with {origin}")


def _template(workdir: Path, environ: dict[str, str]) -> tuple[str, str]:
    own = user_file(environ).parent / "prompts" / "task.txt"
    for path, shown in ((workdir / TEMPLATE, TEMPLATE), (own, str(own))):
        try:
            text = files.read_text(path)
        except OSError:
            continue
        template = _without_head(text)
        if template.strip():
            return template, shown
    return TASK_PROMPT, "ralph's own task prompt"


def _without_head(text: str) -> str:
    """Removes the comments at the start, which are for people who edit the file."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    return "\n".join(lines[first:]) + "\n"


def _variables(plan: str, workdir: Path) -> dict[str, str]:
    return {
        "PLAN_FILE": plan,
        "PROGRESS_FILE": ".ralph/latest/events.jsonl",
        "PLANS_DIR": str(Path(plan).parent),
        "GOAL": f"implementation of plan at {plan}",
        "DEFAULT_BRANCH": _default_branch(workdir),
    }


def _default_branch(workdir: Path) -> str:
    for command in (["symbolic-ref", "--short", "refs/remotes/origin/HEAD"], ["config", "init.defaultBranch"]):
        branch = git.ask(git.top(workdir) or str(workdir), *command, timeout=10)
        if branch and branch.strip():
            return branch.strip().removeprefix("origin/")
    return "main"
