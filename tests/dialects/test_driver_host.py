"""Calling the hooks of one driver: its description, the commands it builds, and its errors."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ralph.dialects.driver import host as host_module
from ralph.dialects.driver.host import Host
from ralph.dialects.driver.launch import is_valid_tool
from ralph.dialects.driver.locate import locate
from ralph.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

DRIVERS = Path(__file__).parent.parent / "fixtures" / "drivers"
REQUIRED = {
    "driver_name": "echo mine",
    "driver_display_name": "echo Mine",
    "driver_cli_binary": "echo mine-cli",
    "driver_valid_tools": 'VALID_TOOL_PATTERNS=("read")',
    "driver_build_command": 'CLAUDE_CMD_ARGS=(mine-cli "$(cat "$1")" "$2" "$3")',
}


@pytest.fixture
def host(tmp_path: Path) -> Callable[..., Host]:
    """A driver with the required hooks, some of them replaced, and others added."""

    def make(text: str = "", without: str = "", variables: dict[str, str] | None = None, **hooks: str) -> Host:
        body = {**REQUIRED, **hooks}
        body.pop(without, None)
        path = tmp_path / "mine.sh"
        path.write_text(text + "\n".join(f"{name}() {{\n{code}\n}}" for name, code in body.items()) + "\n")
        return Host(path, tmp_path, variables or {}, {"PATH": os.environ["PATH"]})

    return make


def prompt(tmp_path: Path, text: str = "do it") -> Path:
    path = tmp_path / "prompt.md"
    path.write_text(text)
    return path


def test_optional_hooks_have_defaults(host: Callable[..., Host]) -> None:
    described = host().describe()
    assert (described.name, described.title, described.binary) == ("mine", "Mine", "mine-cli")
    assert described.tools == ("read",)
    assert (described.allow_list, described.sessions, described.live) == (False, True, True)
    assert described.filter == "empty"
    assert not described.prepare_live_command


@pytest.mark.parametrize("hook", REQUIRED)
def test_a_missing_hook_is_named(host: Callable[..., Host], hook: str) -> None:
    with pytest.raises(UsageError, match=rf"lacks a required hook: {hook}$"):
        host(without=hook).describe()


def test_all_missing_hooks_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "none.sh"
    path.write_text("driver_name() { echo x; }\n")
    with pytest.raises(UsageError, match="driver_display_name, driver_cli_binary, driver_valid_tools, driver_build"):
        Host(path, tmp_path, {}, os.environ).describe()


def test_every_byte_of_the_prompt_arrives(host: Callable[..., Host], tmp_path: Path) -> None:
    text = "first\n\n  'second' \"third\" $HOME `x` \\ \t é \udcff end"
    path = tmp_path / "prompt.md"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    built = host().command(path, "two\nlines", "", live=True)
    assert built.argv == ["mine-cli", text, "two\nlines", ""]


def test_other_output_of_a_hook_is_not_part_of_the_command(host: Callable[..., Host], tmp_path: Path) -> None:
    noisy = host("echo loading\n", driver_build_command='echo building; CLAUDE_CMD_ARGS=(mine-cli "$1"); echo built')
    assert noisy.describe().name == "mine"
    assert noisy.command(prompt(tmp_path), "", "", live=True).argv[0] == "mine-cli"


def test_the_live_command_is_the_drivers_own(host: Callable[..., Host], tmp_path: Path) -> None:
    mine = host(driver_prepare_live_command='LIVE_CMD_ARGS=("${CLAUDE_CMD_ARGS[0]}" --live)')
    assert mine.command(prompt(tmp_path), "", "", live=True).argv == ["mine-cli", "--live"]
    assert mine.command(prompt(tmp_path), "", "", live=False).argv == ["mine-cli", "do it", "", ""]


def test_without_a_live_command_the_normal_one_is_used(host: Callable[..., Host], tmp_path: Path) -> None:
    built = host(driver_prepare_live_command="LIVE_CMD_ARGS=(half); return 1").command(
        prompt(tmp_path), "", "", live=True
    )
    assert (built.argv[:2], built.live) == (["mine-cli", "do it"], False)


def test_the_error_says_why_a_driver_built_no_command(host: Callable[..., Host], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"returned 7\):\n  the key is missing"):
        host(driver_build_command="echo the key is missing >&2; return 7").command(prompt(tmp_path), "", "", live=True)
    with pytest.raises(UsageError, match="did not build a command"):
        host(driver_build_command="CLAUDE_CMD_ARGS=()").command(prompt(tmp_path), "", "", live=True)


def test_a_syntax_error_in_a_driver_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.sh"
    hooks = "\n".join(f"{name}() {{ {code}; }}" for name, code in REQUIRED.items())
    path.write_text(f"{hooks}\nif [[ ; then\n")
    with pytest.raises(UsageError, match=r"(?s)failed.*broken\.sh: line 6"):
        Host(path, tmp_path, {}, os.environ).describe()


def test_a_file_may_end_with_a_test_that_fails(host: Callable[..., Host], tmp_path: Path) -> None:
    mine = host()
    mine.driver.write_text(mine.driver.read_text() + '[[ -n "" ]] && echo never\n')
    assert mine.describe().name == "mine"


def test_the_globals_of_the_convention_are_set_and_others_are_an_error(
    host: Callable[..., Host], tmp_path: Path
) -> None:
    names = [
        "CLAUDE_USE_CONTINUE",
        "CLAUDE_OUTPUT_FORMAT",
        "CLAUDE_ALLOWED_TOOLS",
        "CLAUDE_PERMISSION_MODE",
        "RALPHRC_FILE",
        "DRIVER_DISPLAY_NAME",
        "CLAUDE_CODE_CMD",
    ]
    uses = " ".join(f'"${name}"' for name in names)
    made = host("set -u\n", driver_build_command=f"CLAUDE_CMD_ARGS=({uses})").command(
        prompt(tmp_path), "", "", live=False
    )
    assert made.argv == ["", "", "", "", "", "Mine", "mine-cli"]
    with pytest.raises(UsageError, match="NOBODY_SET_THIS: unbound variable"):
        host(driver_build_command='CLAUDE_CMD_ARGS=("$NOBODY_SET_THIS")').command(prompt(tmp_path), "", "", live=True)


def test_a_hook_that_exits_is_an_error(host: Callable[..., Host]) -> None:
    with pytest.raises(UsageError):
        host(driver_valid_tools="exit 4").describe()
    with pytest.raises(UsageError, match="driver_name prints nothing"):
        host(driver_name="exit 4").describe()


def test_a_hook_that_hangs_is_killed(host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "_TIMEOUT", 0.3)
    started = time.monotonic()
    with pytest.raises(UsageError, match="did not answer"):
        host(driver_valid_tools="sleep 60 & sleep 60").describe()
    assert time.monotonic() - started < 5


def test_a_process_that_a_hook_leaves_behind_does_not_delay_it(host: Callable[..., Host], tmp_path: Path) -> None:
    started = time.monotonic()
    host(driver_build_command='sleep 3 & CLAUDE_CMD_ARGS=(mine-cli "$1")').command(prompt(tmp_path), "", "", live=True)
    assert time.monotonic() - started < 2


def test_a_helper_beside_the_driver_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "with space" / "drivers"
    shutil.copytree(DRIVERS, folder)
    host = Host(folder / "cursor.sh", tmp_path, {"CLAUDE_USE_CONTINUE": "true"}, os.environ)
    argv = host.command(prompt(tmp_path, "a\nb\n"), "", "s1", live=True).argv
    assert argv == [
        str(folder / "cursor-agent-wrapper.sh"),
        *("cursor-agent", "-p", "--output-format", "stream-json", "--resume", "s1", "a\nb"),
    ]


def test_a_hook_that_the_driver_does_not_define_has_no_output(host: Callable[..., Host]) -> None:
    assert host().output_of("driver_fallback_session_id", "file") is None
    assert host().available() is None
    assert host(driver_check_available="return 1").available() is False
    assert host(variables={"RALPHRC_FILE": "rc"}).output_of("driver_permission_denial_help") is not None


# -- names and tools


def test_a_name_cannot_lead_out_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "project" / ".ralph" / "drivers").mkdir(parents=True)
    project = tmp_path / "project"
    outside = tmp_path / "outside.sh"
    outside.write_text("")
    for name in ("../../../outside", "a/b", "..", "", "x..y", "-x"):
        with pytest.raises(UsageError, match="is not a valid driver name"):
            locate(name, project, ".ralphrc:1")
    (project / ".ralph" / "drivers" / "link.sh").symlink_to(outside)
    with pytest.raises(UsageError, match="a link out of the project"):
        locate("link", project, ".ralphrc:1")
    assert locate(str(outside), project, "--driver") == outside
    with pytest.raises(UsageError, match="there is no driver"):
        locate("./none.sh", project, "--driver")
    assert locate("none", project, "--driver") is None


def test_drivers_are_found_in_both_folders(tmp_path: Path) -> None:
    for folder in (".ralph/drivers", "ralph/drivers"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.sh").write_text("")
        assert locate("x", tmp_path, ".ralphrc:1") == tmp_path / folder / "x.sh"


@pytest.mark.parametrize(
    ("tool", "valid"),
    [
        ("Read", True),
        ("Bash", True),
        ("Bash(cargo *)", True),
        ("shell(npm:*)", True),
        ("shell", False),
        ("Reed", False),
        ("Bash(open", False),
        ("Other(x)", False),
    ],
)
def test_a_tool_is_valid_by_its_name_or_with_arguments(tool: str, valid: bool) -> None:
    assert is_valid_tool(tool, ("Read", "Bash", "shell(git:*)")) is valid
