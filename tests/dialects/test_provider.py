"""Whole runs in a repository with `.ralphex/config`, with wrappers that work, fail, hang or misbehave."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from standin_jq import put_jq

from processes import eventually, nothing_left_behind

if TYPE_CHECKING:
    from collections.abc import Callable

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

SAMPLES = Path(__file__).parent.parent / "fixtures" / "provider"
DONE = "<<<RALPHEX:ALL_TASKS_DONE>>>"


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts in these repositories are our own."""
    monkeypatch.setenv("RALPH_TRUST", "1")


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def delta(text: str) -> str:
    return json.dumps({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}})


def says(*lines: str, code: int = 0) -> str:
    """A wrapper that writes these lines."""
    return "cat <<'LINES'\n" + "\n".join(lines) + f"\nLINES\nexit {code}"


RESULT = '{"type":"result","result":""}'


def config(repo: Path, text: str = "", wrapper: str | None = None) -> None:
    (repo / ".ralphex").mkdir(exist_ok=True)
    (repo / ".ralphex" / "config").write_text(f"claude_command = scripts/wrapper.sh\nclaude_args =\n{text}\n")
    if wrapper is not None:
        program(repo / "scripts" / "wrapper.sh", wrapper)


def ends(repo: Path) -> list[dict[str, Any]]:
    lines = (repo / ".ralph" / "latest" / "events.jsonl").read_text().splitlines()
    metas = [json.loads(line).get("meta", {}) for line in lines]
    return [m for m in metas if m.get("kind") == "iteration_end"]


def first_end(repo: Path) -> dict[str, Any]:
    return ends(repo)[0]


def test_a_wrapper_of_the_project_runs_until_its_signal(repo: Path, ralph: Ralph) -> None:
    config(
        repo,
        wrapper=f"""
        printf '%s\\n' "$@" > args
        n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count
        if [ "$n" = 2 ]; then echo '{delta(DONE)}'; else echo '{delta("one task more")}'; fi
        echo '{RESULT}'""",
    )
    done = ralph("run")
    assert done.returncode == 0, done.stdout
    assert (repo / "count").read_text() == "3\n"
    assert (repo / "args").read_text() == "-p\nDo the work.\n\n"
    assert "provider convention: found .ralphex/config" in done.stdout
    assert (repo / ".ralph/latest/iterations/0001/stdout.raw").read_text().endswith(RESULT + "\n")


