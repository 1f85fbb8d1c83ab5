"""Tool calls for the schemas that the real CLIs offer their models."""

from __future__ import annotations

from typing import Any

import pytest

from ralph.testing.model.script import Shell, Write
from ralph.testing.model.tools import call_for, sample

TEXT = {"type": "string"}


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("name", "offered", "expected"),
    [
        ("Bash", schema("command", command=TEXT, timeout={"type": "number"}), {"command": "ls"}),
        ("exec_command", schema("cmd", cmd=TEXT), {"cmd": "ls"}),
        ("shell", schema("command", command={"type": "array", "items": TEXT}), {"command": ["bash", "-lc", "ls"]}),
        ("run_commands", schema("commands", commands={"type": "array"}), {"commands": ["ls"]}),
        (
            "run_shell_command",
            schema("command", "is_background", command={"type": "STRING"}, is_background={"type": "BOOLEAN"}),
            {"command": "ls", "is_background": False},
        ),
        (
            "Execute",
            schema("command", "riskLevel", command=TEXT, riskLevel={"type": "string", "enum": ["low", "high"]}),
            {"command": "ls", "riskLevel": "low"},
        ),
    ],
)
def test_a_command_has_the_form_that_each_tool_takes(name: str, offered: Any, expected: dict[str, Any]) -> None:
    call = call_for(Shell("ls"), {"other": {}, name: offered}, None)
    assert (call.name, call.arguments) == (name, expected)


@pytest.mark.parametrize(
    ("name", "path", "content"),
    [
        ("Write", "file_path", "content"),
        ("write", "filePath", "content"),
        ("create", "path", "file_text"),
        ("editor", "path", "new_text"),
    ],
)
def test_a_file_is_written_with_the_agents_own_tool(name: str, path: str, content: str) -> None:
    offered = {"Bash": schema("command", command=TEXT), name: schema(path, content, **{path: TEXT, content: TEXT})}
    call = call_for(Write("a.txt", "words"), offered, "/project")
    assert (call.name, call.arguments) == (name, {path: "/project/a.txt", content: "words"})


def test_a_file_is_written_with_the_shell_if_there_is_no_tool_for_files() -> None:
    call = call_for(Write("it's.txt", "a b\n"), {"exec_command": schema("cmd", cmd=TEXT)}, None)
    assert call.arguments == {"cmd": """printf %s 'a b\n' > 'it'"'"'s.txt'"""}


def test_a_sample_fits_its_schema() -> None:
    wanted = schema(
        "choice",
        choice={"enum": ["x", "y"]},
        list={"type": "array"},
        flag={"type": ["boolean", "null"]},
        inner=schema(n=TEXT),
    )
    assert sample(wanted) | {"inner": None} == {"choice": "x", "list": [], "flag": False, "inner": None}
