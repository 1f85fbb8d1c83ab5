"""One POST request with the standard library: direct, or through the proxy that the environment names."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ralph import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from urllib.parse import SplitResult

    from ralph.agents.openai_http.endpoint import Endpoint

_CONNECT_TIMEOUT = 30.0
#: For data that is useful but not needed: the body of an error, and the usage after the end of the text.
_END_TIMEOUT = 10.0
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream, application/json",
    "User-Agent": f"ralph/{__version__}",
    "Connection": "close",
}
_CHUNK = 1 << 16
_MOST_ERROR_BYTES = 1 << 20


class ConnectionFailedError(Exception):
    """There is no answer, or it ended early. The message says why."""


class Exchange:
    """A connection for one request. Close it afterwards."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connection = _connection(endpoint)
        self._socket: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()

    def ask(self, body: bytes) -> tuple[int, Mapping[str, str]]:
        """Send the request. Return the status and the headers, with lowercase names. Waits as long as it takes."""
        endpoint, shown = self._endpoint, self._endpoint.shown
        target, headers = endpoint.target, dict(_HEADERS)
        if endpoint.key is not None:
            headers["Authorization"] = f"Bearer {endpoint.key}"
        if endpoint.proxy and not endpoint.tls:
            target = f"http://{endpoint.host}:{endpoint.port}{target}"
            headers |= _proxy_login(endpoint.proxy)
        try:
            self._connection.connect()
        except OSError as error:
            raise ConnectionFailedError(self._connect_error(error)) from None
        except (ValueError, http.client.HTTPException) as error:
            raise ConnectionFailedError(f"cannot connect to {shown}: {error}") from None
        self._socket = self._connection.sock
        self._socket.settimeout(None)  # from here on, ralph's own timeouts apply
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            # A server may refuse before it has read the whole request: read its answer in any case.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._connection.request("POST", target, body, headers)
            self._response = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailedError(f"no answer from {shown}: {_reason(error)}") from None
        return self._response.status, {name.lower(): value for name, value in self._response.getheaders()}

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it arrives."""
        response = self._response
        assert response is not None
        left = None if response.chunked else response.length
        try:
            # Count the bytes here: in Python 3.11, `read1` does not stop at the announced length.
            while left is None or left > 0:
                chunk = response.read1(_CHUNK if left is None else min(left, _CHUNK))
                if not chunk:
                    break
                left = None if left is None else left - len(chunk)
                yield chunk
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailedError(_reason(error)) from None
        if left:
            raise ConnectionFailedError("the connection was closed early")

    def error_body(self) -> bytes:
        """Return as much of the body of an error as arrives soon."""
        self.expect_end()
        body = b""
        with contextlib.suppress(ConnectionFailedError):  # the status alone is enough
            for chunk in self.chunks():
                body += chunk
                if len(body) > _MOST_ERROR_BYTES:
                    break
        return body

    def expect_end(self) -> None:
        """Wait only a short time for further data."""
        if self._socket is not None:
            self._socket.settimeout(_END_TIMEOUT)

    def _connect_error(self, error: OSError) -> str:
        shown, host = self._endpoint.shown, self._endpoint.host
        if self._endpoint.proxy is not None:
            host = self._endpoint.proxy.hostname or ""
            shown = f"{shown} (through the proxy {host})"
        match error:
            case ssl.SSLCertVerificationError():
                return f"{shown} cannot be trusted: {error.verify_message}"
            case ssl.SSLError():
                return f"no valid TLS connection to {shown}: {error.reason or error}"
            case socket.gaierror():
                reason = f"the host {host} is unknown"
            case ConnectionRefusedError():
                reason = "connection refused; is the server running?"
            case TimeoutError():
                reason = f"no connection within {_CONNECT_TIMEOUT:.0f} s"
            case _:
                reason = error.strerror or str(error)
        return f"cannot connect to {shown}: {reason}"


def _connection(endpoint: Endpoint) -> http.client.HTTPConnection:
    proxy = endpoint.proxy
    try:
        host, port = (proxy.hostname or "", proxy.port or 80) if proxy else (endpoint.host, endpoint.port)
        if not endpoint.tls:
            return http.client.HTTPConnection(host, port, timeout=_CONNECT_TIMEOUT)
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, timeout=_CONNECT_TIMEOUT, context=context)
        if proxy is not None:
            connection.set_tunnel(endpoint.host, endpoint.port, _proxy_login(proxy))
    except (ValueError, http.client.HTTPException) as error:
        raise ConnectionFailedError(f"cannot connect to {endpoint.shown}: {error}") from None
    return connection


def _proxy_login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(login.encode()).decode()}


def _reason(error: Exception) -> str:
    match error:
        case http.client.RemoteDisconnected():
            return "the server closed the connection"
        case http.client.IncompleteRead():
            return "the connection was closed early"
        case http.client.HTTPException():
            return f"the server does not speak valid HTTP ({type(error).__name__})"
        case TimeoutError():
            return f"nothing came for {_END_TIMEOUT:.0f} s"
        case OSError():
            return (error.strerror or str(error)).lower()
        case _:
            return str(error)
