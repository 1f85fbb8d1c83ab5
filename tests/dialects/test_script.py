"""Agent scripts: found, sourced, run in one shell, and judged by their response alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_scripts import DONE, REPLAN, events, iteration, metas, outcomes, says, texts, write
from standin_jq import put_jq

Ralph = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLE = Path(__file__).parents[2] / "examples" / "agent-script"


#: The sample uses jq; a machine without it tests it with a stand-in.
BOTH_JQS = pytest.mark.parametrize("jq", [pytest.param("real", marks=pytest.mark.needs("jq")), "stand-in"])


@pytest.fixture
def example(tmp_path: Path, jq: str) -> Path:
    """A copy of the example; its `bin` has a jq if there is to be a stand-in."""
    root = tmp_path / "example"
    shutil.copytree(EXAMPLE, root)
    if jq == "stand-in":
        put_jq(root / "bin")
    return root


# -- the convention's own sample


@BOTH_JQS
def test_the_sample_script_runs_unchanged(ralph: Ralph, example: Path) -> None:
    root = example
    result = ralph("run", cwd=root, env={"PATH": f"{root / 'bin'}:{os.environ['PATH']}"})
    assert result.returncode == 0, result
    assert "script convention" in result.stdout
    assert outcomes(root) == ["ok", "ok"]  # the marker in the echoed prompt ends nothing
    assert (root / "hello.txt").exists()
    assert (root / "goodbye.txt").exists()
    # the hooks share their variables
    assert "Iteration Cost: $0.25  Balance: $9.75" in texts(root, "SYS")
    assert "Iteration Cost: $0.25  Balance: $9.50" in (root / ".ralph/latest/session.log").read_text()
    assert "Next on the list: hello." in texts(root, "THINK")  # from the transcript of its CLI
    prompt = (iteration(root) / "prompt.md").read_text()
    assert prompt.startswith("Mode: build. Read the files in specs/,")
    assert "Leave $PATH and $HOME alone." in prompt


@BOTH_JQS
def test_its_own_filter_shows_the_same_run_where_the_transcript_is_not_known(ralph: Ralph, example: Path) -> None:
    root = example
    (root / "bin" / "amp").rename(root / "bin" / "drill")
    script = (root / "agents" / "amp.sh").read_text().replace('AGENT_CLI="amp"', 'AGENT_CLI="drill"')
    (root / "agents" / "drill.sh").write_text(script.replace("amp usage", "drill usage"))
    env = {"PATH": f"{root / 'bin'}:{os.environ['PATH']}", "AGENT": "drill"}
    assert ralph("run", cwd=root, env=env).returncode == 0
    assert "[thinking] Next on the list: hello." in texts(root, "AI")
    assert "[tool] Bash: echo hello > hello.txt" in texts(root, "AI")
    assert iteration(root).joinpath("stdout.raw").read_bytes().startswith(b'{"type":"system"')


# -- one shell


def test_hooks_and_the_invocation_share_a_shell(ralph: Ralph, repo: Path) -> None:
    write(
        repo,
        'agent_pre_iteration() { MEMORY="from pre"; log "before: $(pwd)"; }\n'
        f'agent_invoke() {{ echo "say: $MEMORY"; cat "$1"; echo "say: {DONE}"; }}\n'
        'agent_post_iteration() { log "after: $MEMORY, $(grep -c say: "$RALPH_DIR/last_agent_output") lines"; }\n',
    )
    assert ralph("run").returncode == 0
    assert f"before: {repo}" in texts(repo, "SYS")
    assert "after: from pre, 2 lines" in texts(repo, "SYS")
    assert (repo / ".ralph/latest/session.log").read_text() == f"before: {repo}\nafter: from pre, 2 lines\n"
    assert iteration(repo).joinpath("response.md").read_text() == f"from pre\n{DONE}\n"
    assert iteration(repo).joinpath("stdout.raw").read_text() == f"say: from pre\nDo the work.\nsay: {DONE}\n"


def test_a_script_finds_the_variables_of_its_convention(ralph: Ralph, repo: Path) -> None:
    names = ("RALPH_DIR", "RALPH_HOME", "MODE", "SPECS_DIR", "CONTEXT_WARN_PCT", "AGENT", "MINE")
    shown = "; ".join(f'echo "say: {name}=${{{name}}}"' for name in names)
    body = f"agent_invoke() {{ {shown}; [[ $- == *e* ]] || echo say: no errexit; echo 'say: {DONE}'; }}\n"
    write(repo, body, config="AGENT=fake\nSPECS_DIR=docs/specs\nMINE='a b'\n")
    assert ralph("run").returncode == 0
    assert iteration(repo).joinpath("response.md").read_text().splitlines()[:-1] == [
        f"RALPH_DIR={repo}",
        "RALPH_HOME=.",
        "MODE=build",
        "SPECS_DIR=docs/specs",
        "CONTEXT_WARN_PCT=80",
        "AGENT=fake",
        "MINE=a b",
        "no errexit",
    ]


def test_agent_invoke_may_exec(ralph: Ralph, repo: Path) -> None:
    write(repo, f"agent_invoke() {{ exec printf 'say: {DONE}\\n'; }}\nagent_post_iteration() {{ log after; }}\n")
    assert ralph("run").returncode == 0
    assert "after" in texts(repo, "SYS")


def test_the_raw_output_is_kept_byte_for_byte(ralph: Ralph, repo: Path) -> None:
    raw = b"say: " + DONE.encode() + b"\nx\0\xff\xfe\r\n\x01\x1b[31mred\nno newline at the end"
    (repo / "raw").write_bytes(raw)
    write(repo, "agent_invoke() { cat raw; }\n")
    assert ralph("run").returncode == 0
    assert iteration(repo).joinpath("stdout.raw").read_bytes() == raw
    assert (repo / "last_agent_output").read_bytes() == raw


def test_last_agent_output_does_not_count_as_progress(ralph: Ralph, repo: Path) -> None:
    write(repo)
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    assert ralph("run", "1", "--allowed-paths", "src").returncode == 2
    assert metas(repo, "iteration_end")[0]["progress"] == "nothing changed"


def test_stderr_is_kept_unchanged(ralph: Ralph, repo: Path) -> None:
    body = f"agent_pre_iteration() {{ log hello; }}\nagent_invoke() {{ echo 'say: {DONE}'; echo oops >&2; }}\n"
    write(repo, body)
    assert ralph("run").returncode == 0
    assert iteration(repo).joinpath("stderr.raw").read_bytes() == b"oops\n"
    assert "oops" in texts(repo, "SYS")


# -- the response


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((f"say: {DONE}",), 0),
        ((f"say: {REPLAN}",), 3),
        ((f"say: {REPLAN}", f"say: {DONE}"), 0),
        ((f"say: {DONE}", f"say: {REPLAN}"), 0),
        ((f"tool: {DONE}", f"{DONE}", "say: not yet"), 2),
        ((f"say: I will not print {DONE} yet",), 2),
        (("say: ```", f"say: {DONE}", "say: ```"), 2),
        (("{not json", "say: \ufffd", f"say: {DONE}", "trailing {"), 0),
    ],
)
def test_signals_are_read_from_the_response_alone(ralph: Ralph, repo: Path, lines: tuple[str, ...], code: int) -> None:
    write(repo, says(*lines))
    result = ralph("run", "1")
    assert result.returncode == code, result.stdout


def test_a_configured_promise_counts(ralph: Ralph, repo: Path) -> None:
    write(repo, says("say: ALL-DONE"))
    assert ralph("run", "1", "--completion-promise", "ALL-DONE").returncode == 0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (says("tool: busy"), "found no response in the agent's output (11 bytes)"),
        ("agent_invoke() { :; }\n", "the agent printed nothing"),
        ("agent_extract_response() { echo ' '; }\n", "found no response"),
    ],
)
def test_no_response_is_a_failure(ralph: Ralph, repo: Path, body: str, why: str) -> None:
    write(repo, body, config="AGENT=fake\nMAX_RETRIES=2\n")
    result = ralph("run")
    assert result.returncode == 1, result.stdout
    assert outcomes(repo) == ["empty", "empty"]
    assert why in result.stdout


# -- the display filter

_FILTERS = {
    "exits at once": "exit 0",
    "reads one line": 'IFS= read -r line; echo "$line"; return 1',
    "is killed": "kill -9 $BASHPID",
    "prints nothing": "cat >/dev/null",
    "hides its output": "exec >&-; cat",
}


@pytest.mark.parametrize("how", _FILTERS)
def test_a_broken_filter_does_not_affect_the_agent(ralph: Ralph, repo: Path, how: str) -> None:
    body = 'agent_invoke() { for i in {1..20000}; do echo "tool: line $i of many"; done; '
    write(repo, body + f"echo 'say: {DONE}'; }}\nagent_format_display() {{ {_FILTERS[how]}; }}\n")
    result = ralph("run", "1")
    assert result.returncode == 0, result.stdout
    raw = iteration(repo).joinpath("stdout.raw").read_text().splitlines()
    assert len(raw) == 20001
    assert (
        texts(repo, "AI")[-1] == DONE or how == "reads one line"
    )  # a response that was not shown yet is shown at the end


def test_a_filter_that_hangs_is_stopped(ralph: Ralph, repo: Path) -> None:
    body = 'agent_format_display() { while IFS= read -r line; do echo "$line"; done; sleep 300; }\n'
    write(repo, says(f"say: {DONE}") + body)
    result = ralph("run", "1", timeout=40)
    assert result.returncode == 0
    assert "agent_format_display was stuck" in result.stdout


def test_the_filters_text_is_shown(ralph: Ralph, repo: Path) -> None:
    write(repo, says("tool: look", f"say: {DONE}"))
    assert ralph("run").returncode == 0
    assert texts(repo, "AI") == ["seen tool: look", f"seen say: {DONE}"]


def test_with_a_named_transcript_the_filter_is_not_used(ralph: Ralph, repo: Path) -> None:
    line = '{"type":"text","tag":"THINK","text":"Plan: none"}'
    write(repo, says(f"@@RALPH@@ {line}", f"say: {DONE}") + "agent_format_display() { touch ran; }\n")
    assert ralph("run", "--transcript", "rtf1").returncode == 0
    assert texts(repo, "THINK") == ["Plan: none"]
    assert not (repo / "ran").exists()


def test_output_in_an_unexpected_format_is_shown_by_the_filter(ralph: Ralph, repo: Path) -> None:
    # its name and the word json suggest Claude's format, but it prints something else
    write(repo, says("say: custom format") + "# json\n", name="claude", config="AGENT=claude\n")
    result = ralph("run", "2")
    assert result.returncode == 2
    assert "this is not a transcript of claude" in result.stdout
    assert "seen say: custom format" in texts(repo, "AI")


# -- the context size


def test_the_context_size_is_reported(ralph: Ralph, repo: Path) -> None:
    body = "agent_post_iteration() { _ITER_CONTEXT_USED=90000; _ITER_CONTEXT_MAX=100000; _ITER_CONTEXT_PCT=90; }\n"
    write(repo, says(f"say: {DONE}") + body)
    result = ralph("run")
    assert result.returncode == 0
    assert "context: 90,000 of 100,000 tokens (90 %), nearly full" in result.stdout
    notices = [m["context"] for m in metas(repo, "notice") if "context" in m]
    assert notices == [{"used": 90000, "max": 100000, "percent": 90}]
    assert all("context" not in e.get("text", "") for e in events(repo))


def test_an_unknown_context_size_is_not_reported(ralph: Ralph, repo: Path) -> None:
    write(repo, says(f"say: {DONE}"))
    assert "context: " not in ralph("run").stdout


# -- whose words count


def _claude_script(repo: Path, *lines: str) -> None:
    """A script that runs a CLI whose format ralph knows, with these raw lines."""
    write(
        repo,
        "AGENT_CLI=claude\n"
        + says(*lines)
        + "# --output-format stream-json\n"
        + 'agent_extract_response() { sed -n \'s/.*"text":"\\([^"]*\\)".*/\\1/p\' "$1" | tail -n 1; }\n',
    )


@pytest.mark.parametrize("junk", [(), ("not JSON",)])
def test_raw_output_without_a_result_line_completes(ralph: Ralph, repo: Path, tmp_path: Path, junk: tuple[str]) -> None:
    """The response and the exit code decide, not what the transcript of the CLI should end with."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").symlink_to("/bin/true")
    line = '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"%s"}]}}'
    _claude_script(repo, *junk, line % "I am working on it.", line % DONE)
    done = ralph("run", "1", env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(repo) == ["ok"]


def test_a_response_that_repeats_the_prompt_completes_nothing(ralph: Ralph, repo: Path) -> None:
    (repo / "PROMPT.md").write_text(f"Do all the work.\n\nAt the end, print this line:\n\n{DONE}\n")
    write(repo, 'agent_invoke() { echo banner; cat "$1"; }\nagent_extract_response() { cat "$1"; }\n')
    assert ralph("run", "1").returncode == 2
    write(
        repo, f'agent_invoke() {{ echo banner; cat "$1"; echo "{DONE}"; }}\nagent_extract_response() {{ cat "$1"; }}\n'
    )
    assert ralph("run", "1").returncode == 0
