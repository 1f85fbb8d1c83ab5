"""Real runs of agents that print their keys: only the raw files contain them, and no screen shows them."""

from __future__ import annotations

import json
import os
import pty
import select
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from masking.keys import KEYS, PEM, PEM_BODY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

VALUE = "correct/h0rse-b4ttery-st4ple"
DONE = "<promise>COMPLETE</promise>"
ENV = {"HORSE_API_KEY": VALUE, "OTHER_TOKEN": KEYS["github"]}
#: Recognised by its format alone.
LOOSE = KEYS["gitlab"]
PEM_LINE = PEM_BODY.split("\n")[3]
SECRETS = [VALUE, VALUE.replace("/", "\\/"), KEYS["github"], LOOSE, PEM_LINE]

# Each prints its secrets in text, in a tool's output, on stderr and in pieces, as far as its format allows.
PLAIN = f"""
import os, sys
print("key:", os.environ["HORSE_API_KEY"])
print({LOOSE!r}, file=sys.stderr)
print({PEM!r})
sys.stdout.write(os.environ["OTHER_TOKEN"][:9]); sys.stdout.flush()
import time; time.sleep(0.3)
print(os.environ["OTHER_TOKEN"][9:])
print({DONE!r})
"""
RTF1 = f"""
import json, os, sys
def event(**fields): print("@@RALPH@@ " + json.dumps(fields), flush=True)
key, other = os.environ["HORSE_API_KEY"], os.environ["OTHER_TOKEN"]
print(other, file=sys.stderr, flush=True)
for part in ("it is " + key[:9], key[9:15], key[15:] + ", yes"):
    event(type="text", tag="AI", text=part)
event(type="tool_start", tool={{"id": "1", "name": "Bash", "input": {{"command": "curl -H " + key, {LOOSE!r}: 1}}}})
for part in ({LOOSE!r}[:12], {LOOSE!r}[12:], {PEM!r}):
    event(type="tool_output", tool={{"id": "1"}}, text=part)
event(type="tool_end", tool={{"id": "1", "status": "ok"}})
event(type="meta", meta={{"kind": "error", "message": "refused " + key, "fatal": False}})
event(type="text", tag="AI", text={DONE!r})
"""
CLAUDE = f"""
import json, os, sys
def line(**fields): print(json.dumps(fields), flush=True)
key, other = os.environ["HORSE_API_KEY"], os.environ["OTHER_TOKEN"]
print({LOOSE!r}, file=sys.stderr, flush=True)
line(type="system", subtype="init", session_id="s1", model="m", tools=[])
def delta(text):
    line(type="stream_event", session_id="s1", event={{"type": "content_block_delta", "index": 0,
         "delta": {{"type": "text_delta", "text": text}}}})
for part in ("I see ", key[:4], key[4:11], key[11:], " here\\n"):
    delta(part)
line(type="assistant", session_id="s1", message={{"role": "assistant", "content": [
    {{"type": "tool_use", "id": "t1", "name": "Bash", "input": {{"command": "echo " + other}}}}]}})
line(type="user", session_id="s1", message={{"role": "user", "content": [
    {{"type": "tool_result", "tool_use_id": "t1", "content": json.dumps({{"key": key, "pem": {PEM!r}}})}}]}})
line(type="unheard_of", value=[key])
line(type="assistant", session_id="s1", message={{"role": "assistant", "content": [
    {{"type": "text", "text": "I see " + key + " here\\n" + {DONE!r}}}]}})
line(type="result", subtype="success", is_error=False, result=key + "\\n" + {DONE!r}, session_id="s1")
"""
AGENTS = {"plain": PLAIN, "rtf1": RTF1, "claude": CLAUDE}


