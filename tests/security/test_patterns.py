"""No pattern and no file of a repository can keep ralph busy for long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ralph.agents.detect import probe
from ralph.agents.specfile import read
from ralph.judging.prices import Price, Prices
from ralph.loop.allowed import outside
from ralph.masking.credentials import matches
from ralph.masking.masker import Masker
from security.support import DONE, harmless

if TYPE_CHECKING:
    from pathlib import Path

    from security.support import Ralph

#: Each takes Python's own engine years with a text of such length.
EVIL = ["(a+)+zzz", "(a|a)*zzz", "(a*)*zzz", "(?:a?){900}a{900}zzz", "(.*a){20}zzz"]


@pytest.mark.parametrize("pattern", EVIL)
def test_no_mask_pattern_can_hang_a_run(ralph: Ralph, repo: Path, pattern: str) -> None:
    (repo / "ralph.yml").write_text(f"mask_patterns: ['{pattern}', 'ACME-[0-9]+']\n")
    script = f"printf 'a%.0s' $(seq 5000); echo; echo ACME-4711; echo '{DONE}'"
    done = ralph("run", "1", "--agent-cmd", script, "--redact-raw", timeout=60)
    harmless(done)
    assert done.returncode == 0, done.stderr
    assert "ACME-4711" not in done.stdout


@pytest.mark.parametrize("pattern", ["(?<=x)a", "(a)\\1", "a\\Z", "(", "a{5000}"])
def test_a_pattern_that_needs_more_than_linear_time_is_an_error(ralph: Ralph, repo: Path, pattern: str) -> None:
    (repo / "ralph.yml").write_text(f"mask_patterns: ['{pattern}']\n")
    done = ralph("run", "1", "--agent-cmd", "true")
    harmless(done)
    assert done.returncode == 64
    assert "ralph.yml:1: mask_patterns: expected regular expressions" in done.stderr


def test_patterns_mask_text_and_bytes_that_are_not_utf_8() -> None:
    masker = Masker(patterns=["ACME-\\d+", "clé=.+"])
    assert masker.text("ü ACME-12 \udcff ACME-3 clé=x") == "ü [masked:pattern] \udcff [masked:pattern] [masked:pattern]"


@pytest.mark.parametrize("pattern", EVIL)
def test_no_version_pattern_can_hang_a_probe(tmp_path: Path, pattern: str) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\nprintf 'a%.0s' $(seq 3000)\n")
    program.chmod(0o755)
    spec = tmp_path / "evil.toml"
    spec.write_text(
        f"name = 'evil'\ntitle = 'Evil'\ncommands = ['evil']\n[version]\npattern = '({pattern})'\n[[invocation]]\n"
    )
    found = read(spec)
    assert found.spec is not None, found.problems
    began = time.monotonic()
    assert probe(found.spec, str(program)) == (True, None)
    assert time.monotonic() - began < 20


def test_patterns_of_names_and_paths_take_linear_time() -> None:
    pattern, name = "*a" * 30 + "*b", "a" * 2000
    began = time.monotonic()
    assert outside([name], [pattern, f"{pattern} && {pattern}"]) == [name]
    assert not matches(name, (pattern,))
    assert not Prices(((pattern, Price(1, 1)),)).knows(name)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("ralph.yml", "".join(f"unknown_{n}: [1, 2]\n" for n in range(100_000))),
        ("ralph.yml", "".join(f"u{n}: 1\n" for n in range(5000))),
        (".ralphrc", "A=1\n" * 1_000_000),
        (".ralphrc", "A=1;" * 16_000),
        (".ralphrc", "if true; then\nfi" + " " * 60_000 + "x\n"),
        (".ralphex/config", "claude_error_patterns = " + "," * (1 << 20)),
        (".ralphex/config", "claude_error_patterns = " + "(,)" * (1 << 18)),
    ],
    ids=lambda value: value[:10],
)
def test_no_configuration_keeps_ralph_busy(ralph: Ralph, repo: Path, file: str, text: str) -> None:
    (repo / file).parent.mkdir(exist_ok=True)
    (repo / file).write_text(text)
    harmless(ralph("config", timeout=60))
