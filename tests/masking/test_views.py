"""Secrets that something invisible interrupts, or whose characters are escaped."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking.keys import KEYS
from ralph.masking.events import EventMasker
from ralph.masking.masker import Masker
from ralph.masking.stream import ByteMasker
from ralph.masking.views import view_of_bytes, view_of_text
from ralph.transcripts.events import Tag, Text, ToolOutput, ToolRef

VALUE = "correct/h0rse-b4ttéry-st4ple"
MASKER = Masker({VALUE: "HORSE_KEY"})
KEY = KEYS["anthropic"]

INTERRUPTIONS = [
    "\x1b[0m",
    "\x1b[1;31m",
    "\x1b[K",
    "\x9b31m",
    "\x1b]0;title\x07",
    "\x1b]8;;https://x.example\x1b\\",
    "\x1b(B",
    "\x00",
    "\x00\x00\x00",
    "\x07",
    "\x08",
    "\x7f",
    "\u200b",
    "\u200d\ufeff",
    "\xad",
]


def recorded(*texts: str, secrets: Masker = MASKER, pieces: bool = False) -> str:
    """What the journal has of these texts, as a reader sees it."""
    masker = EventMasker(secrets)
    masker.expect_pieces(pieces)
    lines = b""
    for text in texts:
        lines += masker.encode([Text(Tag.AI, text), ToolOutput(ToolRef("t"), text)])[1]
    lines += masker.release()[1]
    return "".join(json.loads(line)["text"] for line in lines.splitlines())


@pytest.mark.parametrize("between", INTERRUPTIONS, ids=ascii)
@pytest.mark.parametrize("secret", [VALUE, KEY], ids=["value", "key"])
def test_a_secret_is_found_whatever_interrupts_it(secret: str, between: str) -> None:
    for where in (1, len(secret) // 2, len(secret) - 2):
        shown = recorded(f"it is {secret[:where]}{between}{secret[where:]}, yes")
        assert shown.count("[masked:") == 2
        assert secret[-6:] not in shown
        assert shown.count("it is ") == shown.count(", yes") == 2
    everywhere = recorded(between.join(secret))
    assert secret[4:8] not in everywhere
    assert "[masked:" in everywhere


@pytest.mark.parametrize("between", INTERRUPTIONS, ids=ascii)
def test_raw_bytes_are_masked_in_whatever_chunks_they_come(between: str) -> None:
    raw = f"a {VALUE[:9]}{between}{VALUE[9:]} z {KEY[:20]}{between}{KEY[20:]} end\n".encode()
    for size in (1, 3, 7, len(raw)):
        masker = ByteMasker(MASKER)
        out = b"".join(masker.feed(raw[i : i + size]) for i in range(0, len(raw), size)) + masker.flush()
        assert out.count(b"[masked:") == 2, (size, out)
        assert b"st4ple" not in out
        assert KEY[-10:].encode() not in out
        assert out.startswith(b"a ")
        assert out.endswith(b" end\n")


def test_escapes_of_any_kind_and_case_are_read() -> None:
    escaped = "".join(f"\\u{ord(c):04x}" if c in "é/-" else c for c in VALUE)
    upper = escaped.replace("\\u00e9", "\\u00E9").replace("\\u002f", "\\u002F")
    for text in (escaped, upper, upper.replace("\\", "\\\\"), json.dumps(VALUE), json.dumps(VALUE).replace("e9", "E9")):
        shown = recorded(f"a {text} z")
        assert "st4ple" not in shown, text
        assert shown.count("[masked:HORSE_KEY]") == 2
        masker = ByteMasker(MASKER)
        assert b"st4ple" not in masker.feed(f"{text}\n".encode()) + masker.flush()


def test_a_secret_in_pieces_with_colours_between_them_is_found() -> None:
    shown = recorded(f"it is {VALUE[:9]}\x1b[0", "m\x1b[31m", VALUE[9:] + ", yes", pieces=True)
    assert "st4ple" not in shown


def test_a_secret_that_is_not_utf8_is_found_in_what_was_read() -> None:
    secret = b"se\xffcret-value-123456".decode("utf-8", "surrogateescape")
    masker = Masker({secret: "TOKEN"})
    assert "[masked:TOKEN]" in recorded("is se\ufffdcret-value-123456", secrets=masker)
    raw = ByteMasker(masker)
    assert raw.feed(b"is se\xffcret-value-123456\n") + raw.flush() == b"is [masked:TOKEN]\n"


def test_text_that_only_looks_odd_is_left_alone() -> None:
    for text in ("\x1b[31mred\x1b[0m", "caf\\u00e9", "C:\\users\\new", "a\x00b", "\\u", "\\uZZZZ", "\x1b", "\x1b["):
        assert recorded(text) == text + text


@given(st.text(alphabet=st.sampled_from("ab\x00\x1b[]0m;\\u00e9\u200b\x07é"), max_size=40))
def test_positions_in_a_view_lead_back_to_the_text(text: str) -> None:
    for view, data in ((view_of_text(text), text), (view_of_bytes(text.encode()), text.encode())):
        if view is None:
            continue
        starts = [view.start(i) for i in range(len(view.data))]
        assert starts == sorted(starts)
        for i in range(len(view.data)):
            assert 0 <= view.start(i) < view.end(i + 1) <= len(data)