@pytest.fixture
def command(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    folder = tmp_path_factory.mktemp("agent")

    def make(body: str) -> str:
        (folder / "agent.py").write_text(body)
        return f"{sys.executable} {folder / 'agent.py'}"

    return make


def leaks(data: bytes) -> list[str]:
    return [secret for secret in SECRETS if secret.encode() in data]


def files(repo: Path) -> dict[str, bytes]:
    """The files of the newest run, by name; those of an iteration by its number and their name."""
    root = (repo / ".ralph" / "latest").resolve()
    found = [path for path in root.rglob("*") if path.is_file()]
    return {
        path.name if path.parent == root else f"{path.parent.name}/{path.name}": path.read_bytes() for path in found
    }


@pytest.mark.parametrize("ui", ["plain", "json"])
@pytest.mark.parametrize("name", AGENTS)
def test_no_secret_is_shown_or_stored(
    ralph: Ralph, repo: Path, command: Callable[[str], str], name: str, ui: str
) -> None:
    agent = command(AGENTS[name])
    done = ralph("run", "2", "--agent-cmd", agent, "--transcript", name, "--ui", ui, env=ENV)
    assert done.returncode == 0, done  # the judge reads the agent's unmasked text
    assert leaks((done.stdout + done.stderr).encode()) == []
    assert "[masked:HORSE_API_KEY]" in done.stdout
    assert "[masked:key]" in done.stdout
    kept = files(repo)
    assert {n for n, data in kept.items() if leaks(data)} <= {"0001/stdout.raw", "0001/stderr.raw"}
    assert VALUE.encode() in kept["0001/stdout.raw"] or name == "rtf1"
    for shown in (
        ralph("show", env=ENV),
        ralph("show", "--json", env=ENV),
        ralph("tail", env=ENV),
        ralph("runs", env=ENV),
    ):
        assert shown.returncode == 0
        assert leaks(shown.stdout.encode()) == []


@pytest.mark.parametrize("name", AGENTS)
def test_redacted_raw_files_contain_no_secret(
    ralph: Ralph, repo: Path, command: Callable[[str], str], name: str
) -> None:
    (repo / "PROMPT.md").write_text(f"Use {VALUE} and {LOOSE}, please.\n")
    agent = command(AGENTS[name] + "\nassert os.environ['HORSE_API_KEY'] in open(sys.argv[1]).read()\n")
    done = ralph("run", "1", "--agent-cmd", agent + " {prompt}", "--transcript", name, "--redact-raw", env=ENV)
    assert done.returncode == 0, done  # the agent got the unmasked prompt
    kept = files(repo)
    assert {n: found for n, data in kept.items() if (found := leaks(data))} == {}
    assert kept["0001/prompt.md"] == b"Use [masked:HORSE_API_KEY] and [masked:key], please.\n"
    assert b"[masked:" in kept["0001/stdout.raw"]


def test_no_secret_is_shown_on_a_terminal(repo: Path, command: Callable[[str], str]) -> None:
    parent, child = pty.openpty()
    argv = [
        sys.executable,
        "-m",
        "ralph",
        "run",
        "1",
        "--agent-cmd",
        command(PLAIN),
        "--verify",
        f"sleep 1; echo {LOOSE}",
    ]
    with subprocess.Popen(
        argv, cwd=repo, env=os.environ | ENV | {"TERM": "xterm"}, stdin=child, stdout=child, stderr=child
    ) as process:
        os.close(child)
        seen, until = b"", time.monotonic() + 60
        while time.monotonic() < until:
            if select.select([parent], [], [], 1)[0]:
                try:
                    seen += os.read(parent, 65536)
                except OSError:  # the other side is closed
                    break
            elif process.poll() is not None:
                break
    os.close(parent)
    assert process.returncode == 0
    assert b"[masked:HORSE_API_KEY]" in seen
    assert b"checking: " in seen
    assert leaks(seen) == []


def test_masking_can_be_turned_off(ralph: Ralph, repo: Path, command: Callable[[str], str]) -> None:
    (repo / "ralph.yml").write_text("mask: no\n")
    done = ralph("run", "1", "--agent-cmd", command(PLAIN), env=ENV)
    assert VALUE in done.stdout
    assert VALUE.encode() in files(repo)["events.jsonl"]
    assert VALUE in ralph("show", env=ENV).stdout


def test_variables_and_patterns_of_the_user_are_masked(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("mask_env: [MY_*]\nmask_patterns: ['ACME-\\d{6}']\n")
    agent = f"echo $MY_DSN ACME-123456; echo '{DONE}'"
    done = ralph("run", "1", "--agent-cmd", agent, "--redact-raw", env={"MY_DSN": "db-at-home"})
    assert done.returncode == 0, done
    assert "[masked:MY_DSN] [masked:pattern]" in done.stdout
    kept = files(repo)
    assert kept["0001/stdout.raw"].startswith(b"[masked:MY_DSN] [masked:pattern]\n")
    assert not any(b"db-at-home" in data or b"ACME-123456" in data for data in kept.values())


def test_an_invalid_pattern_is_a_usage_error(ralph: Ralph, repo: Path) -> None:
    (repo / "ralph.yml").write_text("mask_patterns: ['ok', '(']\n")
    done = ralph("run", "--dry-run")
    assert done.returncode == 64
    assert "ralph.yml:1: mask_patterns: expected regular expressions ('('" in done.stderr


def test_check_output_in_the_next_prompt_is_masked(ralph: Ralph, repo: Path) -> None:
    check = f"test -e there || {{ touch there; echo refused $HORSE_API_KEY {LOOSE}; false; }}"
    (repo / "there").touch()
    done = ralph("run", "3", "--agent-cmd", f"rm -f there; cat; echo; echo '{DONE}'", "--verify", check, env=ENV)
    root = repo / ".ralph" / "latest" / "iterations"
    prompt = (root / "0002" / "prompt.md").read_text()
    assert "refused [masked:HORSE_API_KEY] [masked:key]" in prompt
    assert leaks(done.stdout.encode()) == []


def test_keys_on_the_command_line_are_masked(ralph: Ralph, repo: Path) -> None:
    """In run.json and --dry-run, even if a value is cut short. A resumed run does not use the mask as a value."""
    agent = f"true {'x' * 30} {VALUE} {LOOSE}; echo '{DONE}'; exit 1"
    dry = ralph("run", "1", "--agent-cmd", agent, "--dry-run", env=ENV)
    assert leaks(dry.stdout.encode()) == []
    assert VALUE[:12] not in dry.stdout
    assert ralph("run", "1", "--agent-cmd", agent, env=ENV).returncode in (1, 2)
    facts = json.loads((repo / ".ralph" / "latest" / "run.json").read_bytes())
    assert "[masked:HORSE_API_KEY]" in facts["settings"]["agent_cmd"]
    assert facts["masked"] == ["agent_cmd"]
    again = ralph("run", "5", "--resume", env=ENV)
    assert again.returncode == 64
    assert "--agent-cmd contained a secret" in again.stderr


def test_errors_doctor_and_config_are_masked(ralph: Ralph, repo: Path) -> None:
    wrong = ralph("run", "--agent", VALUE, env=ENV)
    assert wrong.returncode == 64
    assert leaks((wrong.stdout + wrong.stderr).encode()) == []
    unknown = ralph("run", "1", LOOSE, env=ENV)
    assert unknown.returncode == 64
    assert leaks(unknown.stderr.encode()) == []
    (repo / "ralph.yml").write_text(f"agent_cmd: echo {VALUE}\nmax_cost: {LOOSE}\n")
    bad = ralph("run", "--dry-run", env=ENV)
    assert bad.returncode == 64
    assert leaks(bad.stderr.encode()) == []
    (repo / "ralph.yml").write_text(f"agent_cmd: echo {VALUE}\n")
    for arguments in (["doctor"], ["doctor", "--json"], ["config"], ["config", "--json"]):
        shown = ralph(*arguments, env=ENV)
        assert "[masked:HORSE_API_KEY]" in shown.stdout
        assert leaks((shown.stdout + shown.stderr).encode()) == []


def test_replay_masks_the_screen_but_not_its_json(ralph: Ralph, repo: Path) -> None:
    (repo / "out.txt").write_text(f"a {VALUE}\n")
    base = ("replay", "out.txt", "--transcript", "plain")
    assert leaks(ralph(*base, env=ENV).stdout.encode()) == []
    assert VALUE in ralph(*base, "--no-mask", env=ENV).stdout
    assert VALUE in ralph(*base, "--json", env=ENV).stdout
    assert leaks(ralph(*base, "--json", "--mask", env=ENV).stdout.encode()) == []


def test_other_users_cannot_read_the_journal(ralph: Ralph, repo: Path) -> None:
    os.umask(0o022)
    assert ralph("run", "1", "--agent-cmd", f"echo '{DONE}'").returncode == 0
    root = (repo / ".ralph" / "latest").resolve()
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in (root, *root.rglob("*")) if not p.is_symlink()}
    assert len(modes) > 5
    assert {p.name: oct(m) for p, m in modes.items() if m != (0o700 if p.is_dir() else 0o600)} == {}


@pytest.mark.parametrize("pattern", [".", "[a-z]+", "kind|type|text|iteration|end|ok|custom", "[0-9]"])
def test_no_pattern_ends_a_run_or_breaks_its_record(ralph: Ralph, repo: Path, pattern: str) -> None:
    (repo / "ralph.yml").write_text(f"mask_patterns: ['{pattern}']\n")
    words = ("--agent-cmd", "echo 'type text kind'")
    assert ralph("run", "1", *words, "-p", "x").returncode == 2
    assert ralph("run", "2", "--resume", *words, "-p", "x").returncode == 2
    done = ("--agent-cmd", f"echo '{DONE}'")
    assert ralph("run", "1", *done, "-p", "x").returncode == 0
    for command in (("show",), ("show", "--json"), ("runs",), ("runs", "--json"), ("tail",), ("config",)):
        shown = ralph(*command)
        assert shown.returncode == 0, shown.stderr
    assert ralph("run", "--dry-run", *done, "-p", "x").returncode == 0
    assert "bug in ralph" not in ralph("doctor").stderr
