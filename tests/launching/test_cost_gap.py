"""Warnings before the start about a limit on cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ralph.config.layers import resolve
from ralph.planning.prepare import prepare_launch
from ralph.trust.approval import Trust

if TYPE_CHECKING:
    from ralph.launching.launch import Launch


@pytest.fixture(autouse=True)
def agents(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """claude reports its cost, codex its tokens, kiro nothing."""
    folder = tmp_path_factory.mktemp("tools")
    for name in ("claude", "codex", "kiro-cli"):
        (folder / name).write_text("#!/bin/sh\necho 0.166.0\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def launch(tmp_path: Path, agent: str, **flags: str) -> Launch:
    return prepare_launch(
        resolve(tmp_path, {"agent": agent, "max_cost": "5", **flags}, environ={}), tmp_path, Trust(everything=True)
    )


def about_cost(found: Launch) -> list[str]:
    return [warning for warning in found.resolved.warnings if "--max-cost" in warning]


def table() -> None:
    path = Path(os.environ["HOME"]) / ".config" / "ralph" / "prices.toml"
    path.parent.mkdir(parents=True)
    path.write_text('["gpt-known*"]\ninput = 1\noutput = 1\n')


def test_an_agent_that_reports_its_cost_needs_no_warning(tmp_path: Path) -> None:
    assert about_cost(launch(tmp_path, "claude")) == []


def test_without_a_limit_there_is_no_warning(tmp_path: Path) -> None:
    assert about_cost(launch(tmp_path, "codex", max_cost="0")) == []


def test_tokens_without_a_price_give_no_cost(tmp_path: Path) -> None:
    (warning,) = about_cost(launch(tmp_path, "codex", model="surely-no-model-of-anybody"))
    assert "cannot be enforced: OpenAI Codex reports no cost" in warning
    assert "no price is known for surely-no-model-of-anybody" in warning


def test_tokens_with_a_price_give_a_cost(tmp_path: Path) -> None:
    table()
    assert about_cost(launch(tmp_path, "codex", model="gpt-known-2")) == []
    (warning,) = about_cost(launch(tmp_path, "codex", model="surely-no-model-of-anybody"))
    assert "cannot be enforced" in warning


def test_a_model_that_is_unknown_before_the_start_may_have_a_price(tmp_path: Path) -> None:
    table()
    (warning,) = about_cost(launch(tmp_path, "codex"))
    assert "only if a price is known for the model that OpenAI Codex uses" in warning


def test_a_price_does_not_help_without_tokens(tmp_path: Path) -> None:
    table()
    (warning,) = about_cost(launch(tmp_path, "kiro", model="gpt-known"))
    assert "reports neither its cost nor how many tokens it uses" in warning


def test_plain_text_reports_neither_cost_nor_tokens(tmp_path: Path) -> None:
    (warning,) = about_cost(launch(tmp_path, "claude", transcript="plain"))
    assert "reports neither" in warning
