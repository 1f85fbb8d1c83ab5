"""The traps of real agents that stand in their output, each on a recording of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "recordings"))

from recording import Case, find

from ralph.agents import adapters as registry
from ralph.judging.replay import replay
from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

FIXTURES = Path(__file__).parent.parent / "fixtures"
MARK = "<promise>COMPLETE</promise>"
RECORDINGS = {recording.id: recording for recording in find(FIXTURES)}


class Replayed(msgspec.Struct, frozen=True):
    events: list[TranscriptEvent]
    verdict: dict[str, Any]
    exit_code: int

    def words(self, tag: Tag) -> str:
        return "\n".join(e.text for e in self.events if isinstance(e, Text) and e.tag is tag)

    def metas(self, kind: str) -> list[dict[str, Any]]:
        return [e.meta for e in self.events if isinstance(e, Meta) and e.meta["kind"] == kind]


def replayed(name: str, *, exit_code: int | None = None, size: int | None = None) -> Replayed:
    """A recording with the exit code that it had, or another; `size` cuts it short."""
    recording = RECORDINGS[name]
    code = recording.exit_code(Case([], "ok", exit=exit_code))
    batches = replay(recording.stdout()[:size], recording.stderr(), recording.agent, code, None, None)
    events = [event for batch, _ in batches for event in batch]
    last = events[-1]
    assert isinstance(last, Meta)
    return Replayed(events, last.meta, code)


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("claude/2.0.76/stream-json-maxturns", "failed"),
        ("claude/2.1.325/stream-json-denied", "permission_denied"),
        ("cline/3.0.65/json-sigterm", "failed"),
        ("cline/3.0.65/json-success-autoapprovefalse", "permission_denied"),
        ("codex/0.36.0/json-error429", "rate_limited"),
        ("codex/0.36.0/json-error500", "overloaded"),
        ("codex/0.36.0/json-noauth", "auth"),
        ("copilot/1.0.102/json-native-kill-SIGTERM-top", "failed"),
        ("copilot/1.0.102/json-noallow", "permission_denied"),
        ("gemini/0.61.0/json-stdin9m", "empty"),
        ("gemini/0.61.0/stream-json-kill-SIGTERM-group", "failed"),
        ("gemini/0.61.0/stream-json-loopdetect", "failed"),
        ("goose/1.52.0/stream-json-ctxlimit", "context_exceeded"),
        ("goose/1.52.0/stream-json-error429", "rate_limited"),
        ("goose/1.52.0/stream-json-error500", "overloaded"),
        ("opencode/1.18.33/json-empty", "empty"),
        ("opencode/1.18.33/json-perm-ask", "permission_denied"),
        ("pi/0.73.1/json-ctxlimit", "context_exceeded"),
        ("pi/0.73.1/json-error401", "auth"),
        ("pi/0.73.1/json-error429", "rate_limited"),
        ("pi/0.73.1/json-error500", "overloaded"),
        ("qwen/0.24.4/stream-json-default-approval", "permission_denied"),
    ],
)
def test_exit_code_0_after_an_error(name: str, outcome: str) -> None:
    found = replayed(name)
    assert found.exit_code == 0
    assert (found.verdict["outcome"], found.verdict["completed"]) == (outcome, False), found.verdict["why"]


def test_exit_code_0_after_an_error_that_qwen_before_0_16_calls_a_success() -> None:
    """As described: `result/success`, `is_error: false`, and the error as the result's text."""
    text = "[API Error: 401 Incorrect API key provided]"
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "session_id": "s", "message": {"content": [{"type": "text", "text": text}]}},
        {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", "result": text},
    ]
    out = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    *_, (last, _) = replay(out, b"", "qwen", 0, None, None)
    assert isinstance(last[0], Meta)
    assert last[0].meta["outcome"] == "auth"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("claude/1.0.128/stream-json-error401", "API Error: 401"),
        ("claude/2.1.325/stream-json-error429", "API Error: Request rejected (429)"),
        ("claude/2.1.325/stream-json-error404", "There's an issue with the selected model"),
        ("goose/1.52.0/stream-json-error429", "Ran into this error"),
        ("goose/1.52.0/text-error429", "Ran into this error"),
        ("qwen/0.24.4/stream-json-error400", "API Error"),
    ],
)
def test_api_errors_put_into_the_agents_mouth(name: str, error: str) -> None:
    found = replayed(name)
    assert error in found.words(Tag.SYS)
    assert error not in found.words(Tag.AI)
    assert found.verdict["outcome"] not in ("ok", "empty")


