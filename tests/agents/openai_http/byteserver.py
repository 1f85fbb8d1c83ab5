"""A real server on a loopback port that answers with exactly the given bytes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.transcripts.events import Meta, Tag, Text, TranscriptEvent, Usage, UsageEvent, decode

if TYPE_CHECKING:
    from collections.abc import Callable

SENTINEL = b"@@RALPH@@ "
HANG = 0.0


class Question(msgspec.Struct):
    """One request, unchanged."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def asked(self) -> dict[str, Any]:
        value: dict[str, Any] = msgspec.json.decode(self.body)
        return value


class ByteServer:
    """Sends the answers in order and repeats the last one. A number in an answer is a pause; HANG never ends."""

    def __init__(
        self,
        *answers: list[bytes | float],
        wrap: Callable[[socket.socket], socket.socket] | None = None,
        reads: bool = True,
    ) -> None:
        self.answers = list(answers)
        self.questions: list[Question] = []
        self.stopping = threading.Event()
        self._wrap = wrap
        self._reads = reads
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        self.stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._listener.close()

    def _serve(self) -> None:
        while not self.stopping.is_set():
            try:
                connection, _ = self._listener.accept()
                if self._wrap is not None:
                    connection = self._wrap(connection)
            except OSError:  # stopped, or a client that does not trust us
                continue
            with closing(connection):
                try:
                    self._answer(connection)
                except ConnectionError:  # the client has gone
                    continue

    def _answer(self, connection: socket.socket) -> None:
        if self._reads:
            self._read(connection)
        for part in self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]:
            if isinstance(part, bytes):
                connection.sendall(part)
            else:
                self.stopping.wait(part or None)

    def _read(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            line = stream.readline().decode().strip()
            headers = {}
            while (header := stream.readline().strip()) != b"":
                name, _, value = header.decode().partition(": ")
                headers[name.lower()] = value
            body = stream.read(int(headers.get("content-length", "0")))
        self.questions.append(Question(line, headers, body))


class Heard(msgspec.Struct):
    """What the agent printed."""

    code: int
    events: list[TranscriptEvent]
    stdout: bytes

    def said(self, tag: Tag = Tag.AI) -> str:
        return "\n".join(e.text for e in self.events if isinstance(e, Text) and e.tag is tag)

    def metas(self, kind: str) -> list[dict[str, Any]]:
        return [e.meta for e in self.events if isinstance(e, Meta) and e.meta["kind"] == kind]

    @property
    def usages(self) -> list[Usage]:
        return [e.usage for e in self.events if isinstance(e, UsageEvent)]

    @property
    def result(self) -> dict[str, Any]:
        """The result, which is the last event."""
        (result,) = self.metas("result")
        assert self.events[-1] == Meta(result)
        return result


def environment(**changes: str) -> dict[str, str]:
    ours = ("OPENAI_", "OPENROUTER_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT")
    return {k: v for k, v in os.environ.items() if not k.upper().startswith(ours)} | changes


def ask(url: str, prompt: str | bytes = "hello", model: str = "m", **changes: str) -> Heard:
    """Run the agent in the same way as ralph."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ralph.agents.openai_http", "--model", model],
        input=prompt.encode() if isinstance(prompt, str) else prompt,
        env=environment(OPENAI_BASE_URL=url, **changes),
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.stderr == b""
    lines = done.stdout.split(b"\n")
    assert lines.pop() == b""
    assert all(line.startswith(SENTINEL) for line in lines)
    return Heard(done.returncode, [decode(line[len(SENTINEL) :]) for line in lines], done.stdout)


def head(status: str = "200 OK", kind: str = "text/event-stream", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def event(value: object) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def delta(finish: str | None = None, **fields: object) -> bytes:
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "real-model", "choices": [choice]})


DONE = b"data: [DONE]\n\n"


def refusal(status: str, body: object, **headers: str) -> list[bytes]:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return [head(status, "application/json", Content_Length=str(len(data)), **headers) + data]
