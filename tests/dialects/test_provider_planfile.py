"""Open boxes in plans, and the prompt for following a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.config.layers import resolve
from ralph.dialects.provider import planfile

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
# Add a cache

## Overview
- [ ] a wish, no task

### Task 1: write it
- [x] code
- [ ] tests

#### Notes
* [ ] a hidden one

```
- [ ] in an example
```

### Task 2: document it
- [x] docs

## Later
- [ ] another time
"""


def test_only_open_boxes_in_task_sections_count() -> None:
    assert [(box.line, box.text) for box in planfile.open_boxes(PLAN)] == [(8, "tests"), (11, "a hidden one")]


def test_in_a_plan_without_task_sections_all_boxes_count() -> None:
    assert [box.text for box in planfile.open_boxes("# Plan\n- [ ] a\n- [x] b\n+ [ ] c\n")] == ["a", "c"]


def test_a_moved_plan_is_done_and_one_with_open_boxes_is_not(tmp_path: Path) -> None:
    assert planfile.still_open(tmp_path / "gone.md") is None
    (tmp_path / "plan.md").write_text(PLAN)
    assert planfile.still_open(tmp_path / "plan.md") == "plan.md has an open box on line 8 ('tests') and 1 more"


def prompt(folder: Path) -> str:
    (folder / "plan.md").write_text(PLAN)
    return planfile.source(resolve(folder, {"plan": "plan.md"}, environ={}), folder).read()


def test_ralphs_own_prompt_names_the_plan_and_the_signals(tmp_path: Path) -> None:
    text = prompt(tmp_path)
    assert "plan.md" in text
    assert "<<<RALPHEX:ALL_TASKS_DONE>>>" in text
    assert "{{" not in text


def test_the_projects_task_prompt_is_used_without_its_leading_comments(tmp_path: Path) -> None:
    file = tmp_path / ".ralphex" / "prompts" / "task.txt"
    file.parent.mkdir(parents=True)
    file.write_text(
        "# for you\n#   {{PLAN_FILE}} - the plan\n\nDo {{PLAN_FILE}} and leave {{OTHER}} and $HOME.\n# kept\n"
    )
    assert prompt(tmp_path) == "Do plan.md and leave {{OTHER}} and $HOME.\n# kept\n"


def test_a_task_prompt_with_only_comments_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / ".ralphex" / "prompts" / "task.txt"
    file.parent.mkdir(parents=True)
    file.write_text("# all of it\n# commented out\n")
    assert "<<<RALPHEX:ALL_TASKS_DONE>>>" in prompt(tmp_path)
