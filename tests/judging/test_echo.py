"""Plain output that repeats the prompt, and answers that only look like it."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.judging.replay import replay
from ralph.transcripts.events import Meta

MARK = "<promise>COMPLETE</promise>"
PROMPT = f"""# Task

Work through TODO.md, one item at a time, and commit each.

When every item is done and all tests pass, and only then, end with this line:

{MARK}
"""
SHORT = f"Do it, then print\n{MARK}\n"
INLINE = f"Fix the tests of this project, run all of them, and when they pass print {MARK}"


def verdict(output: str, prompt: str | None, promise: str | None = None) -> dict[str, Any]:
    *_, (last, _) = replay(output.encode("utf-8", "surrogatepass"), b"", "plain", 0, prompt, promise)
    assert isinstance(last[0], Meta)
    return last[0].meta


def completed(output: str, prompt: str | None = PROMPT, promise: str | None = None) -> bool:
    return verdict(output, prompt, promise)["completed"] is True


def quoted(text: str, sign: str) -> str:
    return "".join(f"{sign}{line}\n" for line in text.splitlines())


ECHOES = {
    "as it is": lambda text: text,
    "indented": lambda text: textwrap.indent(text, "    "),
    "with tabs": lambda text: textwrap.indent(text, "\t", lambda _: True),
    "without blank lines": lambda text: "\n".join(line for line in text.split("\n") if line.strip()),
    "with more blank lines": lambda text: text.replace("\n", "\n\n\n"),
    "without the last newline": lambda text: text.rstrip("\n"),
    "with CRLF": lambda text: text.replace("\n", "\r\n"),
    "wrapped": lambda text: "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, 30) or [""]),
    "wrapped narrowly": lambda text: "\n".join(p for line in text.split("\n") for p in textwrap.wrap(line, 12) or [""]),
    "in bold": lambda text: text.replace(MARK, f"**{MARK}**"),
    "the last lines": lambda text: "\n".join(text.rstrip().split("\n")[-3:]),
    "in a frame": lambda text: quoted(text.replace(MARK, ""), "│ ") + MARK + "\n",
}
BANNERS = ["", "agent 1.0\n", "agent 1.0\n\nPrompt:\n", "working\nmore work\n$ cat PROMPT.md\n"]


@pytest.mark.parametrize("banner", BANNERS)
@pytest.mark.parametrize("how", ECHOES)
@pytest.mark.parametrize("prompt", [PROMPT, SHORT])
def test_an_echo_of_the_prompt_completes_nothing(banner: str, how: str, prompt: str) -> None:
    found = verdict(banner + ECHOES[how](prompt), prompt)
    assert found["completed"] is False
    if banner and "as it is" in how:
        assert "repeat the prompt" in found["why"]


@pytest.mark.parametrize("banner", BANNERS)
@pytest.mark.parametrize("how", ECHOES)
@pytest.mark.parametrize("prompt", [PROMPT, SHORT, INLINE, "Do the work.\n"])
@pytest.mark.parametrize("answer", [f"All done.\n{MARK}\n", f"{MARK}\n", f"Done, the tests pass.\n\n**{MARK}**"])
def test_an_answer_after_an_echo_completes(banner: str, how: str, prompt: str, answer: str) -> None:
    assert completed(f"{banner}{ECHOES[how](prompt)}\n{answer}", prompt)


def test_an_answer_without_an_echo_completes() -> None:
    for prompt in (PROMPT, SHORT, INLINE):
        assert completed(f"{MARK}\n", prompt)
        assert completed(f"All items are done.\n\n{MARK}\n", prompt)


@pytest.mark.parametrize("width", [20, 28, 40, 75])
def test_a_marker_within_a_line_that_was_wrapped_is_an_echo(width: int) -> None:
    wrapped = "\n".join(textwrap.wrap(INLINE, width, break_long_words=False))
    if wrapped.rpartition("\n")[2] == MARK:
        assert not completed(f"agent 1.0\n{wrapped}\n", INLINE)
    assert completed(f"agent 1.0\n{wrapped}\nAll pass.\n{MARK}\n", INLINE)


def test_notes_before_the_prompt_do_not_matter() -> None:
    whole = f"<ralph-notes>\n$ make test\nfailed\n</ralph-notes>\n\n{SHORT}"
    assert not completed(f"$ cat PROMPT.md\n{SHORT}", whole)
    assert completed(f"$ cat PROMPT.md\n{SHORT}\nIt passes now.\n{MARK}", whole)


def test_a_configured_promise_is_treated_alike() -> None:
    prompt = "Fix it. At the end, say\n\nALL DONE\n"
    assert not completed(f"banner\n{prompt}", prompt, "ALL DONE")
    assert completed(f"banner\n{prompt}\nFixed.\nALL DONE", prompt, "ALL DONE")


def test_a_prompt_that_is_the_marker() -> None:
    assert not completed(f"{MARK}\n", MARK)
    assert completed(f"Hello.\n{MARK}\n", MARK)


def test_an_echo_in_the_middle_of_the_prompt() -> None:
    prompt = f"Print this when done:\n{MARK}\nDo not print it before.\n"
    assert not completed(f"$ head -2 PROMPT.md\nPrint this when done:\n{MARK}\n", prompt)
    assert completed(f"{prompt}\n{MARK}\n", prompt)


word = st.text("abcdefghijk", min_size=1, max_size=8)
line = st.lists(word, max_size=8).map(" ".join)
lines = st.lists(line, max_size=8)


@given(lines, line, lines, st.sampled_from(sorted(ECHOES)))
def test_any_prompt_after_any_banner(before: list[str], last: str, banner: list[str], how: str) -> None:
    prompt = "\n".join([*before, f"x {last}", "", MARK, ""])
    echo = "\n".join([*banner, ECHOES[how](prompt)])
    assert not completed(echo, prompt)
    assert completed(f"{echo}\nIt is done.\n{MARK}\n", prompt)
    assert completed(f"{echo}\n{MARK}\n", prompt)