def test_claudes_default_arguments_are_used_if_claude_args_is_unset(repo: Path, ralph: Ralph) -> None:
    (repo / ".ralphex").mkdir()
    (repo / ".ralphex" / "config").write_text("task_model = opus:high\n")
    program(repo / "bin" / "claude", f"printf '%s ' \"$@\" > args; {says(delta(DONE), RESULT)}")
    done = ralph("run", env={"PATH": f"{repo / 'bin'}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stdout
    flags = "--dangerously-skip-permissions --output-format stream-json --verbose --model opus --effort high -p Do"
    assert (repo / "args").read_text().startswith(flags)


@pytest.mark.parametrize(
    ("lines", "outcome", "completed"),
    [
        ([delta("working\n<<<RALPHEX:ALL_"), delta(""), delta("TASKS_DONE>>>"), RESULT], "ok", True),
        (['{"type":"assistant","message":{"content":[{"type":"text","text":"' + DONE + '"}]}}', RESULT], "ok", True),
        (['{"type":"message_stop","message":{"content":[{"type":"text","text":"' + DONE + '"}]}}'], "ok", True),
        (['{"type":"result","result":{"output":"' + DONE + '"}}'], "ok", True),
        (['{"type":"result","result":"' + DONE + '"}'], "ok", True),
        ([delta(DONE), RESULT, RESULT], "ok", True),
        ([delta(DONE)], "ok", True),
        (["Loading model ...", "{broken", delta(DONE), "bye", RESULT], "ok", True),
        ([DONE, RESULT], "empty", False),
        (["plain words", DONE], "ok", True),
        ([RESULT], "empty", False),
        ([delta(""), delta(""), RESULT], "empty", False),
        ([], "empty", False),
        ([delta(DONE), '{"type":"result","is_error":true,"result":"it broke"}'], "failed", False),
        (['{"type":"result","is_error":true,"result":"it broke"}', RESULT], "failed", False),
        (['{"type":"result","is_error":true,"result":"API Error: 429 rate limited"}'], "rate_limited", False),
        ([delta("<<<RALPHEX:TASK_FAILED>>>"), RESULT], "failed", False),
        ([delta('<<<RALPHEX:QUESTION>>>{"question":"Which?"}<<<RALPHEX:END>>>'), RESULT], "question", False),
    ],
)
def test_every_event_of_the_contract_is_understood(
    repo: Path, ralph: Ralph, lines: list[str], outcome: str, completed: bool
) -> None:
    config(repo, wrapper=says(*lines))
    ralph("run", "1", "--on-limit", "stop")
    assert (first_end(repo)["outcome"], first_end(repo)["completed"]) == (outcome, completed)


def test_text_that_is_repeated_in_the_result_is_shown_once(repo: Path, ralph: Ralph) -> None:
    config(
        repo, wrapper=says(delta("hello there\n"), delta(DONE), f'{{"type":"result","result":"hello there\\n{DONE}"}}')
    )
    assert ralph("run").stdout.count("hello there") == 1


def test_the_exit_code_of_a_wrapper_decides_whether_it_failed(repo: Path, ralph: Ralph) -> None:
    config(repo, wrapper="echo 'no such model' >&2\n" + says(delta(DONE), RESULT, code=3))
    done = ralph("run")
    assert done.returncode == 1
    assert [e["outcome"] for e in ends(repo)] == ["failed", "failed"]  # the convention's default is one retry
    assert "no such model" in done.stdout


def test_the_signal_failed_ends_the_run(repo: Path, ralph: Ralph) -> None:
    config(repo, wrapper=says(delta("<<<RALPHEX:FAILED>>>"), RESULT))
    assert ralph("run").returncode == 1
    assert len(ends(repo)) == 1


def test_a_question_needs_a_person(repo: Path, ralph: Ralph) -> None:
    config(repo, wrapper=says(delta('<<<RALPHEX:QUESTION>>>{"question":"Which?"}<<<RALPHEX:END>>>'), RESULT))
    done = ralph("run")
    assert done.returncode == 5
    assert "Which?" in done.stdout


@pytest.mark.parametrize(
    ("setting", "outcome"),
    [
        ("claude_error_patterns = something else, out of CREDIT", "failed"),
        ("claude_limit_patterns = out of credit", "rate_limited"),
        ("claude_error_patterns = out of credit\nclaude_limit_patterns = of credit", "rate_limited"),
        ("claude_retry_patterns = out of credit", "overloaded"),
        ("claude_error_patterns = nothing like it", "ok"),
    ],
)
@pytest.mark.parametrize("where", ["delta", "line", "stderr"])
def test_patterns_in_the_text_decide_the_outcome(
    repo: Path, ralph: Ralph, setting: str, outcome: str, where: str
) -> None:
    words = "You are Out of credit now."
    lines = [delta(words) if where == "delta" else words if where == "line" else "", delta(f"\n{DONE}"), RESULT]
    config(repo, setting, says(*lines) if where != "stderr" else f"echo '{words}' >&2\n{says(*lines)}")
    impatient = {"RALPH_LIMIT_RETRIES": "1", "RALPH_RETRY_DELAY": "0.1"}
    ralph("run", "1", "--max-failures", "1", "--on-limit", "stop", env=impatient)
    assert first_end(repo)["outcome"] == outcome


def test_a_long_prompt_is_passed_on_stdin_and_a_short_one_if_configured(repo: Path, ralph: Ralph) -> None:
    config(repo, wrapper="printf '%s ' \"$@\" > args; cat > stdin\n" + says(delta(DONE), RESULT))
    prompt = "naïve line\n" * 20_000
    (repo / "PROMPT.md").write_text(prompt)
    assert ralph("run").returncode == 0
    assert ((repo / "args").read_text(), (repo / "stdin").read_text()) == ("--print ", prompt)
    (repo / "PROMPT.md").write_text("short\n")
    assert ralph("run").returncode == 0
    assert ((repo / "args").read_text(), (repo / "stdin").read_text()) == ("-p short\n ", "")
    config(repo, "claude_prompt = stdin")
    assert ralph("run").returncode == 0
    assert ((repo / "args").read_text(), (repo / "stdin").read_text()) == ("--print ", "short\n")


def test_a_prompt_that_is_too_long_for_an_argument_is_refused_before_the_start(repo: Path, ralph: Ralph) -> None:
    config(repo, "claude_prompt = arg", wrapper="touch started")
    (repo / "PROMPT.md").write_text("x" * 140_000)
    done = ralph("run")
    assert done.returncode == 64
    assert "set claude_prompt to stdin" in done.stderr
    assert not (repo / "started").exists()


def test_variables_of_an_outer_claude_session_and_the_api_key_are_withheld(repo: Path, ralph: Ralph) -> None:
    config(repo, wrapper="env > env\n" + says(delta(DONE), RESULT))
    given = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "ANTHROPIC_API_KEY": "key", "OTHER": "kept"}
    assert ralph("run", env=given).returncode == 0
    names = {line.partition("=")[0] for line in (repo / "env").read_text().splitlines()}
    assert "OTHER" in names
    assert not names & {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "ANTHROPIC_API_KEY"}
    config(repo, "preserve_anthropic_api_key = true")
    assert ralph("run", env=given).returncode == 0
    assert "ANTHROPIC_API_KEY=key" in (repo / "env").read_text()


#: The samples use jq; a machine without it tests them with a stand-in.
BOTH_JQS = pytest.mark.parametrize("jq", [pytest.param("real", marks=pytest.mark.needs("jq")), "stand-in"])


def with_programs(folder: Path, jq: str) -> dict[str, str]:
    """The environment in which a sample finds the fakes of a folder, and a jq."""
    if jq == "stand-in":
        put_jq(folder)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "OPENROUTER_API_KEY": "none"}


