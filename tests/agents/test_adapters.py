"""The adapters by name, and which one a run uses."""

from __future__ import annotations

import importlib

import pytest

from ralph.agents import adapters as registry
from ralph.errors import UsageError
from ralph.transcripts.base import TranscriptAdapter


def test_every_name_creates_a_new_adapter() -> None:
    assert {"plain", "rtf1"} <= set(registry.names())
    for name in registry.names():
        one, other = registry.create(name, prompt="p"), registry.create(name)
        assert isinstance(one, TranscriptAdapter)
        assert one is not other
        assert (one.name, one.prompt, other.prompt) == (name, "p", None)


def test_every_adapter_module_has_a_name() -> None:
    for name in registry.names():
        assert hasattr(importlib.import_module(type(registry.create(name)).__module__), "ADAPTER"), name


def test_the_error_for_an_unknown_name_lists_the_nearest_and_all_names() -> None:
    with pytest.raises(UsageError) as caught:
        registry.create("rtf")
    assert "did you mean 'rtf1'?" in str(caught.value)
    assert "plain" in str(caught.value)


@pytest.mark.parametrize("name", ["events", "base", "meta", "safe", "registry", "_echo", "../x", ""])
def test_other_modules_are_not_adapters(name: str) -> None:
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
def test_a_requested_adapter_has_precedence_over_the_agents_own_and_over_plain(
    requested: str | None, known: str | None, chosen: str
) -> None:
    name, why = registry.select(requested, known)
    assert name == chosen
    assert why


def test_requesting_an_unknown_adapter_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        registry.select("nothing-like-it", None)
