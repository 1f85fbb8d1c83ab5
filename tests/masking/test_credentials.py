"""Which variables hold secrets, and which only look as if they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ralph.masking.credentials import is_trivial, looks_like_credential, matches, secrets_of

if TYPE_CHECKING:
    from pathlib import Path

VALUE = "q8W3-e7R2-t6Y1-u5I0"


@pytest.mark.parametrize(
    "name",
    ["ANTHROPIC_API_KEY", "GH_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "PGPASSWORD", "NPM_AUTH"],
)
def test_names_of_credentials_are_recognised(name: str) -> None:
    assert looks_like_credential(name)
    assert secrets_of({name: VALUE}) == {VALUE: name}


@pytest.mark.parametrize("name", ["PATH", "MAX_TOKENS", "KEYBOARD", "HOME", "EDITOR", "MONKEY", "AUTHOR"])
def test_other_names_are_not_credentials(name: str) -> None:
    assert secrets_of({name: VALUE}) == {}


@pytest.mark.parametrize(
    "value",
    ["", "1", "true", "short12", "localhost", "12345678", "required", "keychain", "https://login.example.com/oauth"],
)
def test_trivial_values_are_not_secrets(value: str) -> None:
    assert secrets_of({"SOME_AUTH": value}) == {}


def test_a_path_and_the_user_name_are_not_secrets(tmp_path: Path) -> None:
    socket = str(tmp_path / "agent.sock")
    environ = {"SSH_AUTH_SOCK": socket, "GIT_TOKEN": "somebody1", "USER": "somebody1"}
    assert secrets_of(environ) == {}


def test_base64_that_starts_like_a_path_is_a_secret() -> None:
    assert not is_trivial("AWS_SECRET_ACCESS_KEY", "/9j4AAQ/SkZJRgABAQAAAQABAAD")


def test_a_password_may_be_a_word() -> None:
    assert secrets_of({"PGPASSWORD": "correcthorse"}) == {"correcthorse": "PGPASSWORD"}


def test_users_and_agents_can_add_names() -> None:
    environ = {"MY_DSN": "postgres-1234", "OTHER": "something-else", "LOGIN_FILE": "abcd-1234-efgh"}
    assert secrets_of(environ, ["MY_*"], ["LOGIN_FILE"]) == {
        "postgres-1234": "MY_DSN",
        "abcd-1234-efgh": "LOGIN_FILE",
    }


def test_each_long_line_of_a_multiline_secret_is_a_secret() -> None:
    value = "first-line-of-16-or-more\nsecond line with words\nthird0line0of0the0secret"
    assert set(secrets_of({"TLS_KEY": value})) == {value, "first-line-of-16-or-more", "third0line0of0the0secret"}


def test_patterns_match_whole_names() -> None:
    assert matches("AWS_PROFILE", ["AWS_*"])
    assert not matches("MY_AWS_PROFILE", ["AWS_*"])
    assert not matches("aws_profile", ["AWS_*"])
