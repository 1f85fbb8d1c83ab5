"""Files as users leave them: broken, empty, in another encoding, or not regular files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralph.config.layers import resolve
from ralph.config.yamlfile import load
from ralph.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def message(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        resolve(path.parent, {}, environ={})
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        (b"a: {b: [\n", "ralph.yml:2:1:", "not valid YAML"),
        (b"a:\n\tb: 1\n", "ralph.yml:2:1:", "tab"),
        (b"max_iterations: 1\nmax_iterations: 2\n", "ralph.yml:2:1:", "duplicate"),
        (b"a: *nowhere\n", "ralph.yml:1:4:", "undefined alias"),
        (b"max_iterations: 1\n---\nmax_iterations: 2\n", "ralph.yml:2:1:", "second document"),
        (b"- a\n- b\n", "ralph.yml:1:", "expected keys"),
        (b"hello", "ralph.yml:1:", "expected keys"),
        (b"ok: 1\n\xff\xfe: 2\n", "ralph.yml:2:", "not UTF-8"),
        ("max_iterations: 3\n".encode("utf-16"), "ralph.yml:1:", "not UTF-8"),
        (b"a: \x00\n", "ralph.yml", "not valid YAML"),
        (b"a: " + b"[" * 1200 + b"\n", "ralph.yml", "not valid YAML"),
    ],
)  # fmt: skip
def test_a_broken_file_is_reported_with_line_and_column(tmp_path: Path, content: bytes, where: str, what: str) -> None:
    text = message(tmp_path / "ralph.yml", content)
    assert text.startswith(where)
    assert what in text


@pytest.mark.parametrize("content", [b"", b"# nothing yet\n", b"---\n", b"\xef\xbb\xbf"])
def test_an_empty_file_sets_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ralph.yml").write_bytes(content)
    resolved = resolve(tmp_path, {}, environ={})
    assert resolved.settings.max_iterations == 100
    assert resolved.warnings == []


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").write_bytes(b"\xef\xbb\xbf# a\r\nmax_iterations: 4\r\nmax_cost: 2\r\n")
    resolved = resolve(tmp_path, {}, environ={})
    assert (resolved.settings.max_iterations, resolved.origins["max_cost"]) == (4, "ralph.yml:3")


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").write_text("core: &c\n  max_iterations: 6\nevent_loop:\n  <<: *c\n  max_cost_usd: 1\n")
    resolved = resolve(tmp_path, {}, environ={})
    assert (resolved.settings.max_iterations, resolved.settings.max_cost) == (6, 1)


def test_tags_in_a_file_run_no_code(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").write_text(f"a: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n")
    resolve(tmp_path, {}, environ={})
    assert not (tmp_path / "made").exists()


def test_a_directory_with_that_name_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").mkdir()
    with pytest.raises(UsageError, match="this is a directory"):
        resolve(tmp_path, {}, environ={})


def test_a_dangling_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no such file"):
        resolve(tmp_path, {}, environ={})


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").touch(0o000)
    with pytest.raises(UsageError, match="Permission denied"):
        resolve(tmp_path, {}, environ={})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(alphabet="ab: -\n[]{}&*!#|>'\"%@,\t0.", max_size=80).map(str.encode)))
def test_any_content_gives_settings_or_a_usage_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ralph.yml").write_bytes(content)
    try:
        messages = resolve(tmp_path, {}, environ={}).warnings
    except UsageError as error:
        messages = [str(error)]
    assert all("ralph.yml" in text for text in messages)


def test_lines_are_known_three_levels_deep(tmp_path: Path) -> None:
    path = tmp_path / "ralph.yml"
    path.write_text("\na: 1\nb:\n  c: 2\n  d:\n    e: 3\n")
    lines = {key: entry.line for key, entry in load(path, "x").entries.items()}
    assert lines == {"a": 2, "b": 3, "b.c": 4, "b.d": 5, "b.d.e": 6}


def test_escaped_surrogate_pairs_are_joined_and_lone_halves_replaced(tmp_path: Path) -> None:
    (tmp_path / "ralph.yml").write_text(r'prompt: "\ud83d\ude00 \ud83d x"')
    assert resolve(tmp_path, {}, environ={}).settings.prompt == "😀 � x"
