"""`.ralphrc` is read as data: values are the same as in bash, but nothing is ever executed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.config.layers import resolve
from ralph.dialects.detect import Dialect, Found, choose
from ralph.dialects.driver.config import layer
from ralph.dialects.driver.ralphrc import read
from ralph.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.config.layers import Resolved

ENVIRON = {"HOME": "/home/someone", "SET": "given"}

#: Lines whose values must be the same as in bash.
LINES = [
    "KEY=plain",
    "KEY=",
    'KEY="two words"',
    "KEY='single $HOME'",
    'KEY="in $HOME and ${HOME}/x"',
    "KEY=${SET:-other}",
    "KEY=${UNSET:-other}",
    'KEY="${UNSET:-a b}"',
    "KEY=${UNSET:-}",
    "KEY=${UNSET-x}",
    'KEY="${UNSET:-${SET:-deep}}"',
    'KEY="${UNSET:-"quoted default"}"',
    "KEY=value # a comment",
    "KEY=value#not-a-comment",
    'KEY="has # inside"',
    'KEY=a"b c"d',
    r'KEY="say \"hi\" and \$HOME and \\"',
    r"KEY=a\ b",
    "export KEY=exported",
    "  KEY=indented",
    'KEY="Write,Read,Bash(git *)"',
    'KEY="one;two three;four"',
    'KEY="first\nsecond"',
    'KEY="a,\\\nb"',
    "KEY=$SET$UNSET.$HOME",
    "KEY=a; OTHER=b",
    "KEY=a\nKEY+=b",
    'OTHER=x\nKEY="${OTHER:-y}"',
    'KEY="costs 5$"',
    "KEY='it'\\''s'",
    "KEY=a\r\nOTHER=b\r",
]


@pytest.mark.parametrize("text", LINES)
def test_a_value_is_the_same_as_in_bash(text: str) -> None:
    script = text.replace("\r", "") + "\nprintf '%s' \"$KEY\""
    bash = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=ENVIRON, check=True).stdout
    file = read(text + "\n", ENVIRON)
    assert file.values["KEY"].value == bash
    assert not file.problems


@pytest.mark.parametrize(
    "code", ["$(touch ran)", "`touch ran`", '"$(touch ran)"', '"x`touch ran`"', "${A:-$(touch ran)}"]
)
def test_a_command_substitution_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".ralphrc").write_text(f"# first\n\nTEST_COMMAND={code}\nMAX_CALLS_PER_HOUR=7\n")
    with pytest.raises(
        UsageError, match=r"\.ralphrc:3: TEST_COMMAND: .* is not supported, because this file is never executed"
    ):
        settings(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_single_quotes_and_comments_may_contain_command_substitutions() -> None:
    file = read("# `date` and $(date)\nKEY='$(date)'\nTWO=\"\\$(date) \\`date\\`\"\n", {})
    assert (file.values["KEY"].value, file.values["TWO"].value) == ("$(date)", "$(date) `date`")
    assert not file.problems


def test_an_open_quote_is_a_problem() -> None:
    assert read('A=1\nKEY="open\n', {}).problems == [(2, 'KEY: the quote " is not closed')]


def test_code_is_skipped_with_its_assignments() -> None:
    file = read('if [ -n "$CI" ]; then\n  KEY=in-ci\nfi\nsource other\nAFTER=1\n', {})
    assert "KEY" not in file.values
    assert file.values["AFTER"].value == "1"
    assert [line for line, _ in file.remarks] == [1, 4]


@given(st.text(alphabet="KEY=ab\n\r\t \"'$`{}()[]:-+\\#;0é\udcff", max_size=80))
def test_any_file_is_read_to_its_end(text: str) -> None:
    file = read(text, {"KEY": "given"})
    assert all(1 <= line <= text.count("\n") + 1 for line, _ in (*file.problems, *file.remarks))


# -- as settings


def settings(project: Path, environ: dict[str, str] | None = None, **flags: object) -> Resolved:
    found, _ = choose(project, "auto")
    assert found is not None
    assert found.dialect is Dialect.DRIVER
    environ = environ or {}
    return resolve(project, flags, environ=environ, dialect=layer(found, project, environ))


def rc(project: Path, *lines: str, where: str = ".ralphrc") -> None:
    (project / where).parent.mkdir(exist_ok=True)
    (project / where).write_text("\n".join(lines) + "\n")


def test_keys_become_settings_with_their_lines(tmp_path: Path) -> None:
    rc(
        tmp_path,
        'PLATFORM_DRIVER="codex"',
        "CLAUDE_TIMEOUT_MINUTES=20",
        'ALLOWED_TOOLS="Write,Bash(git log, git diff)"',
        "SESSION_CONTINUITY=false",
        "SESSION_EXPIRY_HOURS=2",
        'TEST_COMMAND="make test"',
        'QUALITY_GATES="make lint; make types"',
        "QUALITY_GATE_MODE=block",
        "QUALITY_GATE_TIMEOUT=90",
        "MAX_CALLS_PER_HOUR=50",
        "CB_NO_PROGRESS_THRESHOLD=3",
        "CB_SAME_ERROR_THRESHOLD=4",
        "CB_COOLDOWN_MINUTES=10",
        "CB_AUTO_RESET=true",
    )
    resolved = settings(tmp_path)
    s = resolved.settings
    assert (s.driver, s.wall_timeout, s.continue_session, s.session_expiry) == ("codex", 1200.0, False, 7200.0)
    assert s.allowed_tools == ("Write", "Bash(git log, git diff)")
    assert (s.verify, s.verify_timeout) == (("make test", "make lint", "make types"), 90.0)
    assert (s.max_calls_per_hour, s.stuck_after, s.same_error_after) == (50, 3, 4)
    assert (s.breaker_cooldown, s.breaker_auto_reset) == (600.0, True)
    assert resolved.origins["wall_timeout"] == ".ralphrc:2"
    assert resolved.origins["verify"] == ".ralphrc:6, .ralphrc:7"
    (warning,) = resolved.warnings
    assert warning.startswith(".ralphrc:14: CB_AUTO_RESET: when stuck, ralph waits for CB_COOLDOWN_MINUTES")


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    rc(tmp_path, "CLAUDE_TIMEOUT_MINUTES=20", "PLATFORM_DRIVER=${PLATFORM_DRIVER:-one}")
    environ = {"CLAUDE_TIMEOUT_MINUTES": "30", "PLATFORM_DRIVER": "two"}
    resolved = settings(tmp_path, environ)
    assert (resolved.settings.wall_timeout, resolved.origins["wall_timeout"]) == (1800.0, "CLAUDE_TIMEOUT_MINUTES")
    assert (resolved.settings.driver, resolved.origins["driver"]) == ("two", "PLATFORM_DRIVER")
    resolved = settings(tmp_path, environ, wall_timeout="1h", driver="three")
    assert (resolved.settings.wall_timeout, resolved.settings.driver) == (3600.0, "three")


def test_another_agent_on_the_command_line_replaces_the_driver(tmp_path: Path) -> None:
    rc(tmp_path, "PLATFORM_DRIVER=one")
    resolved = settings(tmp_path, agent="codex")
    assert (resolved.settings.agent, resolved.settings.driver) == ("codex", None)
    assert resolved.settings.signals == "status"  # the prompt asks for a block, whichever agent reads it


def test_unset_keys_have_the_conventions_defaults(tmp_path: Path) -> None:
    rc(tmp_path, "PROJECT_NAME=x")
    s = settings(tmp_path).settings
    assert (s.driver, s.wall_timeout, s.continue_session, s.session_expiry) == ("claude-code", 900.0, True, 86400.0)


def test_unknown_keys_get_a_suggestion_and_unsupported_ones_are_listed_once(tmp_path: Path) -> None:
    rc(tmp_path, "SESSION_EXPIRY_HORS=3", "REVIEW_MODE=off", "CLAUDE_AUTO_UPDATE=false", "PROJECT_TYPE=go")
    assert settings(tmp_path).warnings == [
        ".ralphrc: not supported yet, ignored: REVIEW_MODE, CLAUDE_AUTO_UPDATE",
        (
            ".ralphrc:1: unknown key 'SESSION_EXPIRY_HORS' (did you mean 'SESSION_EXPIRY_HOURS'?); "
            "only a driver can use it"
        ),
    ]


def test_a_misspelled_limit_is_an_error_but_a_similar_name_is_not(tmp_path: Path) -> None:
    rc(tmp_path, "MAX_CALLS_PER_HOR=3")
    with pytest.raises(UsageError, match=r"MAX_CALLS_PER_HOR' \(did you mean 'MAX_CALLS_PER_HOUR'\?\)"):
        settings(tmp_path)
    rc(tmp_path, "CB_SAME_OUTPUT_THRESHOLD=3")
    assert "it is ignored" not in settings(tmp_path).warnings[0]


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    rc(
        tmp_path,
        "CLAUDE_TIMEOUT_MINUTES=soon",
        "CB_NO_PROGRESS_THRESHOLD=few",
        "QUALITY_GATES=x",
        "QUALITY_GATE_MODE=never",
    )
    with pytest.raises(UsageError) as caught:
        settings(tmp_path)
    for part in (
        ".ralphrc:1: CLAUDE_TIMEOUT_MINUTES",
        ".ralphrc:2: CB_NO_PROGRESS_THRESHOLD",
        ".ralphrc:4: QUALITY_GATE_MODE",
    ):
        assert part in str(caught.value)


MUST_PASS = "must pass before the work counts as complete, although QUALITY_GATE_MODE is"
NOT_RUN = "are not run because QUALITY_GATE_MODE is"


@pytest.mark.parametrize(
    ("mode", "verify", "warnings"),
    [
        ("QUALITY_GATE_MODE=block", ("make test", "make lint"), []),
        ("QUALITY_GATE_MODE=circuit-breaker", ("make test", "make lint"), []),
        (
            'QUALITY_GATE_MODE="${QUALITY_GATE_MODE:-warn}"',
            ("make test",),
            [
                f".ralphrc:1: TEST_COMMAND {MUST_PASS} warn (.ralphrc:3)",
                f".ralphrc:2: QUALITY_GATES {NOT_RUN} warn (.ralphrc:3); set it to block to run them",
            ],
        ),
        (
            "",
            ("make test", "make lint"),
            [
                f".ralphrc:{line}: {key} {MUST_PASS} not set"
                for line, key in ((1, "TEST_COMMAND"), (2, "QUALITY_GATES"))
            ],
        ),
    ],
)
def test_what_the_mode_of_the_gates_means(
    tmp_path: Path, mode: str, verify: tuple[str, ...], warnings: list[str]
) -> None:
    rc(tmp_path, "TEST_COMMAND='make test'", "QUALITY_GATES='make lint'", mode)
    resolved = settings(tmp_path)
    assert (resolved.settings.verify, resolved.warnings) == (verify, warnings)


def test_the_file_in_dot_ralph_takes_precedence(tmp_path: Path) -> None:
    rc(tmp_path, "CLAUDE_TIMEOUT_MINUTES=1")
    rc(tmp_path, "CLAUDE_TIMEOUT_MINUTES=2", where=".ralph/.ralphrc")
    resolved = settings(tmp_path)
    assert (resolved.settings.wall_timeout, resolved.origins["wall_timeout"]) == (120.0, ".ralph/.ralphrc:1")


def test_prompt_and_fix_plan_are_found_in_dot_ralph(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    for name in ("PROMPT.md", "OTHER.md", "@fix_plan.md"):
        (tmp_path / ".ralph" / name).write_text("- [ ] x\n")
    s = settings(tmp_path).settings
    assert (s.prompt_file, s.fix_plan) == (".ralph/PROMPT.md", ".ralph/@fix_plan.md")
    rc(tmp_path, "PROMPT_FILE=OTHER.md")
    assert settings(tmp_path).settings.prompt_file == ".ralph/OTHER.md"


def test_without_its_files_the_convention_has_no_effect(tmp_path: Path) -> None:
    assert choose(tmp_path, "auto") == (None, [])
    assert resolve(tmp_path, {}, environ={}).settings.driver is None


def test_the_convention_is_detected_by_a_file_in_dot_ralph(tmp_path: Path) -> None:
    rc(tmp_path, "PLATFORM_DRIVER=x", where=".ralph/.ralphrc")
    found, _ = choose(tmp_path, "auto")
    assert found == Found(Dialect.DRIVER, tmp_path / ".ralph" / ".ralphrc", "found .ralph/.ralphrc")


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        ([], 1),
        (["PERMISSION_DENIAL_MODE=continue"], 0),
        (["PERMISSION_DENIAL_MODE=halt", "CB_PERMISSION_DENIAL_THRESHOLD=7"], 1),
        (["PERMISSION_DENIAL_MODE=threshold"], 2),
        (["PERMISSION_DENIAL_MODE=threshold", "CB_PERMISSION_DENIAL_THRESHOLD=7"], 7),
    ],
)
def test_the_number_of_denials_in_a_row_that_stop_the_run(tmp_path: Path, lines: list[str], after: int) -> None:
    rc(tmp_path, "PLATFORM_DRIVER=x", *lines)
    assert settings(tmp_path).settings.denied_after == after


def test_an_invalid_denial_mode_is_reported(tmp_path: Path) -> None:
    rc(tmp_path, "PERMISSION_DENIAL_MODE=ask")
    with pytest.raises(UsageError, match="expected continue, halt or threshold"):
        settings(tmp_path)
    rc(tmp_path, "PERMISSION_DENIAL_MODE=threshold", "CB_PERMISSION_DENIAL_THRESHOLD=many")
    with pytest.raises(UsageError, match="CB_PERMISSION_DENIAL_THRESHOLD must be a whole number"):
        settings(tmp_path)


# -- the files of the convention's users

#: Lines of the convention's own templates, the setting that each must become, and its value.
OBEYED = [
    ('PLATFORM_DRIVER="${PLATFORM_DRIVER:-claude-code}"', "driver", "claude-code"),
    ("MAX_CALLS_PER_HOUR=100", "max_calls_per_hour", 100),
    ("MAX_LOOPS=30", "max_iterations", 30),
    ("MAX_ITERATIONS=30", "max_iterations", 30),
    ("CLAUDE_TIMEOUT_MINUTES=15", "wall_timeout", 900.0),
    ('ALLOWED_TOOLS="Write,Read,Bash(git *)"', "allowed_tools", ("Write", "Read", "Bash(git *)")),
    ('ALLOWED_TOOLS="Read Write Bash(git *)"', "allowed_tools", ("Read", "Write", "Bash(git *)")),
    (
        'ALLOWED_TOOLS="Read, Write  Bash(a, b c) mcp__x__*"',
        "allowed_tools",
        ("Read", "Write", "Bash(a, b c)", "mcp__x__*"),
    ),
    ('ALLOWED_TOOLS=("Read" # why\n  "Bash(git *)"\n)', "allowed_tools", ("Read", "Bash(git *)")),
    ("SESSION_CONTINUITY=true", "continue_session", True),
    ("SESSION_EXPIRY_HOURS=24", "session_expiry", 86400.0),
    ("CB_NO_PROGRESS_THRESHOLD=3", "stuck_after", 3),
    ("CB_SAME_ERROR_THRESHOLD=5", "same_error_after", 5),
    ("CB_COOLDOWN_MINUTES=30", "breaker_cooldown", 1800.0),
    ("CB_AUTO_RESET=false", "breaker_auto_reset", False),
    ("PERMISSION_DENIAL_MODE=continue", "denied_after", 0),
    ("QUALITY_GATE_TIMEOUT=120", "verify_timeout", 120.0),
    ("QUALITY_GATE_MODE=block; QUALITY_GATES=(a 'b c')", "verify", ("a", "b c")),
    ('PROMPT_FILE="PROMPT.md"', "prompt_file", "PROMPT.md"),
    ('FIX_PLAN_FILE="@fix_plan.md"', "fix_plan", "@fix_plan.md"),
]


@pytest.mark.parametrize(("line", "name", "value"), OBEYED)
def test_a_key_becomes_the_setting_with_its_meaning(tmp_path: Path, line: str, name: str, value: object) -> None:
    rc(tmp_path, line)
    resolved = settings(tmp_path)
    assert getattr(resolved.settings, name) == value
    assert resolved.warnings == []


#: Lines of the convention's own templates that ralph cannot obey, and what it says about them.
NAMED = [
    *(
        (line, f"not supported yet, ignored: {line.partition('=')[0]}")
        for line in (
            'TASK_SOURCES="local"', 'GITHUB_TASK_LABEL="ralph-task"', 'BEADS_FILTER="status:open"',
            "CB_OUTPUT_DECLINE_THRESHOLD=70", "CLAUDE_AUTO_UPDATE=true", 'CLAUDE_MIN_VERSION="2.0.76"',
            "RALPH_VERBOSE=false", 'AGENT_FILE="@AGENT.md"', "MAX_TOKENS_PER_HOUR=0",
            "QUALITY_GATE_ON_COMPLETION_ONLY=true", "REVIEW_MODE=off", "REVIEW_ENABLED=false", "REVIEW_INTERVAL=5",
            'SANDBOX_DOCKER_IMAGE="ralph-sandbox:latest"', 'SANDBOX_E2B_TIMEOUT="3600"',
            "MAX_CONSECUTIVE_TEST_LOOPS=3", "CB_READ_ONLY_TIMEOUT_THRESHOLD=2",
            'RALPH_SHELL_INIT_FILE=""',
        )
    ),
    ('SANDBOX_PROVIDER="docker"', "there is no sandbox; the agent runs on this machine"),
    ("SESSION_CONTINUITY=1", "SESSION_CONTINUITY: only true turns it on, so '1' counts as false"),
    ("PR_ENABLED=true", "unknown key 'PR_ENABLED'"),
    ("OTHER=(a b)", "OTHER is an array"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "text"), NAMED)
def test_a_key_without_effect_is_named_and_stops_nothing(tmp_path: Path, line: str, text: str) -> None:
    rc(tmp_path, line)
    assert any(text in warning for warning in settings(tmp_path).warnings)


@pytest.mark.parametrize(
    "line", ["PROJECT_NAME='${PROJECT_NAME:-my-project}'", "PROJECT_TYPE=go", "CLAUDE_OUTPUT_FORMAT=json"]
)
def test_a_key_that_changes_nothing_needs_no_warning(tmp_path: Path, line: str) -> None:
    rc(tmp_path, line)
    assert settings(tmp_path).warnings == []
