"""TLS and proxies: real ones, on loopback."""

from __future__ import annotations

import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from agents.openai_http.byteserver import DONE, ask, delta, head
from ralph.agents.openai_http.endpoint import SetupError, from_environment

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from agents.openai_http.byteserver import ByteServer

    Serve = Callable[..., ByteServer]

ANSWER = [head(), delta(content="words"), delta("stop"), DONE]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for localhost and model.invalid, with its key in the same file."""
    made = tmp_path / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem "
    command += "-days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,DNS:model.invalid"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    made.write_bytes((tmp_path / "key.pem").read_bytes() + (tmp_path / "cert.pem").read_bytes())
    return made


def tls(certificate: Path) -> Callable[[socket.socket], socket.socket]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return lambda connection: context.wrap_socket(connection, server_side=True)


@pytest.mark.needs("openssl")
def test_tls_needs_a_trusted_certificate(serve: Serve, certificate: Path) -> None:
    server = serve(ANSWER, wrap=tls(certificate))
    url = f"https://localhost:{server.port}/v1"
    assert ask(url, SSL_CERT_FILE=str(certificate)).said() == "words"
    heard = ask(url, OPENAI_API_KEY="sk-some-key")
    assert heard.code == 1
    assert "cannot be trusted: self-signed certificate" in heard.result["reason"]
    assert len(server.questions) == 1  # the request without trust, and its key, were never sent


def test_a_server_without_tls_is_reported(serve: Serve) -> None:
    heard = ask(f"https://127.0.0.1:{serve(ANSWER, reads=False).port}/v1")
    assert heard.code == 1
    assert "no valid TLS connection to https://127.0.0.1" in heard.result["reason"]


def test_a_proxy_for_http(serve: Serve) -> None:
    proxy = serve(ANSWER)
    given = f"http://me:it%27s@127.0.0.1:{proxy.port}"
    assert ask("http://model.invalid/v1", HTTP_PROXY=given).said() == "words"
    (question,) = proxy.questions
    assert question.line == "POST http://model.invalid:80/v1/chat/completions HTTP/1.1"
    assert question.headers["proxy-authorization"] == "Basic bWU6aXQncw=="


@pytest.mark.needs("openssl")
def test_a_proxy_for_https(serve: Serve, certificate: Path) -> None:
    asked = []

    def tunnel(connection: socket.socket) -> socket.socket:
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += connection.recv(1)
        asked.append(request)
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return tls(certificate)(connection)

    proxy = serve(ANSWER, wrap=tunnel)
    environ = {"HTTPS_PROXY": f"http://me:pw@127.0.0.1:{proxy.port}", "SSL_CERT_FILE": str(certificate)}
    assert ask("https://model.invalid/v1", OPENAI_API_KEY="sk-some-key", **environ).said() == "words"
    assert asked[0].startswith(b"CONNECT model.invalid:443 ")
    assert b"Proxy-Authorization: Basic bWU6cHc=" in asked[0]
    assert b"sk-some-key" not in asked[0]
    (question,) = proxy.questions
    assert (question.line, question.headers["host"]) == ("POST /v1/chat/completions HTTP/1.1", "model.invalid")
    assert "proxy-authorization" not in question.headers


def test_a_proxy_that_refuses_a_tunnel_is_reported(serve: Serve) -> None:
    proxy = serve([head("403 Forbidden", Content_Length="0")])
    heard = ask("https://model.invalid/v1", https_proxy=f"127.0.0.1:{proxy.port}", OPENAI_API_KEY="sk-some-key")
    assert "(through the proxy 127.0.0.1): Tunnel connection failed: 403" in heard.result["reason"]
    (question,) = proxy.questions
    assert question.line.startswith("CONNECT model.invalid:443 ")
    assert "authorization" not in question.headers


@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        ("http://127.0.0.1:1/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://localhost/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://x.invalid/v1", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://x.invalid/v1", {"HTTPS_PROXY": "http://p:1"}, "p"),
        ("https://x.invalid/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "y.invalid, .invalid"}, None),
        ("https://x.invalid/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("https://x.invalid/v1", {"HTTPS_PROXY": "http://p:1", "no_proxy": "nvalid,ax.invalid"}, "p"),
    ],
)
def test_when_a_proxy_is_used(url: str, environ: dict[str, str], expected: str | None) -> None:
    proxy = from_environment({"OPENAI_BASE_URL": url, **environ}).proxy
    assert (proxy.hostname if proxy else None) == expected


def test_an_unsupported_proxy_is_an_error_and_not_ignored() -> None:
    for given in ("socks5://p:1", "http://p:no", "http://"):
        with pytest.raises(SetupError, match="HTTPS_PROXY must be like"):
            from_environment({"OPENAI_BASE_URL": "https://x.invalid/v1", "HTTPS_PROXY": given})
