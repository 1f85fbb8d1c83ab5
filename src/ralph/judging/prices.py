"""Tokens to dollars, by an explicit table only: the user's file, then the package genai-prices if it is installed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from ralph.errors import UsageError
from ralph.system import files
from ralph.system.folders import user_config_dir

if TYPE_CHECKING:
    from ralph.config.layers import Resolved
    from ralph.transcripts.events import Usage

Dollars = Annotated[float, msgspec.Meta(ge=0)]
_MILLION = 1_000_000
_PACKAGE = "genai_prices"


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Dollars for a million tokens. A kind of input without its own price costs what other input costs."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    cache_write: Dollars | None = None

    def of(self, usage: Usage) -> float | None:
        """None if one side is not known: a part is no price."""
        prompt, output = usage.prompt_tokens, usage.completion_tokens
        if prompt is None or output is None:
            return None
        read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        fresh = max(0, prompt - read - written)
        cached = self.input if self.cached is None else self.cached
        cache_write = self.input if self.cache_write is None else self.cache_write
        return (fresh * self.input + read * cached + written * cache_write + output * self.output) / _MILLION


class Prices(msgspec.Struct, frozen=True):
    """What is known of prices. The first pattern in the file that fits a model counts."""

    rows: tuple[tuple[str, Price], ...] = ()
    path: Path | None = None

    @property
    def any(self) -> bool:
        """Whether there is any table at all."""
        return bool(self.rows) or package_installed()

    def cost(self, usage: Usage, model: str | None) -> float | None:
        """Dollars for these tokens, or None: unknown."""
        if not model:
            return None
        row = self._row(model)
        return row.of(usage) if row is not None else _by_package(usage, model)

    def knows(self, model: str) -> bool:
        from ralph.transcripts.events import Usage

        return self.cost(Usage(prompt_tokens=1, completion_tokens=1), model) is not None

    def _row(self, model: str) -> Price | None:
        from fnmatch import fnmatchcase

        # a router's name of a model, `anthropic/claude-x`, may be written with or without the router's part
        for name in dict.fromkeys((model, model.rpartition("/")[2])):
            for pattern, price in self.rows:
                if fnmatchcase(name, pattern):
                    return price
        return None


def find(resolved: Resolved) -> Prices:
    """The file that the setting names, or the user's own if there is one."""
    named = resolved.settings.prices
    if named is not None:
        return load(resolved.bases.get("prices", Path()) / Path(named).expanduser())
    default = user_config_dir(resolved.environ) / "prices.toml"
    return load(default) if default.exists() else Prices()


def load(path: Path) -> Prices:
    """One file; all that is wrong with it is told at once."""
    import tomllib

    try:
        table = tomllib.loads(files.read_text(path, "strict"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: this is not valid TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: this is nested too deeply") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: this is not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"the prices in {path} cannot be read: {error.strerror}") from None
    try:
        rows = tuple((pattern, msgspec.convert(row, Price)) for pattern, row in table.items())
    except msgspec.ValidationError:
        raise UsageError(_complaint(path, table)) from None
    return Prices(rows, path)


def _complaint(path: Path, table: dict[str, Any]) -> str:
    from ralph.system.tables import problems_in

    found = []
    for pattern, row in table.items():
        if isinstance(row, dict) and row and all(isinstance(value, dict) for value in row.values()):
            found.append(f"[{pattern}.{next(iter(row))}]: put a name with dots into quotes")
        elif isinstance(row, dict):
            found += problems_in(row, Price, f"{pattern}: ")
        else:
            found.append(f"'{pattern}': expected a table for each model, like [\"{pattern}\"] with input and output")
    return f"{path}: " + ("" if len(found) == 1 else "\n") + "\n".join(f"  {p}" if len(found) > 1 else p for p in found)


def package_installed() -> bool:
    """Without importing it: that takes half a second."""
    from importlib.util import find_spec

    return find_spec(_PACKAGE) is not None


@cache
def _package() -> Any:
    from importlib import import_module

    return import_module(_PACKAGE) if package_installed() else None


def _by_package(usage: Usage, model: str) -> float | None:
    package = _package()
    if package is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    provider, _, name = model.rpartition("/")
    try:
        tokens = package.Usage(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        price = package.calc_price(tokens, model_ref=name, provider_id=provider or None)
    except (LookupError, ValueError):  # a model it does not know, counts that do not add up
        return None
    return float(price.total_price)
