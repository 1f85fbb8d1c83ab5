"""Bytes in chunks that are cut anywhere."""

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


def test_the_whole_is_what_the_text_would_be() -> None:
    assert fed([TEXT.encode()]).decode() == Masker(SECRETS).text(TEXT)


@given(st.lists(st.integers(0, 100_000), max_size=40))
def test_cuts_change_nothing(where: list[int]) -> None:
    assert fed(cut(TEXT.encode(), where)) == fed([TEXT.encode()])


def test_byte_by_byte_neither() -> None:
    assert fed([bytes([b]) for b in TEXT.encode()]) == fed([TEXT.encode()])


@given(st.binary(max_size=400), st.lists(st.integers(0, 1000), max_size=8))
def test_anything_else_comes_through_byte_for_byte(data: bytes, where: list[int]) -> None:
    if data:
        assert fed(cut(data, where)) == data


@pytest.mark.parametrize("text", ["", "\n", "one line without an end", "naïve “text”\r\n"])
def test_what_cannot_begin_a_secret_is_not_held_back(text: str) -> None:
    masker = ByteMasker(Masker(SECRETS))
    assert masker.feed(text.encode()) == text.encode()


def test_what_ends_too_soon_is_masked_as_far_as_it_came() -> None:
    assert fed([f"x {VALUE[:15]}".encode()]) == b"x [masked:HORSE_TOKEN]"
    assert fed([f"x {VALUE[:4]}".encode()]) == b"x h0rs"
    assert PEM_BODY[:30].encode() not in fed([PEM[: len(PEM) // 2].encode()])


@given(st.lists(st.integers(0, 1000), max_size=8))
def test_the_users_own_patterns_are_found_within_a_line(where: list[int]) -> None:
    assert fed(cut(b"a ACME-123456 b\nc ACME-654321", where), (r"ACME-\d{6}",)) == (
        b"a [masked:pattern] b\nc [masked:pattern]"
    )


def test_memory_is_bounded_whatever_comes() -> None:
    masker = ByteMasker(Masker(SECRETS, ("x{9}",)))
    for start in (b"-----BEGIN RSA PRIVATE KEY-----\n", b"eyJ", b"Bearer ", b"sk-ant-1"):
        out = len(masker.feed(start))
        for _ in range(20):
            out += len(masker.feed(b"A" * 10_000))
        assert out > 100_000
