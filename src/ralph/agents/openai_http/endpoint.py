"""The address to ask and the key to send. Both come from the environment; there is no default."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

BASE_URL = "OPENAI_BASE_URL"
KEY = "OPENAI_API_KEY"
OPENROUTER_KEY = "OPENROUTER_API_KEY"
_OPENROUTER = "openrouter.ai"
_PATH = "/chat/completions"


class SetupError(Exception):
    """A variable is missing or invalid."""


class Endpoint(msgspec.Struct, frozen=True):
    tls: bool
    host: str
    port: int
    #: the path, with the query if the base URL has one
    target: str
    key: str | None = None
    proxy: SplitResult | None = None

    @property
    def shown(self) -> str:
        """The address for messages, without the query, which may contain a key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == (443 if self.tls else 80) else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{host}{port}{self.target.partition('?')[0]}"


def from_environment(environ: Mapping[str, str]) -> Endpoint:
    base = environ.get(BASE_URL, "").strip()
    if not base:
        raise SetupError(
            f"{BASE_URL} is not set: set it to the endpoint, for example http://127.0.0.1:8080/v1 for a local server "
            "or https://openrouter.ai/api/v1"
        )
    try:
        parts = urlsplit(base)
        port = parts.port
    except ValueError as error:
        raise SetupError(f"{BASE_URL} is not a valid address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(f"{BASE_URL} must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise SetupError(f"{BASE_URL} contains a user or a password: set {KEY} instead")
    if not _is_printable(parts.path + parts.query):
        raise SetupError(f"{BASE_URL} contains characters that are not allowed in an address: write them as %XX")
    host, tls = parts.hostname, parts.scheme == "https"
    return Endpoint(
        tls,
        host,
        port or (443 if tls else 80),
        parts.path.rstrip("/").removesuffix(_PATH) + _PATH + (f"?{parts.query}" if parts.query else ""),
        _key(host, environ),
        _proxy(host, environ, tls=tls),
    )


def _key(host: str, environ: Mapping[str, str]) -> str | None:
    """Return the key for this host. OpenRouter's key is sent to OpenRouter only."""
    at_openrouter = host == _OPENROUTER or host.endswith("." + _OPENROUTER)
    for name in (OPENROUTER_KEY, KEY) if at_openrouter else (KEY,):
        key = environ.get(name, "").strip()
        if not _is_printable(key):
            raise SetupError(f"{name} contains a character that no key has: a space, a line break or one beyond ASCII")
        if key:
            return key
    return None


def _proxy(host: str, environ: Mapping[str, str], *, tls: bool) -> SplitResult | None:
    """Return the proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name; lowercase names count too.

    A server on this machine is always asked directly.
    """
    name = "https_proxy" if tls else "http_proxy"
    given = (environ.get(name) or environ.get(name.upper()) or "").strip()
    if not given or _is_local(host) or _bypassed(host, environ.get("no_proxy") or environ.get("NO_PROXY", "")):
        return None
    try:
        proxy = urlsplit(given if "://" in given else f"http://{given}")
        usable = proxy.scheme == "http" and proxy.hostname and proxy.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SetupError(f"{name.upper()} must be like http://host:port; other proxies are not supported")
    return proxy


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bypassed(host: str, listed: str) -> bool:
    names = [name.strip().lstrip("*").lstrip(".").lower() for name in listed.split(",") if name.strip()]
    return any(not name or host == name or host.endswith("." + name) for name in names)


def _is_printable(text: str) -> bool:
    return all("!" <= c <= "~" for c in text)
