"""Claude's command lines, read as Claude Code 2.1.325 reads them."""

from __future__ import annotations

import pytest

from ralph.as_claude.flags import Asked, Flag, Format, parse
from ralph.errors import UsageError

TOOLS = Flag("--allowedTools", ("Read", "Write", "Bash"))


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        (["-p", "do it"], Asked("do it")),
        (["-p", "- a list"], Asked("- a list")),
        (["-p", "--help me please"], Asked("--help me please")),
        (["-p", "-x"], Asked("-x")),
        (["do it", "-p"], Asked("do it")),
        (["-p", "--verbose", "do it"], Asked("do it")),
        (["-p", "--output-format", "json", "do it"], Asked("do it", format=Format.JSON)),
        (["-p", "--verbose"], Asked()),
        (["--print"], Asked()),
        (["--allowedTools", "Bash,Edit", "--print"], Asked(others=(Flag("--allowedTools", ("Bash,Edit",)),))),
        (["--allowedTools", "Read", "Write", "Bash"], Asked(others=(TOOLS,))),
        (["-p", "--allowedTools", "Read", "Write", "Bash"], Asked(others=(TOOLS,))),
        (["-p", "do it", "--allowedTools", "Read", "Write", "Bash"], Asked("do it", others=(TOOLS,))),
        (["--allowedTools", "Read", "Write", "Bash", "--", "do it"], Asked("do it", others=(TOOLS,))),
        (["--allowedTools", "Read", "Write", "Bash", "--verbose", "do it"], Asked("do it", others=(TOOLS,))),
        (["--allowedTools=Read", "do it"], Asked("do it", others=(Flag("--allowedTools", ("Read",)),))),
        (["--add-dir", "/a", "/b", "-p", "do it"], Asked("do it", others=(Flag("--add-dir", ("/a", "/b")),))),
        (["--mcp-config", "a.json", "b.json", "-p"], Asked(others=(Flag("--mcp-config", ("a.json", "b.json")),))),
        (["--made-up", "value", "--print"], Asked(others=(Flag("--made-up", ("value",)),))),
        (["--made-up=value", "do it"], Asked("do it", others=(Flag("--made-up=value"),))),
        (["-p", "--debug", "api", "do it"], Asked("do it")),
        (["-p", "--effort", "high", "do it"], Asked("do it", effort="high")),
        (["-pr", "s-1", "do it"], Asked("do it", resume="s-1")),
        (["--resume", "s-1", "-p", "do it"], Asked("do it", resume="s-1")),
        (["-p", "do it", "--resume"], Asked("do it", resume="")),
        (["-c", "-p", "do it"], Asked("do it", continue_last=True)),
        (["-pc", "do it"], Asked("do it", continue_last=True)),
        (["-p", "one", "two"], Asked("one")),
        (["one", "two"], Asked("one")),
        (["-p", "--", "--verbose"], Asked("--verbose")),
        (["--append-system-prompt", "--be brief", "-p", "do it"], Asked("do it", system=(("--be brief", False),))),
        (["--system-prompt-file", "s.md", "-p", "do it"], Asked("do it", system=(("s.md", True),))),
        (["--dangerously-skip-permissions", "-p", "do it"], Asked("do it", skip_permissions=True)),
        (["--permission-mode", "bypassPermissions", "-p", "do it"], Asked("do it")),
        (["--model", "m", "--agent=codex", "-p", "do it"], Asked("do it", "codex", "m")),
        (["stray", "-p", "do it"], Asked("do it")),
        ([], Asked()),
    ],
)
def test_claudes_command_lines_are_parsed(line: list[str], asked: Asked) -> None:
    assert parse(line) == asked


def test_an_unknown_format_is_an_error() -> None:
    with pytest.raises(UsageError, match="stream-json"):
        parse(["--output-format", "stream", "-p", "x"])
