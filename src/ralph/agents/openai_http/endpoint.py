"""Where to ask, and with which key: read from the environment, nothing is asked by default."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

BASE_URL = "OPENAI_BASE_URL"
KEY = "OPENAI_API_KEY"
OPENROUTER_KEY = "OPENROUTER_API_KEY"
_OPENROUTER = "openrouter.ai"
_PATH = "/chat/completions"


class SetupError(Exception):
    """What a person has to set first."""


class Endpoint(msgspec.Struct, frozen=True):
    tls: bool
    host: str
    port: int
    #: with the query, if the base URL has one
    target: str
    key: str | None = None

    @property
    def shown(self) -> str:
        """For messages: without the query, which may hold a key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = self.port == (443 if self.tls else 80)
        port = "" if standard else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{host}{port}{self.target.partition('?')[0]}"

    @property
    def local(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def from_environment(environ: Mapping[str, str]) -> Endpoint:
    base = environ.get(BASE_URL, "").strip()
    if not base:
        raise SetupError(
            f"{BASE_URL} is not set: set it to the endpoint to ask, like http://127.0.0.1:8080/v1 for a server "
            "on this machine or https://openrouter.ai/api/v1"
        )
    try:
        parts = urlsplit(base)
        port = parts.port
    except ValueError as error:
        raise SetupError(f"{BASE_URL} is no address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(f"{BASE_URL} must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise SetupError(f"{BASE_URL} holds a user or a password: set {KEY} instead")
    if any(not "!" <= c <= "~" for c in parts.path + parts.query):
        raise SetupError(f"{BASE_URL} holds characters that no address can have: write them as %XX")
    path = parts.path.rstrip("/").removesuffix(_PATH) + _PATH
    tls = parts.scheme == "https"
    return Endpoint(
        tls,
        parts.hostname,
        port or (443 if tls else 80),
        f"{path}?{parts.query}" if parts.query else path,
        _key(parts.hostname, environ),
    )


def _key(host: str, environ: Mapping[str, str]) -> str | None:
    """OpenRouter's key goes to OpenRouter alone: another server has no business with it."""
    at_openrouter = host == _OPENROUTER or host.endswith("." + _OPENROUTER)
    for name in (OPENROUTER_KEY, KEY) if at_openrouter else (KEY,):
        key = environ.get(name, "").strip()
        if key and any(not "!" <= c <= "~" for c in key):
            raise SetupError(f"{name} holds characters that no key has: a space, a line end or a letter beyond ASCII")
        if key:
            return key
    return None
