"""Tokens to dollars: by a price table, or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ralph.config.layers import resolve
from ralph.errors import UsageError
from ralph.judging import prices
from ralph.judging.prices import Price, Prices
from ralph.transcripts.events import Usage

PRICE = Price(input=3.0, output=15.0, cached=0.3, cache_write=3.75)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_each_kind_of_token_has_its_price() -> None:
    # 600 fresh, 300 read, 100 written, 50 out
    usage = Usage(prompt_tokens=1000, completion_tokens=50, cached_tokens=300, cache_write_tokens=100)
    assert PRICE.of(usage) == pytest.approx((600 * 3 + 300 * 0.3 + 100 * 3.75 + 50 * 15) / 1e6)


def test_cached_tokens_without_a_price_cost_as_much_as_others() -> None:
    usage = Usage(prompt_tokens=1000, completion_tokens=0, cached_tokens=300, cache_write_tokens=100)
    assert Price(input=2.0, output=8.0).of(usage) == pytest.approx(2000 / 1e6)


@pytest.mark.parametrize("usage", [Usage(), Usage(total_tokens=9), Usage(prompt_tokens=9), Usage(completion_tokens=9)])
def test_half_of_the_counts_give_no_price(usage: Usage) -> None:
    assert PRICE.of(usage) is None
    assert Prices((("*", PRICE),)).cost(usage, "x") is None


def test_the_first_matching_pattern_counts() -> None:
    table = Prices((("claude-sonnet-4-5", Price(1, 0)), ("claude-*", Price(2, 0)), ("gpt-5.?", Price(3, 0))))
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=0)
    assert table.cost(usage, "claude-sonnet-4-5") == 1
    assert table.cost(usage, "claude-sonnet-4-5-20250929") == 2
    assert table.cost(usage, "anthropic/claude-opus") == 2
    assert table.cost(usage, "gpt-5.2") == 3
    assert table.cost(usage, "surely-no-model-of-anybody") is None
    assert table.cost(usage, None) is None


def test_a_price_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "p.toml", '["gpt-*"]\ninput = 1\noutput = 10.5\ncached = 0.1\n')
    assert prices.load(path).rows == (("gpt-*", Price(1.0, 10.5, 0.1)),)


def test_all_mistakes_in_a_file_are_reported(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.toml",
        'flat = 3\n[a]\ninput = "1"\noutptu = 1\n[b]\ninput = -1\noutput = 0\n[gpt-5.1]\ninput = 1\noutput = 1\n',
    )
    with pytest.raises(UsageError) as caught:
        prices.load(path)
    text = str(caught.value)
    for part in (
        str(path),
        "'flat': expected a table",
        "a: input",
        "there is no key 'a: outptu' (did you mean 'output'?)",
        "'a: output' is missing",
        "b: input",
        "[gpt-5.1]: put a name that contains dots in quotes",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("content", "part"), [(b"[x\n", "not valid TOML"), (b"\xff", "not UTF-8"), (None, "No such file")]
)
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes | None, part: str) -> None:
    path = tmp_path / "p.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=part):
        prices.load(path)


def test_the_users_file_is_found_and_the_setting_beats_it(tmp_path: Path) -> None:
    assert prices.find(resolve(tmp_path, {}, environ={})).rows == ()
    own = write(Path(os.environ["HOME"]) / ".config/ralph/prices.toml", "[a]\ninput = 1\noutput = 1\n")
    assert prices.find(resolve(tmp_path, {}, environ={})).path == own
    write(tmp_path / "team.toml", "[b]\ninput = 2\noutput = 2\n")
    write(tmp_path / "ralph.yml", "prices: team.toml\n")
    sub = tmp_path / "sub"
    sub.mkdir()
    found = prices.find(resolve(sub, {}, environ={}))  # seen from the file that names it
    assert found.path == tmp_path / "team.toml"
    with pytest.raises(UsageError, match="nowhere"):
        prices.find(resolve(tmp_path, {}, environ={"RALPH_PRICES": "nowhere"}))


def test_the_package_comes_second() -> None:
    pytest.importorskip("genai_prices")
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=0)
    known = Prices().cost(usage, "gpt-4o")
    assert known is not None
    assert 0 < known < 100
    assert Prices().cost(usage, "openai/gpt-4o") == known
    assert Prices((("gpt-4o", Price(7, 7)),)).cost(usage, "gpt-4o") == 7
    assert Prices().cost(usage, "surely-no-model-of-anybody") is None
    assert Prices().cost(Usage(prompt_tokens=1, completion_tokens=1, cached_tokens=5), "gpt-4o") is None
    assert Prices().any


def test_without_any_table_nothing_is_known() -> None:
    if not prices.package_installed():
        assert not Prices().any
        assert not Prices().knows("gpt-4o")
    assert Prices((("x", PRICE),)).any
    assert Prices((("x", PRICE),)).knows("x")


def test_the_table_in_the_how_to_guide_is_valid(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "know-the-cost.md").read_text()
    (example,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    table = prices.load(write(tmp_path / "p.toml", example))
    assert table.knows("gpt-5.1-codex-mini")
    assert table.knows("anthropic/claude-opus-4-1")