@pytest.mark.parametrize(
    "name",
    [
        "claude/2.1.325/stream-json-success",
        "cline/3.0.65/json-success",
        "codex/0.166.0/json-success",
        "copilot/1.0.102/json-success",
        "cursor-agent/SYNTHETIC-from-docs/stream-json-success",
        "droid/0.215.0/stream-json-success",
        "gemini/0.61.0/stream-json-success",
        "goose/1.52.0/stream-json-success",
        "pi/0.73.1/json-success",
        "qwen/0.24.4/stream-json-success",
    ],
)
def test_output_cut_at_the_pipes_end_with_exit_code_0(name: str) -> None:
    """What a CLI loses when it exits before its pipe is drained: the end, in the middle of the line that tells it."""
    out = RECORDINGS[name].stdout()
    end = out.find(b'"type":"done"') if name.startswith("cline/") else len(out.rstrip(b"\n")) - 40
    assert replayed(name, exit_code=0).verdict["completed"] is True
    found = replayed(name, exit_code=0, size=end)
    assert (found.verdict["outcome"], found.verdict["completed"]) == ("failed", False)


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("claude/2.1.325/stream-json-error429-timeout", "rate_limited"),
        ("claude/2.1.325/stream-json-error500-timeout", "overloaded"),
        ("pi/0.73.1/json-error429", "rate_limited"),
        ("copilot/1.0.102/json-error500", "overloaded"),
    ],
)
def test_retries_of_minutes_inside_the_cli_are_shown_as_retrying(
    ralph: Callable[..., subprocess.CompletedProcess[str]], name: str, outcome: str
) -> None:
    recording = RECORDINGS[name]
    path = recording.path
    assert path.suffix != ".gz"
    shown = ralph("replay", str(path), "--transcript", recording.agent, "--exit-code=-15")
    assert shown.stdout.count("retrying: ") >= 2
    assert replayed(name, exit_code=-15).verdict["outcome"] == outcome


@pytest.mark.parametrize(
    "name",
    [
        "claude/2.0.76/stream-json-unicode",
        "cline/3.0.65/json-unicode",
        "codex/0.166.0/json-unicode",
        "droid/0.215.0/json-unicode2",
        "gemini/0.61.0/stream-json-unicode",
        "goose/1.52.0/stream-json-unicode",
        "kimi-cli/1.51.0/stream-json-unicode",
        "kimi-code/2.1.0/stream-json-unicode",
        "opencode/1.18.33/json-unicode",
    ],
)
def test_u2028_in_json_ends_no_line(name: str) -> None:
    assert any(separator in RECORDINGS[name].stdout().decode() for separator in "\u2028\u2029\u0085")
    found = replayed(name)
    assert found.metas("parse_error") == []
    assert any(separator in found.words(Tag.AI) for separator in "\u2028\u2029\u0085")


@pytest.mark.parametrize(
    "name",
    [
        "claude/2.1.325/partial-success",
        "cline/3.0.65/json-success",
        "copilot/1.0.102/json-success",
        "gemini/0.61.0/stream-json-success",
        "goose/1.52.0/stream-json-success",
        "qwen/0.24.4/stream-json-partial-success",
    ],
)
def test_markers_split_over_deltas(name: str) -> None:
    """No fragment has the marker whole; cut after the last fragment, its line is there all the same."""
    recording = RECORDINGS[name]
    lines = recording.stdout().split(b"\n")
    whole = [n for n, line in enumerate(lines) if MARK.encode() in line and b'"accumulated"' not in line]
    last = max(n for n, line in enumerate(lines) if b"promis" in line and n < (whole[0] if whole else len(lines)))
    adapter = registry.create(recording.agent)
    events = [e for line in lines[: last + 1] for e in adapter.feed(line.decode())] + adapter.flush()
    said = "\n".join(e.text for e in events if isinstance(e, Text) and e.tag is Tag.AI).split("\n")
    assert not any(part == MARK for line in lines[: last + 1] for part in line.decode().split('"'))
    # Of these fragments the last one may still be missing a piece: what came is one line, not several.
    assert sum("promis" in line for line in said) == 1
    assert replayed(name, exit_code=0).verdict["completed"] is True


def test_ids_that_appear_only_in_the_last_line() -> None:
    """Copilot's: so the spec names the session itself, and does not depend on that line."""
    from ralph.agents.compose import session_flags
    from ralph.agents.registry import get

    lines = RECORDINGS["copilot/1.0.102/json-success"].stdout().rstrip(b"\n").split(b"\n")
    adapter = registry.create("copilot")
    told = [
        [e for e in adapter.feed(line.decode()) if isinstance(e, Meta) and e.meta["kind"] == "session"]
        for line in lines
    ]
    assert [n for n, found in enumerate(told) if found] == [len(lines) - 1]
    today = get("copilot").invocation[0].session
    assert "given" in session_flags(today, "given", resume=False)
    assert session_flags(today, "given", resume=True)
