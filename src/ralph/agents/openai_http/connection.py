"""One POST, by the standard library: straight or through the proxy that the environment names."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
from typing import TYPE_CHECKING, Self
from urllib.parse import SplitResult, unquote, urlsplit

from ralph import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from ralph.agents.openai_http.endpoint import Endpoint

_CONNECT_TIMEOUT = 30.0
#: For what is only waited for out of politeness: the body of an error, the usage behind the last word.
SOON = 10.0
_CHUNK = 1 << 16
_ERROR_BODY = 1 << 20


class ConnectionFailedError(Exception):
    """There is no answer, or no more of it; the message says why."""


class Exchange:
    """A connection for one question, to be used in a `with`."""

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._proxy = proxy_for(endpoint, environ)
        self._connection = self._make()
        self._socket: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()

    def ask(self, body: bytes) -> tuple[int, Mapping[str, str]]:
        """The status and the headers (their names in small letters). Waits for them as long as it takes."""
        target, headers = self._endpoint.target, self._headers()
        if self._proxy is not None and not self._endpoint.tls:
            target = f"http://{self._endpoint.host}:{self._endpoint.port}{target}"
            headers |= _proxy_login(self._proxy)
        try:
            self._connection.connect()
        except OSError as error:
            raise ConnectionFailedError(self._why_not(error)) from None
        except (ValueError, http.client.HTTPException) as error:
            raise ConnectionFailedError(f"{self._endpoint.shown} cannot be asked: {error}") from None
        self._socket = self._connection.sock
        self._socket.settimeout(None)  # from here on ralph's own deadlines count
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            try:
                self._connection.request("POST", target, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may have refused before it had read everything: hear what it says
            self._response = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailedError(f"{self._endpoint.shown} gave no answer: {_reason(error)}") from None
        return self._response.status, {name.lower(): value for name, value in self._response.getheaders()}

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes."""
        response = self._response
        assert response is not None
        left = None if response.chunked else response.length
        try:
            # Counted here: `read1` of Python 3.11 does not stop at the length that was announced.
            while left is None or left > 0:
                chunk = response.read1(_CHUNK if left is None else min(left, _CHUNK))
                if not chunk:
                    break
                left = None if left is None else left - len(chunk)
                yield chunk
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailedError(_reason(error)) from None
        if left:
            raise ConnectionFailedError("the connection was closed in the middle of it")

    def error_body(self) -> bytes:
        """As much of it as comes soon."""
        self.hurry()
        body = b""
        try:
            for chunk in self.chunks():
                body += chunk
                if len(body) > _ERROR_BODY:
                    break
        except ConnectionFailedError:
            pass  # the status alone says enough
        return body

    def hurry(self) -> None:
        """What comes now must come soon."""
        if self._socket is not None:
            self._socket.settimeout(SOON)

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            "User-Agent": f"ralph/{__version__}",
            "Connection": "close",
        }
        if self._endpoint.key is not None:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        return headers

    def _make(self) -> http.client.HTTPConnection:
        endpoint, proxy = self._endpoint, self._proxy
        try:
            host, port = (proxy.hostname or "", proxy.port or 80) if proxy else (endpoint.host, endpoint.port)
            if not endpoint.tls:
                return http.client.HTTPConnection(host, port, timeout=_CONNECT_TIMEOUT)
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=_CONNECT_TIMEOUT, context=context)
            if proxy is not None:
                connection.set_tunnel(endpoint.host, endpoint.port, _proxy_login(proxy))
        except (ValueError, http.client.HTTPException) as error:
            raise ConnectionFailedError(f"{endpoint.shown} cannot be asked: {error}") from None
        return connection

    def _why_not(self, error: OSError) -> str:
        shown, host = self._endpoint.shown, self._endpoint.host
        if self._proxy is not None:
            shown, host = f"{shown} (by the proxy {self._proxy.hostname})", self._proxy.hostname or ""
        match error:
            case ssl.SSLCertVerificationError():
                return f"{shown} cannot be trusted: {error.verify_message}"
            case ssl.SSLError():
                return f"{shown} does not speak TLS as it should: {error.reason or error}"
            case socket.gaierror():
                return f"{shown} cannot be reached: the name {host} is not known"
            case ConnectionRefusedError():
                return f"{shown} cannot be reached: connection refused; is the server running?"
            case TimeoutError():
                return f"{shown} cannot be reached: no connection within {_CONNECT_TIMEOUT:.0f} s"
            case _:
                return f"{shown} cannot be reached: {error.strerror or error}"


def proxy_for(endpoint: Endpoint, environ: Mapping[str, str]) -> SplitResult | None:
    """`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in small letters too; never for a server on this machine."""
    name = "https_proxy" if endpoint.tls else "http_proxy"
    given = (environ.get(name) or environ.get(name.upper()) or "").strip()
    if not given or endpoint.local or _bypassed(endpoint.host, environ.get("no_proxy") or environ.get("NO_PROXY", "")):
        return None
    try:
        proxy = urlsplit(given if "://" in given else f"http://{given}")
        usable = proxy.scheme == "http" and proxy.hostname and proxy.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConnectionFailedError(f"{name.upper()} must be like http://host:port: no other kind of proxy is known")
    return proxy


def _bypassed(host: str, listed: str) -> bool:
    names = [name.strip().lstrip("*").lstrip(".").lower() for name in listed.split(",") if name.strip()]
    return any(not name or host == name or host.endswith("." + name) for name in names)


def _proxy_login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(login.encode()).decode()}


def _reason(error: Exception) -> str:
    match error:
        case http.client.RemoteDisconnected():
            return "it closed the connection"
        case http.client.IncompleteRead():
            return "the connection was closed in the middle of it"
        case http.client.HTTPException():
            return f"it does not speak HTTP as it should ({type(error).__name__})"
        case TimeoutError():
            return f"nothing came for {SOON:.0f} s"
        case OSError():
            return (error.strerror or str(error)).lower()
        case _:
            return str(error)
