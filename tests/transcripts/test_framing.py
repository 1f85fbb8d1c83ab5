"""Any bytes in any chunks become lines, and nothing is lost."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ralph.transcripts.framing import LineFramer

# Bytes that splitters often get wrong, besides random ones.
_PIECES = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([b"\n", b"\r\n", b"\r", b"\0", "\u2028".encode(), "\x85".encode(), b"\xff", "é".encode(), b"\x1c"]),
)
_DATA = st.lists(_PIECES, max_size=30).map(b"".join)


def frame(data: bytes, cuts: list[int] | None = None) -> list[str]:
    framer = LineFramer()
    edges = sorted({0, len(data), *(c % (len(data) + 1) for c in cuts or [])})
    lines = [line for a, b in pairwise(edges) for line in framer.feed(data[a:b])]
    return lines + framer.flush()


def expected(data: bytes) -> list[str]:
    """The reference: split at LF only; one CR before it belongs to the line end."""
    parts = data.split(b"\n")
    if parts[-1] == b"":
        parts.pop()
    return [p.removesuffix(b"\r").decode("utf-8", "replace") for p in parts]


@given(_DATA, st.lists(st.integers(min_value=0, max_value=10_000), max_size=20))
def test_any_chunking_of_any_bytes_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    assert frame(data, cuts) == expected(data)


@given(_DATA)
def test_one_byte_at_a_time_gives_the_same_lines(data: bytes) -> None:
    assert frame(data, list(range(len(data)))) == expected(data)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), max_size=20)))
def test_lines_are_returned_unchanged(lines: list[str]) -> None:
    assert frame("".join(f"{line}\n" for line in lines).encode()) == lines


def test_a_last_line_without_a_newline_is_returned_at_the_end() -> None:
    assert frame(b"one\ntwo") == ["one", "two"]


def test_no_bytes_are_no_lines() -> None:
    assert frame(b"") == []


def test_an_empty_line_is_a_line() -> None:
    assert frame(b"a\n\n\nb\n") == ["a", "", "", "b"]


def test_nul_crlf_and_invalid_utf8_stay_in_their_lines() -> None:
    assert frame(b"a\0b\r\n\xff\xfe\nc\rd\n") == ["a\0b", "\ufffd\ufffd", "c\rd"]


def test_unicode_line_separators_do_not_end_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    assert frame(f"{text}\n".encode()) == [text]


def test_a_character_may_be_split_over_two_chunks() -> None:
    assert frame("€\n".encode(), [1, 2]) == ["€"]


def test_a_line_of_64_mib_is_one_line() -> None:
    line = b"x" * (64 << 20)
    framer = LineFramer()
    got: list[str] = []
    for start in range(0, len(line), 1 << 18):
        got += framer.feed(line[start : start + (1 << 18)])
    got += framer.feed(b"\nnext\n")
    assert [len(g) for g in got] == [64 << 20, 4]


def test_a_line_without_end_is_returned_in_pieces() -> None:
    framer = LineFramer(max_line=100)
    data = "".join(f"{n:05d}\r€" for n in range(200)).encode()
    got: list[str] = []
    for start in range(0, len(data), 7):
        got += framer.feed(data[start : start + 7])
    pieces = got + framer.flush()
    assert len(pieces) > 5
    assert "".join(pieces) == data.decode()


def test_the_time_is_linear_in_the_number_of_bytes() -> None:
    """One long line in many small chunks: a framer that copied all of it each time would take hours."""

    def seconds(chunks: int) -> float:
        framer = LineFramer()
        start = time.process_time()
        for _ in range(chunks):
            framer.feed(b"y" * 64)
        assert len(framer.feed(b"\n")[0]) == chunks * 64
        return time.process_time() - start

    small = max(seconds(20_000), 0.005)
    assert seconds(200_000) < small * 60
