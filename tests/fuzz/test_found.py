"""Inputs that once broke a promise, and the checks that found them."""

from __future__ import annotations

import os

import pytest
from fuzz.checks import ViolationError
from fuzz.new_ids import New
from fuzz.shrink import shrink
from fuzz.targets import TARGETS

from fuzz import memory, transcripts

_STEP = (
    b'{"type":"step_finish","sessionID":"s","part":{"type":"step-finish","reason":"stop",'
    b'"tokens":{"input":-5,"output":3,"reasoning":0,"cache":{"read":-9,"write":0}}}}'
)
_FRAGMENT = (
    '{"type":"stream_event","event":{"type":"content_block_delta","index":0,'
    '"delta":{"type":"text_delta","text":"Hm."}}}'
)
FOUND = {
    "a number that JSON does not allow": ("grok", b'{"type":"text","data":"a"}\n{"data":{"x":NaN,"y":1e999}}\n'),
    "negative tokens": ("opencode", _STEP),
    "negative tokens in RTF1": ("rtf1", b'@@RALPH@@ {"type":"usage","usage":{"prompt_tokens":-1}}'),
    "a token count too large for any number": (
        "rtf1",
        b'@@RALPH@@ {"type":"usage","usage":{"prompt_tokens":1%s}}' % (b"0" * 40),
    ),
    "a result of a call that never started": (
        "gemini",
        b'{"type":"init","session_id":"s"}\n{"type":"tool_result","tool_id":"t","status":"success","output":"x"}',
    ),
    "two results of calls that never started": (
        "gemini",
        b'{"type":"init","session_id":"s"}\n{"type":"tool_result"}\n{"type":"tool_result"}',
    ),
    "a tag that does not fit": ("config", b"!!set"),
    "hours and milliseconds": ("durations", b"302h5ms"),
    "a merge of a merge": ("config", b"x: &a{5}\n:\n  x: \n   <<: *a\n  r: x\nt:"),
    "a value that contains itself": ("config", b"args: &a [*a]"),
    "a folder with an impossible name": ("ralphex", b"plans_dir=\0"),
    "a folder of an unknown user": ("ralphex", b"plans_dir=~nobody-of-that-name/x"),
    "text without an end": ("kimi", b'{"role":"assistant","content":"a"}\n{"role":"assist'),
    "an impossible time": (
        "rtf1",
        b'@@RALPH@@ {"type":"meta","meta":{"kind":"rate_limit","resets_at":1%s}}' % (b"0" * 400),
    ),
    "a token count in text too large for any number": (
        "codex",
        b"[2026-11-15T00:00:00] OpenAI Codex v0.2\n[2026-11-15T00:00:09] tokens used: " + b"4" * 5000,
    ),
    "JSON in the text whose type is not a string": ("signals", b'{"type":{"":8},"":"---RALPH_STATUS---"}'),
    "an escape over two lines": ("kimi", b"TurnBegin()\nTextPart(\n'',text='\\x\na0'\n)"),
    "an octal escape": ("kimi", b"TurnBegin()\nTextPart(\n'',text='\\0'\n)"),
    "negative zero": ("durations", b"-0"),
}


@pytest.mark.parametrize("name", FOUND)
def test_earlier_findings_are_fixed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    target, data = FOUND[name]
    TARGETS[target].check(data)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("grok", '{"type":"thought","data":"Hm."}'),
        ("ollama", "The sky looks blue because of Rayleigh scattering: shorter wavelengths are \x1b[K"),
        (
            "claude",
            '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"I"}}}',
        ),
    ],
    ids=["many small fragments of a line", "a line over the whole of many screens", "many small fragments of a block"],
)
def test_endless_fragments_are_not_kept(name: str, line: str) -> None:
    memory.check_new_ids(lambda: transcripts.create(name, None), [], [(False, line)], New.IDS)


_HEADER = [(True, "OpenAI Codex v0.166.0"), (True, "--------"), (True, "--------"), (True, "codex")]


@pytest.mark.parametrize("on_stderr", [True, False], ids=["a message", "its copy on stdout"])
def test_an_endless_message_is_not_kept(*, on_stderr: bool) -> None:
    line = "Some words of an agent that goes on and on, and does not come to an end before the memory is full of them."
    memory.check_new_ids(lambda: transcripts.create("codex", None), _HEADER, [(on_stderr, line)], New.IDS)


def test_a_crash_is_shrunk_while_it_fails_in_the_same_way() -> None:
    def check(data: bytes) -> None:
        if b"a" in data and b"b" in data:
            raise ViolationError("both")
        if b"c" in data:
            raise ValueError("another failure")

    assert shrink(check, b"xxxxaxxxxcxxxxbxxxx") == b"ab"