#: Answers the last argument, a chat request, with what was asked.
CURL = f"""exec {sys.executable} -IS -c '
import json, sys
asked = json.loads(sys.argv[-1])["messages"][0]["content"]
print(json.dumps({{"choices": [{{"message": {{"content": f"I did: {{asked}}\\nas asked\\n{DONE}"}}}}]}}))
' "$@"
"""


@BOTH_JQS
def test_the_sample_wrappers_run_unchanged(repo: Path, ralph: Ralph, jq: str) -> None:
    """minimal, gemini, ollama and OpenRouter's, with what they call replaced by fakes."""
    words = f'printf "I did: %s\\nas asked\\n{DONE}\\n" "$PROMPT_SEEN"'
    program(repo / "bin" / "your-tool", f'PROMPT_SEEN="$2"; [ "$1" = --prompt ] && {words}')
    program(repo / "bin" / "gemini", f'PROMPT_SEEN="$2"; [ "$1" = -p ] && {words}')
    program(repo / "bin" / "ollama", f'PROMPT_SEEN="$3"; [ "$1 $2" = "run llama3" ] && {words}')
    program(repo / "bin" / "curl", CURL)
    (repo / "PROMPT.md").write_text("say \"this\" and 'that'")
    environment = with_programs(repo / "bin", jq)
    for sample in ("minimal", "gemini", "ollama", "openrouter"):
        config(repo, wrapper="")
        shutil.copy(SAMPLES / f"{sample}.sh", repo / "scripts" / "wrapper.sh")
        done = ralph("run", "2", env=environment)
        assert done.returncode == 0, (sample, done.stdout)
        assert "I did: say \"this\" and 'that'" in done.stdout, sample


@BOTH_JQS
def test_a_sample_wrapper_that_hides_an_error_is_not_a_success(repo: Path, ralph: Ralph, jq: str) -> None:
    config(repo, wrapper="")
    shutil.copy(SAMPLES / "openrouter.sh", repo / "scripts" / "wrapper.sh")
    program(repo / "bin" / "curl", 'echo \'{"error":{"message":"no credit"}}\'')
    done = ralph("run", "1", env=with_programs(repo / "bin", jq))
    assert done.returncode != 0
    assert first_end(repo)["outcome"] == "empty"


PLAN = "# Plan\n\n### Task 1: first\n- [ ] one\n\n### Task 2: second\n- [ ] two\n"


def test_the_only_plan_is_followed_and_an_early_claim_of_completion_is_rejected(repo: Path, ralph: Ralph) -> None:
    (repo / "PROMPT.md").unlink()
    (repo / "docs" / "plans").mkdir(parents=True)
    plan = repo / "docs" / "plans" / "cache.md"
    plan.write_text(PLAN)
    config(
        repo,
        wrapper=f"""
        [[ "$2" == *docs/plans/cache.md* ]] || exit 9
        sed -i '0,/\\[ \\]/s//[x]/' docs/plans/cache.md
        echo '{delta(DONE)}'; echo '{RESULT}'""",
    )
    done = ralph("run")
    assert done.returncode == 0, done.stdout
    assert [e["completed"] for e in ends(repo)] == [False, True]
    assert "cache.md has an open box on line 7 ('two')" in ends(repo)[0]["completion"]
    assert "[ ]" not in plan.read_text()


def test_any_agent_can_follow_a_plan(repo: Path, ralph: Ralph) -> None:
    (repo / "plan.md").write_text("- [ ] one\n")
    script = f"grep -q plan.md && sed -i 's/\\[ \\]/[x]/' plan.md && echo '{DONE}'"
    done = ralph("run", "--agent-cmd", script, "--plan", "plan.md")
    assert done.returncode == 0, done.stdout


