"""The address to ask, and the key that is sent there."""

from __future__ import annotations

import pytest

from ralph.agents.openai_http.endpoint import Endpoint, SetupError, from_environment


def endpoint(url: str, **keys: str) -> Endpoint:
    return from_environment({"OPENAI_BASE_URL": url, **keys})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
        (" http://127.0.0.1:8080/v1/ ", "http://127.0.0.1:8080/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://openrouter.ai/api/v1/chat/completions", "https://openrouter.ai/api/v1/chat/completions"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
        ("http://localhost", "http://localhost/chat/completions"),
        ("https://x.invalid/openai?api-version=1&key=secret", "https://x.invalid/openai/chat/completions"),
    ],
)
def test_the_base_url_may_have_several_forms(url: str, shown: str) -> None:
    assert endpoint(url).shown == shown


def test_a_query_is_sent_but_not_shown() -> None:
    asked = endpoint("https://x.invalid/openai?api-version=1")
    assert asked.target == "/openai/chat/completions?api-version=1"
    assert (asked.tls, asked.host, asked.port) == (True, "x.invalid", 443)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", "OPENAI_BASE_URL is not set"),
        ("127.0.0.1:8080/v1", "must begin with http:// or https://"),
        ("ftp://x/v1", "must begin with http:// or https://"),
        ("http:///v1", "name a host"),
        ("http://x:port/v1", "is not a valid address"),
        ("http://user:password@x/v1", "contains a user or a password"),
        ("http://x/v1 beta", "characters that are not allowed in an address"),
    ],
)
def test_an_invalid_address_is_refused_without_showing_a_password(url: str, expected: str) -> None:
    with pytest.raises(SetupError, match=expected) as error:
        endpoint(url)
    assert "user:password" not in str(error.value)


def test_each_host_gets_only_its_own_key() -> None:
    both = {"OPENAI_API_KEY": "sk-openai", "OPENROUTER_API_KEY": "sk-or"}
    assert endpoint("https://openrouter.ai/api/v1", **both).key == "sk-or"
    assert endpoint("https://eu.openrouter.ai/api/v1", **both).key == "sk-or"
    assert endpoint("https://openrouter.ai/api/v1", OPENAI_API_KEY="sk-or").key == "sk-or"
    assert endpoint("https://api.openai.com/v1", **both).key == "sk-openai"
    assert endpoint("https://openrouter.ai.elsewhere.invalid/v1", **both).key == "sk-openai"
    assert endpoint("http://127.0.0.1:8080/v1", OPENROUTER_API_KEY="sk-or").key is None
    assert endpoint("http://127.0.0.1:8080/v1", OPENAI_API_KEY=" ").key is None


def test_a_key_that_does_not_fit_in_a_header_is_refused_without_showing_it() -> None:
    with pytest.raises(SetupError, match="OPENAI_API_KEY contains a character") as error:
        endpoint("http://127.0.0.1/v1", OPENAI_API_KEY="sk-one\nHost: elsewhere")
    assert "sk-one" not in str(error.value)
