"""Masking bytes that arrive in chunks of any size."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking.keys import KEYS, ORDINARY, PEM, PEM_BODY
from ralph.masking.masker import Masker
from ralph.masking.stream import ByteMasker

VALUE = "h0rse/b4ttery-st4ple"
SECRETS = {VALUE: "HORSE_TOKEN"}
TEXT = "\n".join(
    [
        "begin",
        *(f"{name} {key} and words" for name, key in KEYS.items()),
        f"token={VALUE};{VALUE}",
        '{"token":"h0rse\\/b4ttery-st4ple"}',
        PEM,
        "Authorization: Bearer abc.def.0123456789-xyz",
        *ORDINARY,
        "end",
    ]
)


def fed(chunks: list[bytes], patterns: tuple[str, ...] = ()) -> bytes:
    masker = ByteMasker(Masker(SECRETS, patterns))
    return b"".join([*(masker.feed(chunk) for chunk in chunks), masker.flush()])


def cut(data: bytes, where: list[int]) -> list[bytes]:
    edges = [0, *sorted(w % len(data) for w in where), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def test_bytes_are_masked_like_text() -> None:
    assert fed([TEXT.encode()]).decode() == Masker(SECRETS).text(TEXT)


@given(st.lists(st.integers(0, 100_000), max_size=40))
def test_chunk_boundaries_change_nothing(where: list[int]) -> None:
    assert fed(cut(TEXT.encode(), where)) == fed([TEXT.encode()])


def test_single_byte_chunks_change_nothing() -> None:
    assert fed([bytes([b]) for b in TEXT.encode()]) == fed([TEXT.encode()])


@given(st.binary(max_size=400), st.lists(st.integers(0, 1000), max_size=8))
def test_other_bytes_are_unchanged(data: bytes, where: list[int]) -> None:
    if data:
        assert fed(cut(data, where)) == data


@pytest.mark.parametrize("text", ["", "\n", "one line without an end", "naïve “text”\r\n"])
def test_ordinary_text_is_not_held_back(text: str) -> None:
    masker = ByteMasker(Masker(SECRETS))
    assert masker.feed(text.encode()) == text.encode()


def test_an_incomplete_secret_at_the_end_is_masked() -> None:
    assert fed([f"x {VALUE[:15]}".encode()]) == b"x [masked:HORSE_TOKEN]"
    assert fed([f"x {VALUE[:4]}".encode()]) == b"x h0rs"
    assert PEM_BODY[:30].encode() not in fed([PEM[: len(PEM) // 2].encode()])


@given(st.lists(st.integers(0, 1000), max_size=8))
def test_patterns_of_the_user_are_found_within_a_line(where: list[int]) -> None:
    assert fed(cut(b"a ACME-123456 b\nc ACME-654321", where), (r"ACME-\d{6}",)) == (
        b"a [masked:pattern] b\nc [masked:pattern]"
    )


def test_memory_is_bounded_for_any_input() -> None:
    masker = ByteMasker(Masker(SECRETS, ("x{9}",)))
    for start in (b"-----BEGIN RSA PRIVATE KEY-----\n", b"eyJ", b"Bearer ", b"sk-ant-1"):
        out = len(masker.feed(start))
        for _ in range(20):
            out += len(masker.feed(b"A" * 10_000))
        assert out > 100_000
