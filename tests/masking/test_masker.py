"""Masking texts and structures."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masking.keys import KEYS, ORDINARY, PEM, PEM_BODY
from ralph.masking import formats
from ralph.masking.masker import Masker, for_environment

VALUE = 'tr0ub4dor&3/"quoted"\\x'


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize(
    "frame", ["{}", "key={} done", '"{}",', "(\\n{})", "https://u:{}@h/p", "\x1b[32m{}\x1b[0m", "`{}`"]
)
def test_known_formats_are_masked_in_any_context(kind: str, frame: str) -> None:
    shown = Masker().text(frame.format(KEYS[kind]))
    assert shown == frame.format("[masked:key]")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert Masker().text(text) == text


def test_only_the_token_after_bearer_is_masked() -> None:
    token = "abcdefghijklmnop.1234567890~xyz=="
    assert Masker().text(f"Authorization: Bearer {token}, ok") == "Authorization: Bearer [masked:key], ok"


def test_private_keys_are_masked_plain_and_escaped() -> None:
    assert Masker().text(f"a\n{PEM}\nb") == "a\n[masked:key]\nb"
    assert json.loads(Masker().text(json.dumps({"k": PEM}))) == {"k": "[masked:key]"}
    assert PEM_BODY[:40] not in Masker().text(json.dumps(json.dumps({"k": PEM})))


def test_a_mask_names_the_variable_even_if_the_value_has_a_known_format() -> None:
    masker = Masker({KEYS["anthropic"]: "ANTHROPIC_API_KEY"})
    assert masker.text(f"x {KEYS['anthropic']} y") == "x [masked:ANTHROPIC_API_KEY] y"


@pytest.mark.parametrize("escapes", [0, 1, 2])
def test_a_value_is_found_in_json_within_json(escapes: int) -> None:
    text = f"it is {VALUE}!"
    expected = "it is [masked:X]!"
    for _ in range(escapes):
        text, expected = json.dumps(text), json.dumps(expected)
    assert Masker({VALUE: "X"}).text(text) == expected
    if escapes:  # some JSON encoders escape slashes too
        assert Masker({VALUE: "X"}).text(text.replace("/", "\\/")) == expected


def test_structures_are_masked_at_every_level() -> None:
    masker = Masker({"hunter2hunter2": "X"})
    value = {"kind": "error", "a": ["hunter2hunter2", 1, None, {"hunter2hunter2": True}], "b": 1.5}
    assert masker.value(value) == {"kind": "error", "a": ["[masked:X]", 1, None, {"[masked:X]": True}], "b": 1.5}


def test_the_longer_of_two_values_wins() -> None:
    masker = Masker({"secret-one": "A", "secret-one-and-two": "B"})
    assert masker.text("secret-one secret-one-and-two") == "[masked:A] [masked:B]"


def test_patterns_of_the_user_are_masked() -> None:
    assert Masker({}, [r"ACME-\d{6}", "x*"]).text("id ACME-123456 x") == "id [masked:pattern] [masked:pattern]"


def test_masking_can_be_turned_off() -> None:
    assert Masker({"hunter2hunter2": "X"}, on=False).text(f"hunter2hunter2 {KEYS['github']}") == (
        f"hunter2hunter2 {KEYS['github']}"
    )
    assert for_environment({"RALPH_MASK": "no", "A_TOKEN": "hunter2hunter2"}).text("hunter2hunter2") == "hunter2hunter2"
    assert for_environment({"A_TOKEN": "hunter2hunter2"}).text("hunter2hunter2") == "[masked:A_TOKEN]"


def test_the_larger_part_of_a_secret_that_was_cut_short_is_masked() -> None:
    masker = Masker({"c0rrect-h0rse-b4ttery": "X"})
    assert masker.text("refused: c0rrect-h0rse") == "refused: [masked:X]"
    assert masker.text("refused: c0rrect") == "refused: c0rrect"


@pytest.mark.parametrize("form", formats.FORMATS, ids=lambda form: form.needs[0])
@given(data=st.data())
@settings(max_examples=20)
def test_every_key_of_a_format_contains_one_of_its_required_literals(form: formats.Format, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(form.whole))
    assert any(need in text for need in form.needs)
    assert "[masked:key]" in Masker().text(text)
