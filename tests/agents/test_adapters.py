"""Which adapters there are, and which one is used."""

from __future__ import annotations

import importlib

import pytest

from ralph.agents import adapters as registry
from ralph.errors import UsageError
from ralph.transcripts.base import TranscriptAdapter


def test_every_name_gives_a_fresh_adapter_of_that_name() -> None:
    assert {"plain", "rtf1"} <= set(registry.names())
    for name in registry.names():
        one, other = registry.create(name, prompt="p"), registry.create(name)
        assert isinstance(one, TranscriptAdapter)
        assert one is not other
        assert (one.name, one.prompt, other.prompt) == (name, "p", None)


def test_every_module_that_says_adapter_is_one_of_them() -> None:
    for name in registry.names():
        assert hasattr(importlib.import_module(type(registry.create(name)).__module__), "ADAPTER"), name


def test_an_unknown_name_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(UsageError) as caught:
        registry.create("rtf")
    assert "did you mean 'rtf1'?" in str(caught.value)
    assert "plain" in str(caught.value)


@pytest.mark.parametrize("name", ["events", "base", "meta", "safe", "registry", "_echo", "../x", ""])
def test_other_modules_are_no_adapters(name: str) -> None:
    with pytest.raises(UsageError):
        registry.create(name)


@pytest.mark.parametrize(
    ("requested", "known", "chosen"),
    [
        ("rtf1", "plain", "rtf1"),
        ("rtf1", None, "rtf1"),
        ("auto", "rtf1", "rtf1"),
        (None, "rtf1", "rtf1"),
        ("auto", None, "plain"),
        (None, None, "plain"),
    ],
)
def test_what_is_asked_for_comes_before_what_is_known_comes_before_plain(
    requested: str | None, known: str | None, chosen: str
) -> None:
    name, why = registry.select(requested, known)
    assert name == chosen
    assert why


def test_asking_for_an_unknown_one_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        registry.select("nothing-like-it", None)
