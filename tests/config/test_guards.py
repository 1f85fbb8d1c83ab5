"""A project may tighten a guard, never loosen it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ralph.config.guards import GUARDS, PROTECTED, Guard
from ralph.config.layers import Resolved, resolve
from ralph.config.settings import BY_NAME, default
from ralph.errors import UsageError
from ralph.loop.allowed import outside


def settled(
    folder: Path, project: str, user: str = "", environ: dict[str, str] | None = None, **flags: Any
) -> Resolved:
    own = Path(os.environ["HOME"]) / ".config" / "ralph" / "ralph.yml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(user)
    (folder / "ralph.yml").write_text(project)
    return resolve(folder, flags, environ=environ or {})


def test_every_guard_is_a_setting() -> None:
    assert GUARDS.keys() <= BY_NAME.keys()
    assert GUARDS.keys() >= PROTECTED


#: the setting, the project's value, the user's, and the stricter one
LOOSER = [
    ("mask", "no", "yes", True),
    ("redact_raw", "false", "true", True),
    ("exclusive", "no", "yes", True),
    ("interactive", "false", "true", True),
    ("preserve_anthropic_api_key", "true", "false", False),
    ("breaker_auto_reset", "true", "false", False),
    ("max_iterations", "0", "5", 5),
    ("max_iterations", "500", "5", 5),
    ("max_runtime", "8h", "1h", 3600.0),
    ("max_cost", "100", "2.5", 2.5),
    ("max_tokens", "0", "1000", 1000),
    ("max_failures", "50", "2", 2),
    ("max_calls_per_hour", "0", "10", 10),
    ("denied_after", "0", "1", 1),
    ("idle_timeout", "0", "5m", 300.0),
    ("wall_timeout", "9h", "1h", 3600.0),
    ("verify_timeout", "0", "1m", 60.0),
    ("confirmations", "1", "3", 3),
    ("allowed_paths", "[]", "[src]", ("src",)),
    ("allowed_tools", "[]", "[Read]", ("Read",)),
    ("allowed_tools", "[Bash]", "[Read]", ("Read",)),
    ("allowed_tools", "[Read, Bash, 'Edit(src/*)']", "[Read, Edit]", ("Read", "Edit(src/*)")),
    ("prices", "cheap.toml", "mine.toml", "mine.toml"),
    ("codex_sandbox", "danger-full-access", "read-only", "read-only"),
    ("verify_baseline", "true", "false", False),
]


@pytest.mark.parametrize(("name", "project", "user", "stricter"), LOOSER)
def test_the_stricter_value_counts_and_a_warning_names_both_files(
    tmp_path: Path, name: str, project: str, user: str, stricter: Any
) -> None:
    resolved = settled(tmp_path, f"{name}: {project}\n", f"{name}: {user}\n")
    assert getattr(resolved.settings, name) == stricter
    assert [each.name for each in resolved.loosened] == [name]
    warning = next(text for text in resolved.warnings if text.startswith(f"ralph.yml:1: {name}: "))
    assert ".config/ralph/ralph.yml:1" in warning
    assert "ralph trust" in warning
    assert ".config/ralph/ralph.yml:1" in resolved.origins[name]


@pytest.mark.parametrize(("name", "project", "user", "stricter"), LOOSER)
def test_an_approval_or_the_command_line_lets_the_looser_value_count(
    tmp_path: Path, name: str, project: str, user: str, stricter: Any
) -> None:
    loose = settled(tmp_path, f"{name}: {project}\n")
    looser = getattr(loose.settings, name) if name not in PROTECTED else not stricter
    settled(tmp_path, f"{name}: {project}\n", f"{name}: {user}\n")
    resolved = resolve(tmp_path, {}, environ={}, may_loosen=frozenset({name}))
    if project != "0":  # then it disables a limit, which a default does not allow either
        assert getattr(resolved.settings, name) == looser
    assert resolved.origins[name] == "ralph.yml:1"
    assert not resolved.loosened


@pytest.mark.parametrize(
    ("name", "project", "user", "stricter"), [row for row in LOOSER if row[0] not in ("prices", "allowed_tools")]
)
def test_a_stricter_project_counts_without_a_word(
    tmp_path: Path, name: str, project: str, user: str, stricter: Any
) -> None:
    resolved = settled(tmp_path, f"{name}: {user}\n", f"{name}: {project}\n")
    assert getattr(resolved.settings, name) == stricter
    assert resolved.loosened == ()


def test_a_tool_with_arguments_is_stricter_than_the_tool(tmp_path: Path) -> None:
    for project, user in (("[Edit, Bash]", "['Edit(src/*)', Read]"), ("['Edit(src/*)', Read]", "[Edit, Bash]")):
        resolved = settled(tmp_path, f"allowed_tools: {project}\n", f"allowed_tools: {user}\n")
        assert resolved.settings.allowed_tools == ("Edit(src/*)",)


@pytest.mark.parametrize(
    ("name", "flag", "value"),
    [("mask", "no", False), ("max_cost", "100", 100.0), ("allowed_paths", ["docs"], ("docs",)), ("verify", [""], ())],
)
def test_what_the_user_types_replaces_both(tmp_path: Path, name: str, flag: Any, value: Any) -> None:
    files = {"mask": "yes", "max_cost": "1", "allowed_paths": "[src]", "verify": "[make test]"}
    text = f"{name}: {files[name]}\n"
    assert getattr(settled(tmp_path, text, text, **{name: flag}).settings, name) == value
    if name != "verify":
        variable = {f"RALPH_{name.upper()}": flag if isinstance(flag, str) else ",".join(flag)}
        assert getattr(settled(tmp_path, text, text, variable).settings, name) == value


@pytest.mark.parametrize("name", ["env_deny", "mask_env", "mask_patterns", "verify"])
def test_lists_add_up_even_if_the_project_may_loosen_others(tmp_path: Path, name: str) -> None:
    for project, expected in (("[X]", ("MINE", "X")), ("[]", ("MINE",)), ("[MINE]", ("MINE",))):
        resolved = settled(tmp_path, f"{name}: {project}\n", f"{name}: [MINE]\n")
        assert getattr(resolved.settings, name) == expected
        assert not resolved.loosened
    settled(tmp_path, f"{name}: [X]\n", f"{name}: [MINE]\n")
    again = resolve(tmp_path, {}, environ={}, may_loosen=frozenset(GUARDS))
    assert getattr(again.settings, name) == ("MINE", "X")
    assert again.origins[name].endswith(".config/ralph/ralph.yml:1, ralph.yml:1")


@pytest.mark.parametrize("name", ["mask", "exclusive"])
def test_a_project_cannot_switch_off_what_protects_by_default(tmp_path: Path, name: str) -> None:
    resolved = settled(tmp_path, f"{name}: no\n")
    assert getattr(resolved.settings, name) is True
    assert resolved.origins[name] == "default"
    assert "looser than the default" in "\n".join(resolved.warnings)


LIMITS = [name for name, guard in GUARDS.items() if guard is Guard.LOWEST and default(name)]


@pytest.mark.parametrize("name", [name for name in LIMITS if name != "denied_after"])
def test_a_project_cannot_remove_a_default_limit_but_may_choose_another(tmp_path: Path, name: str) -> None:
    assert getattr(settled(tmp_path, f"{name}: 0\n").settings, name) == default(name)
    resolved = settled(tmp_path, f"{name}: 12345\n")
    assert getattr(resolved.settings, name) == 12345
    assert not resolved.loosened


def test_a_users_own_file_may_remove_a_default_limit(tmp_path: Path) -> None:
    assert settled(tmp_path, "", "max_iterations: 0\nmask: no\n").settings.max_iterations == 0


def test_adapters_keep_the_users_switches_and_lower_timeouts(tmp_path: Path) -> None:
    resolved = settled(
        tmp_path,
        "adapters:\n  claude: {timeout: 900}\n  codex: {enabled: true, timeout: 10}\n",
        "adapters:\n  claude: {timeout: 60}\n  codex: {enabled: false}\n  amp: {enabled: false}\n",
    )
    adapters = resolved.settings.adapters
    assert adapters["claude"].timeout == 60
    assert (adapters["codex"].enabled, adapters["codex"].timeout) == (False, 10)
    assert adapters["amp"].enabled is False


@pytest.mark.parametrize(
    ("project", "user", "allowed", "forbidden"),
    [
        ("[src/ui]", "[src]", ["src/ui/a.py"], ["src/b.py", "docs/c.md"]),
        ("[.]", "[src]", ["src/a.py"], ["docs/c.md"]),
        ("[src]", "['*.py']", ["src/a.py"], ["src/a.md", "b.py"]),
        ("[docs]", "[src]", [], ["docs/a.md", "src/a.py"]),
        ("['**']", "[./src/, README.md]", ["src/a.py", "README.md"], ["docs/a.md"]),
        ("['src/../docs']", "[src]", ["src/../docs/x"], ["docs/a.md"]),
    ],
)
def test_both_lists_of_allowed_paths_must_cover_a_file(
    tmp_path: Path, project: str, user: str, allowed: list[str], forbidden: list[str]
) -> None:
    paths = settled(tmp_path, f"allowed_paths: {project}\n", f"allowed_paths: {user}\n").settings.allowed_paths
    assert paths
    assert outside([*allowed, *forbidden], paths) == forbidden


def test_too_many_paths_are_an_error(tmp_path: Path) -> None:
    many = f"allowed_paths: [{', '.join(f'p{n}' for n in range(200))}]\n"
    with pytest.raises(UsageError, match=r"ralph\.yml:1: allowed_paths: there are too many"):
        settled(tmp_path, many, many)


@pytest.mark.parametrize(
    ("name", "user", "first", "second"),
    [
        ("adapters", "{claude: {timeout: 60}}", "{claude: {timeout: 900}}", "{claude: {timeout: 90000}}"),
        ("max_cost", "1", "1234567.5", "1234567.9"),
        ("idle_timeout", "1m", "900.25", "900.5"),
        ("allowed_paths", "[src]", f"[{'x' * 300}, a]", f"[{'x' * 300}, b]"),
    ],
)
def test_an_approval_of_one_looser_value_covers_no_other(
    tmp_path: Path, name: str, user: str, first: str, second: str
) -> None:
    (one,) = settled(tmp_path, f"{name}: {first}\n", f"{name}: {user}\n").loosened
    (other,) = settled(tmp_path, f"{name}: {second}\n", f"{name}: {user}\n").loosened
    assert one.text != other.text
    assert len(other.warning) < 600