def test_with_several_plans_the_user_must_choose(repo: Path, ralph: Ralph) -> None:
    (repo / "PROMPT.md").unlink()
    (repo / "docs" / "plans").mkdir(parents=True)
    for name in ("a", "b"):
        (repo / "docs" / "plans" / f"{name}.md").write_text(PLAN)
    config(repo, wrapper="touch started")
    done = ralph("run")
    assert done.returncode == 64
    assert not (repo / "started").exists()
    assert "--plan" in done.stderr


def test_flags_override_the_file(repo: Path, ralph: Ralph) -> None:
    config(repo, wrapper="touch wrong")
    other = program(repo / "other.sh", "printf '%s ' \"$@\" > args\n" + says(delta(DONE), RESULT))
    assert ralph("run", "--claude-command", "./other.sh", "--claude-args", "--x 'a b'").returncode == 0
    assert (repo / "args").read_text() == "--x a b -p Do the work.\n "
    assert ralph("run", "--agent-cmd", "echo LOOP_COMPLETE").returncode == 0
    assert not (repo / "wrong").exists()
    both = ralph("run", "--claude-command", str(other), "--agent", "codex")
    assert both.returncode == 64
    assert "--agent and --claude-command" in both.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claude_command = scripts/missing.sh", "was not found"),
        ("claude_command = README.md", "was not found"),
        ("claude_command = ./README.md", "is not executable"),
        ("claude_args = 'open", "claude_args"),
        ("max_iterations = x", ".ralphex/config:3: max_iterations"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(repo: Path, ralph: Ralph, text: str, message: str) -> None:
    config(repo, text, wrapper="touch started")
    done = ralph("run")
    assert done.returncode == 64
    assert message in done.stderr
    assert not (repo / "started").exists()


def test_restricting_the_tools_is_refused(repo: Path, ralph: Ralph) -> None:
    config(repo, wrapper="touch started")
    assert ralph("run", "--allowed-tools", "Read").returncode == 64
    assert not (repo / "started").exists()


def test_dry_run_and_config_show_the_command_and_its_origin(repo: Path, ralph: Ralph) -> None:
    config(repo, "idle_timeout = 5m", wrapper="touch started")
    shown = ralph("run", "--dry-run").stdout
    assert f"argv          {repo / 'scripts' / 'wrapper.sh'}\n" in shown
    assert "5m without output (.ralphex/config:3)" in shown
    assert "provider convention: found .ralphex/config" in shown
    origins = json.loads(ralph("config", "--json").stdout)
    assert origins["claude_command"] == {"value": "scripts/wrapper.sh", "origin": ".ralphex/config:1"}
    assert not (repo / "started").exists()


def test_a_silent_wrapper_is_stopped_with_everything_it_started(
    repo: Path, ralph: Ralph, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(repo, "idle_timeout = 1s\ntask_retry_count = 0", wrapper="sleep 600 & setsid sleep 600 & wait")
    with nothing_left_behind(monkeypatch):
        done = ralph("run", "--grace", "1s")
    assert done.returncode == 1
    assert first_end(repo)["outcome"] == "timeout_idle"


def test_as_claude_runs_behind_claude_command_and_dies_with_the_run(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the run is killed with SIGKILL."""
    agent = program(repo / "codex", '[ "$1" = --version ] && echo codex 0.166.0 && exit; touch working; sleep 600')
    program(repo / "scripts" / "wrapper.sh", f'exec {sys.executable} -m ralph as-claude --agent codex "$@"')
    config(repo)
    environment = os.environ | {"PATH": f"{agent.parent}:{os.environ['PATH']}"}
    with nothing_left_behind(monkeypatch) as mark:
        run = subprocess.Popen(
            [sys.executable, "-m", "ralph", "run"],
            cwd=repo,
            env=environment | {"TEST_PROCESS_MARK": mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert eventually((repo / "working").exists, 30)
        run.kill()
        run.wait()


EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "provider"


def test_the_example_ticks_its_boxes(tmp_path: Path, ralph: Ralph) -> None:
    work = tmp_path / "work"
    shutil.copytree(EXAMPLE, work)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    done = ralph("run", cwd=work)
    assert done.returncode == 0, done.stdout
    assert [e["completed"] for e in ends(work)] == [False, True]
    assert (work / "hello.txt").exists()
    assert (work / "goodbye.txt").exists()
    assert "[ ]" not in (work / "docs" / "plans" / "greeting.md").read_text()
