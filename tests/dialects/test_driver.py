"""Platform drivers, run by the real command."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from driver_project import DRIVERS, PROMPT, ROOT, Project, claude, says, status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]


# -- the skeleton


def test_the_skeleton_driver_runs_unchanged(project: Project, ralph: Ralph) -> None:
    project.rc('PLATFORM_DRIVER="my-platform"')
    project.drivers("ralph/drivers")
    project.cli(
        "my-platform",
        'echo "{\\"session_id\\":\\"s-$n\\"}"\nif [ "$n" -ge 2 ]; then '
        + says(status("true"))
        + "\nelse\n"
        + says(status("false"))
        + "\nfi",
    )
    done = ralph("run", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, _ = project.calls("my-platform")
    assert first[0] == "--prompt"
    assert first[2:] == ["--output-format", "json", "--context", "Loop #1."]
    assert second[2:] == ["--output-format", "json", "--session", "s-1", "--context", "Loop #2."]
    assert "EXIT_SIGNAL: true" in done.stdout


def test_dry_run_shows_the_command_and_the_convention_and_runs_nothing(project: Project, ralph: Ralph) -> None:
    project.rc('PLATFORM_DRIVER="claude-code"', 'ALLOWED_TOOLS="Read,Bash(git *)"')
    project.drivers()
    project.cli("claude", "exit 9")
    done = ralph("run", "--dry-run")
    assert done.returncode == 0, done.stderr
    for part in (
        "driver (.ralph/drivers/claude-code.sh)",
        "claude-code (Claude Code)",
        "stream-json",
        "bypassPermissions",
        "'Bash(git *)'",
        "--include-partial-messages",
        "claude (from the driver's name)",
    ):
        assert part in done.stdout
    assert re.search(r"^  driver +claude-code +\.ralphrc:1$", done.stdout, re.MULTILINE)
    assert project.calls("claude") == []


# -- a driver of a known agent


def test_a_known_agents_stream_is_read_and_its_session_resumed(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=claude-code", "CLAUDE_PERMISSION_MODE=plan")
    project.drivers()
    project.cli(
        "claude",
        'if [ "$n" = 1 ]; then\n'
        + says(*claude("Working.\n" + status("false")))
        + "\nelse\n"
        + says("not JSON", *claude("Done.\n" + status("true"), session="s-2"))
        + "\nfi",
    )
    done = ralph("run", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, _ = project.calls("claude")
    assert first[first.index("--permission-mode") + 1] == "plan"
    assert "--resume" not in first
    assert second[second.index("--resume") + 1] == "s-1"
    assert first[first.index("-p") + 1] == PROMPT.rstrip("\n")
    ends = project.metas("iteration_end")
    assert [e["session_id"] for e in ends] == ["s-1", "s-2", "s-2"]


def test_a_denial_prints_the_drivers_help_and_needs_a_person(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=claude-code")
    project.drivers()
    project.cli("claude", says(*claude("I could not.", permission_denials=[{"tool_name": "Bash"}])))
    done = ralph("run", "5")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "Keep CLAUDE_PERMISSION_MODE=bypassPermissions in .ralphrc (Claude Code)" in done.stdout


def test_tools_are_checked_if_the_driver_has_a_list(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=claude-code")
    project.drivers()
    project.cli("claude", says(*claude(status("true"))))
    done = ralph("run", "--allowed-tools", "Reed,Bash(cargo *)")
    assert done.returncode == 64
    assert "'Reed' (did you mean 'Read'?)" in done.stderr
    assert project.calls("claude") == []
    assert ralph("run", "--allowed-tools", "Read,Bash(cargo *)").returncode == 0
    call = project.calls("claude")[0]
    assert call[call.index("--allowedTools") + 1 :][:2] == ["Read", "Bash(cargo *)"]


def test_a_driver_without_a_list_says_that_it_ignores_it(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=opencode")
    project.drivers()
    project.cli("opencode", says('{"type":"text","part":{"type":"text","text":"hello"}}'))
    done = ralph("run", "1", "--allowed-tools", "Nonsense")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "OpenCode ignores the list of allowed tools" in done.stdout


def test_an_agent_that_writes_plain_text_is_read(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=copilot")
    project.drivers()
    project.cli("copilot", 'if [ "$n" = 1 ]; then echo thinking; else\n' + says("Done.", "", status("true")) + "\nfi")
    done = ralph("run", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    calls = project.calls("copilot")
    assert [c[:3] for c in calls] == [["--yolo", "-s", "-p"]] * 3
    assert calls[1][3] == "Loop #2.\n\n" + PROMPT.rstrip("\n")
    assert "cannot resume a session" not in done.stdout  # it was not requested


def test_a_driver_without_sessions_refuses_the_flag(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=copilot")
    project.drivers()
    project.cli("copilot", "echo hello")
    done = ralph("run", "--continue-session")
    assert done.returncode == 64
    assert "cannot resume a session" in done.stderr


def test_codex_is_resumed_by_its_thread(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=codex")
    project.drivers()
    item = {"type": "agent_message", "text": "Done.\n" + status("true")}
    project.cli(
        "codex",
        'echo \'{"type":"thread.started","thread_id":"t-1"}\'\nif [ "$n" -ge 2 ]; then\n'
        + says(json.dumps({"type": "item.completed", "item": {"id": "i", **item}}))
        + "\nelse\n"
        + says(json.dumps({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "so far"}}))
        + '\nfi\necho \'{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":2}}\'',
    )
    done = ralph("run", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.calls("codex")[1][:3] == ["exec", "resume", "t-1"]
    assert project.metas("iteration_end")[0]["usage"]["completion_tokens"] == 2


# -- sessions


def test_the_drivers_own_hook_finds_the_session_first(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=opencode")
    project.drivers()
    project.cli("opencode", says('{"session":{"id":"own"},"sessionId":"generic"}'))
    ralph("run", "2", "--transcript", "plain")
    assert project.calls("opencode")[1][3:6] == ["--continue", "--session", "own"]


def test_then_the_agents_output_and_then_the_fallback_hook(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=opencode")
    project.drivers()
    project.cli("opencode", says('{"metadata":{"session_id":"generic"}}'))
    ralph("run", "2", "--transcript", "plain")
    assert project.calls("opencode")[1][5] == "generic"
    (project.bin / "opencode.calls").unlink()
    project.cli("opencode", 'if [ "$1" = session ]; then echo \'[{"id":"last"}]\'; else echo hello; fi')
    ralph("run", "2", "--transcript", "plain")
    assert [c[:2] for c in project.calls("opencode")][1] == ["session", "list"]
    assert project.calls("opencode")[2][5] == "last"


def test_every_iteration_is_fresh_without_session_continuity(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform", "SESSION_CONTINUITY=false")
    project.drivers()
    project.cli("my-platform", 'echo \'{"session_id":"s"}\'')
    ralph("run", "2")
    assert all("--session" not in c and "--context" not in c for c in project.calls("my-platform"))


# -- without a driver file


def test_without_a_driver_file_ralphs_own_agent_runs(project: Project, ralph: Ralph) -> None:
    """Most projects of this convention have only .ralphrc and .ralph/PROMPT.md."""
    project.rc('ALLOWED_TOOLS="Write,Read,NoSuchTool"', "CLAUDE_CODE_CMD=claude", "CLAUDE_MODEL=some-model")
    project.cli(
        "claude",
        'if [ "$1" = --version ]; then echo "2.1.0 (Claude Code)"; exit; fi\n' + says(*claude(status("true"))),
    )
    done = ralph("run", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Claude Code has no such tools, so they are left out: NoSuchTool" in done.stdout
    assert "EXIT_SIGNAL: true" in done.stdout
    call = project.calls("claude")[-1]
    assert call[call.index("--model") + 1] == "some-model"


def test_tools_separated_by_blanks_are_a_list(project: Project, ralph: Ralph) -> None:
    project.rc('ALLOWED_TOOLS="Read Write Bash(git *)"', "CLAUDE_PERMISSION_MODE=plan")
    project.cli(
        "claude",
        'if [ "$1" = --version ]; then echo "2.1.0 (Claude Code)"; exit; fi\n' + says(*claude(status("true"))),
    )
    done = ralph("run", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    call = project.calls("claude")[-1]
    assert call[call.index("--allowedTools") + 1] == "Read,Write,Bash(git *)"
    assert "CLAUDE_PERMISSION_MODE=plan is ignored, because there is no driver file" in done.stdout


def test_a_ticked_plan_is_complete(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    (project.root / ".ralph" / "fix_plan.md").write_text("- [x] one\n- [ ] two\n")
    project.cli("my-platform", "echo ticking\nsed -i 's/\\[ \\]/[x]/' .ralph/fix_plan.md")
    done = ralph("run", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every box in fix_plan.md is ticked (2 of 2)" in done.stdout


def test_the_test_command_must_pass(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform", "TEST_COMMAND='! test -f broken'")
    project.drivers()
    project.cli("my-platform", '[ "$n" = 1 ] && touch broken || rm -f broken\n' + says(status("true")))
    done = ralph("run", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(project.calls("my-platform")) == 3, "the first claim is rejected, and then it takes two"


def test_one_claim_is_not_enough(project: Project, ralph: Ralph) -> None:
    """The convention's own tool wants two completion indicators."""
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    project.cli("my-platform", says("Done.", status("true")))
    done = ralph("run", "1")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "the agent said it is done 1 of 2 times in a row" in done.stdout
    done = ralph("run", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(project.metas("iteration_end")) == 2
    assert "2 times in a row" in done.stdout


def test_a_claim_that_contradicts_the_boxes_is_rejected(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    (project.root / ".ralph" / "@fix_plan.md").write_text("- [x] one\n- [ ] two\n- [~] three\n")
    project.cli("my-platform", says("Done.", status("true")))
    done = ralph("run", "3")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "but 2 boxes are still open in @fix_plan.md" in done.stdout


def test_a_claim_with_a_ticked_plan_is_enough(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    (project.root / ".ralph" / "fix_plan.md").write_text("- [ ] one\n")
    project.cli("my-platform", "sed -i 's/\\[ \\]/[x]/' .ralph/fix_plan.md\n" + says("Done.", status("true")))
    done = ralph("run", "1")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_driver_given_by_its_path_needs_no_other_file(repo: Path, project: Project, ralph: Ralph) -> None:
    shutil.rmtree(repo / ".ralph")
    project.cli("my-platform", says(status("true")))
    done = ralph("run", "2", "--driver", str(DRIVERS / "my-platform.sh"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--context" not in project.calls("my-platform")[0]


def test_the_projects_own_files_in_dot_ralph_stay_visible_to_git(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform")
    project.drivers()
    project.cli("my-platform", says(status("true")))
    ralph("run", "1")
    listed = subprocess.run(
        ["git", "status", "--short", "--untracked-files=all"],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ".ralph/PROMPT.md" in listed
    assert "runs/" not in listed


# -- doctor and agents


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.0.76", "2.0.76, no version was tested"), ("1.9.9", "1.9.9, too old: 2.0.76 or later is needed")],
)
def test_doctor_shows_version_minimum_and_command(project: Project, ralph: Ralph, version: str, expected: str) -> None:
    project.rc("PLATFORM_DRIVER=claude-code")
    project.drivers()
    project.cli("claude", f"echo '{version} (Claude Code)'")
    shown = ralph("doctor").stdout
    for part in (
        f"claude-code (Claude Code) {expected}",
        "driver_min_version: 2.0.76",
        "stream-json",
        "live output: separate command",
    ):
        assert part in shown


def test_doctor_reports_a_cli_that_the_driver_finds_missing(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=picky")
    text = (DRIVERS / "my-platform.sh").read_text().replace("command -v my-platform &>/dev/null", "return 1")
    (project.drivers() / "picky.sh").write_text(text)
    project.cli("my-platform", "exit 0")
    assert "driver_check_available reports that its CLI is not available" in ralph("doctor").stdout


def test_agents_shows_the_projects_driver_and_lists_the_others(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=opencode")
    project.drivers()
    project.cli("opencode", "echo 1.0.5")
    shown = ralph("agents").stdout
    row = next(line for line in shown.splitlines() if " driver " in line)
    assert row.split() == ["opencode", "1.0.5", "driver", "yes", "yes", "yes", "yes", "yes", "yes", "-", "-"]
    assert "sessions: id from driver hook, agent output, fallback hook" in shown
    assert "Other drivers of this project (--driver NAME): claude-code, codex, copilot, cursor, my-platform" in shown


# -- the example


@pytest.mark.needs("jq")
def test_the_example_runs_to_its_end(tmp_path: Path, ralph: Ralph) -> None:
    copy = tmp_path / "example"
    shutil.copytree(ROOT / "examples" / "driver", copy)
    done = ralph("run", "10", cwd=copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Iterations 3" in done.stdout
    assert "a line that is not JSON" in done.stdout
    assert "Working on: Write a greeting" in done.stdout
    shown = ralph("config", cwd=copy).stdout
    assert "5m                                .ralphrc:6" in shown


def test_ticking_a_box_is_progress(project: Project, ralph: Ralph) -> None:
    """Even though the fix plan is in .ralph/, like the journal."""
    project.rc("PLATFORM_DRIVER=my-platform", "CB_NO_PROGRESS_THRESHOLD=2")
    project.drivers()
    (project.root / ".ralph" / "fix_plan.md").write_text("- [ ] one\n" * 4)
    project.cli("my-platform", 'echo "ticking $n"\nsed -i "0,/\\[ \\]/s//[x]/" .ralph/fix_plan.md')
    done = ralph("run", "9")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(project.calls("my-platform")) == 4


def test_the_no_progress_threshold_of_the_file_applies(project: Project, ralph: Ralph) -> None:
    project.rc("PLATFORM_DRIVER=my-platform", "CB_NO_PROGRESS_THRESHOLD=2")
    project.drivers()
    project.cli("my-platform", 'echo "thinking $n"')
    assert ralph("run", "9").returncode == 4
    assert len(project.calls("my-platform")) == 2
