"""The HTTP server: one loopback port for all APIs."""

from __future__ import annotations

import gzip
import ipaddress
import json
import re
import socket
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ralph.testing.model import anthropic, chat, gemini, responses
from ralph.testing.model.log import Request, RequestLog
from ralph.testing.model.script import Cut, Hang, Refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ralph.testing.model.director import Director
    from ralph.testing.model.exchange import Api, Event, Json, ModelRequest

_ROUTES: tuple[tuple[re.Pattern[str], Api], ...] = (
    (re.compile(r"/messages$"), anthropic.API),
    (re.compile(r"/chat/completions$"), chat.API),
    (re.compile(r"/responses$"), responses.API),
    (gemini.PATH, gemini.API),
)
_MODELS = ("scripted-model", "claude-sonnet-4-5", "gpt-5", "gpt-5-codex", "gemini-2.5-pro", "qwen3-coder-plus")
_TOKENS = 1234


class Server(ThreadingHTTPServer):
    """Answers as the director decides, until `stop()`."""

    daemon_threads = True
    # A handler may hang on purpose. It ends when `stopping` is set, but nobody waits for it.
    block_on_close = False
    request_queue_size = 64

    def __init__(self, host: str, port: int, director: Director, log: RequestLog) -> None:
        require_loopback(host)
        self.director = director
        self.log = log
        self.stopping = threading.Event()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        name = str(host)
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores connections that a killed agent resets, which is no error of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def stop(self) -> None:
        self.stopping.set()
        self.shutdown()
        self.server_close()


def require_loopback(host: str) -> None:
    """Anyone who reaches this server can make an agent run commands, so it must not be reachable from outside."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local:
        raise ValueError(f"{host} is not a loopback address: the scripted model serves only this machine")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Prints nothing: requests are in the log."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.log.add(Request("GET", self.path))
        if path.rstrip("/").endswith("/models"):
            self._json(200, _models())
        else:
            self._not_found(path)

    def do_POST(self) -> None:
        try:
            self._post(urlsplit(self.path).path)
        except ConnectionError:  # the agent was stopped or gave up waiting
            self.close_connection = True

    def _post(self, path: str) -> None:
        try:
            body = self._body()
        except (ValueError, OSError, zlib.error) as error:
            self.close_connection = True  # the rest of this request would be taken for the next one
            self._json(400, {"error": {"message": f"the request cannot be read: {error}", "type": "bad_request"}})
            return
        if path.endswith("/count_tokens"):
            self.server.log.add(Request("POST", self.path, body=body))
            self._json(200, {"input_tokens": _TOKENS})
        elif path.endswith(":countTokens"):
            self.server.log.add(Request("POST", self.path, body=body))
            self._json(200, {"totalTokens": _TOKENS})
        else:
            api = next((api for pattern, api in _ROUTES if pattern.search(path)), None)
            if api is None:
                self.server.log.add(Request("POST", self.path, body=body))
                self._not_found(path)
            else:
                self._answer(api, api.read(path, body), body)

    def _answer(self, api: Api, asked: ModelRequest, body: Json) -> None:
        director = self.server.director
        request = Request(
            "POST",
            self.path,
            api.name,
            director.is_main(asked),
            director.step(asked),
            asked.model,
            asked.prompt,
            sorted(asked.tools),
            asked.stream,
            body,
        )
        fault = director.fault(asked, self.server.log.add(request))
        match fault:
            case Refuse(failure):
                refusal = api.refusal(failure)
                self._json(refusal.status, refusal.body, refusal.headers)
            case Hang():
                self.server.stopping.wait()
                self.close_connection = True
            case _ if asked.stream:
                self._stream(list(api.events(director.reply(asked))), cut=isinstance(fault, Cut))
            case _:
                self._json(200, api.whole(director.reply(asked)), cut=isinstance(fault, Cut))

    def _stream(self, events: list[Event], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._chunks(events[: len(events) // 2] if cut else events)
        if cut:
            self.close_connection = True  # without the chunk of length 0 the answer is incomplete
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _chunks(self, events: Iterable[Event]) -> None:
        pace = self.server.director.scenario.pace
        for event in events:
            data = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            if pace:
                self.server.stopping.wait(pace)

    def _json(self, status: int, body: Json, headers: dict[str, str] | None = None, *, cut: bool = False) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self.close_connection = True

    def _not_found(self, path: str) -> None:
        self._json(404, {"error": {"message": f"the scripted model has no {path}", "type": "not_found_error"}})

    def _body(self) -> Json:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            raw = b"".join(iter(self._chunk, b""))
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match self.headers.get("Content-Encoding", "identity").lower():
            case "gzip":
                raw = gzip.decompress(raw)
            case "deflate":
                raw = zlib.decompress(raw)
            case "identity":
                pass
            case other:
                raise ValueError(f"unknown Content-Encoding {other}")
        body = json.loads(raw or b"{}")
        if not isinstance(body, dict):
            raise ValueError("not a JSON object")
        return body

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data


def _models() -> Json:
    """The models, under `data` for OpenAI and Anthropic, and under `models` for Google."""
    return {
        "object": "list",
        "has_more": False,
        "data": [
            {"id": m, "object": "model", "type": "model", "created": 0, "owned_by": "script", "display_name": m}
            for m in _MODELS
        ],
        "models": [{"name": f"models/{m}"} for m in _MODELS],
    }
