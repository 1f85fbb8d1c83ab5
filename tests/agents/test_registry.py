"""Loading agents from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.agents import registry
from ralph.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = 'name = "x"\ntitle = "X"\ncommands = ["x"]\n[[invocation]]\nargs = ["-p"]\n'


def test_a_file_is_an_agent(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(GOOD)
    assert registry.load(path).invocation[0].args == ("-p",)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b'name = "x\n', "not valid TOML"),
        (b"", "name"),
        (GOOD.replace("title", "tittle").encode(), "tit"),
        (GOOD.encode() + b'prompt = "pigeon"\n', "pigeon"),
        (GOOD.encode() + b"args = 3\n", "not valid TOML"),
        (b'name = "x"\ntitle = "X"\ncommands = []\ninvocation = []\n', "at least one"),
        (GOOD.encode() + b'[version]\npattern = "("\n', "regular expression"),
        (GOOD.encode() + b'[version]\npattern = "v1"\n', "group"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_the_error_for_a_broken_file_names_it(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        registry.load(path)
    assert str(path) in str(caught.value)
    assert part in str(caught.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        registry.load(tmp_path / "x.toml")
    with pytest.raises(UsageError, match="directory"):
        registry.load(tmp_path)


def test_every_builtin_agent_loads_by_name_and_by_alias() -> None:
    seen: set[str] = set()
    for name in registry.names():
        spec = registry.get(name)
        assert spec.name == name
        for alias in spec.aliases:
            assert registry.get(alias).name == name
        assert not seen & {name, *spec.aliases}
        seen |= {name, *spec.aliases}


def test_every_builtin_agent_has_an_adapter_for_its_transcript() -> None:
    from ralph.agents import adapters as transcripts

    for spec in registry.all_specs():
        for invocation in spec.invocation:
            assert invocation.transcript in transcripts.names(), (spec.name, invocation.transcript)


def test_the_error_for_an_unknown_name_lists_the_nearest_and_all_names() -> None:
    with pytest.raises(UsageError) as caught:
        registry.get("cursr")
    assert "did you mean 'cursor'?" in str(caught.value)
    for name in [*registry.names(), "custom"]:
        assert name in str(caught.value)
