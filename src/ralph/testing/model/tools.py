"""Finds the tool of an agent for each act of a script, and the names of its arguments."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ralph.testing.model.exchange import ToolCall, new_id
from ralph.testing.model.script import Act, Shell, Write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.testing.model.exchange import Json

#: claude, Kimi Code · gemini, qwen · opencode, copilot, pi · codex now · codex before, goose · droid · cline · kimi-cli
SHELL_TOOLS = (
    "Bash",
    "run_shell_command",
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "Execute",
    "run_commands",
    "execute_command",
    "Shell",
)
#: claude, Kimi Code · gemini, qwen · opencode, pi, goose · copilot · droid · cline · kimi-cli
WRITE_TOOLS = (
    "Write",
    "write_file",
    "write",
    "create",
    "Create",
    "editor",
    "create_file",
    "write_to_file",
    "WriteFile",
)

_COMMAND = ("command", "cmd", "commands")
_PATH = ("file_path", "filePath", "path", "absolute_path")
_CONTENT = ("content", "file_text", "new_text", "contents", "text")


def call_for(act: Act, tools: Mapping[str, Json], directory: str | None) -> ToolCall:
    """The tool call for an act. A file is written with the shell if the agent offers no tool for files."""
    match act:
        case Write(path, content):
            path = str(PurePosixPath(directory, path)) if directory else path
            name = _offered(WRITE_TOOLS, tools)
            if name is None:
                command = f"printf %s {shlex.quote(content)} > {shlex.quote(path)}"
                return call_for(Shell(command), tools, directory)
            schema = tools[name]
            given: Json = {_property(_PATH, schema): path, _property(_CONTENT, schema): content}
        case Shell(command):
            name = _offered(SHELL_TOOLS, tools) or SHELL_TOOLS[0]
            schema = tools.get(name, {})
            key = _property(_COMMAND, schema)
            given = {key: _command(command, key, schema)}
    return ToolCall(new_id("call"), name, given | _required(schema, given))


def _offered(names: tuple[str, ...], tools: Mapping[str, Json]) -> str | None:
    return next((n for n in names if n in tools), None)


def _properties(schema: Json) -> dict[str, Json]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _property(names: tuple[str, ...], schema: Json) -> str:
    return next((n for n in names if n in _properties(schema)), names[0])


def _command(command: str, key: str, schema: Json) -> object:
    """A string, a list of commands (Cline), or a list of arguments (Codex before 0.60)."""
    if key == "commands":
        return [command]
    return ["bash", "-lc", command] if _type(_properties(schema).get(key, {})) == "array" else command


def _type(schema: Json) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), None)
    return kind.lower() if isinstance(kind, str) else ""


def _required(schema: Json, given: Json) -> Json:
    names = schema.get("required")
    properties = _properties(schema)
    return {n: sample(properties.get(n, {})) for n in names or () if n not in given}


def sample(schema: Json) -> Any:
    """Some value that fits a JSON schema."""
    choices = schema.get("enum")
    if choices:
        return choices[0]
    match _type(schema):
        case "object":
            return {name: sample(inner) for name, inner in _properties(schema).items()}
        case "array":
            return []
        case "boolean":
            return False
        case "number" | "integer":
            return 30
        case _ if _properties(schema):
            return sample({**schema, "type": "object"})
        case _:
            return "as the script says"
