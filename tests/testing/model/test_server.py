"""Connection faults, and who can connect."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from ralph.testing.model import FakeModel, Scenario, Turn

if TYPE_CHECKING:
    from pathlib import Path

BODY = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "Do it."}],
    "tools": [{"name": "Bash", "input_schema": {}}],
}


def connect(model: FakeModel, timeout: float = 10) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(model.url).netloc, timeout=timeout)


def ask(connection: http.client.HTTPConnection, body: bytes | None = None) -> http.client.HTTPResponse:
    connection.request("POST", "/v1/messages", body or json.dumps(BODY).encode())
    return connection.getresponse()


def test_a_cut_answer_starts_and_never_ends() -> None:
    with FakeModel("cut") as model:
        connection = connect(model)
        with pytest.raises(http.client.IncompleteRead) as cut:
            ask(connection).read()
        connection.close()
    assert b"message_start" in cut.value.partial
    assert b"message_stop" not in cut.value.partial


def test_a_hanging_request_ends_with_the_server() -> None:
    with FakeModel("hang") as model:
        connection = connect(model, 0.3)
        with pytest.raises(TimeoutError):
            ask(connection)
        assert len(model.requests) == 1
        started = time.monotonic()
    connection.close()
    assert time.monotonic() - started < 3


def test_a_slow_answer_arrives_in_pieces_over_time() -> None:
    with FakeModel(Scenario("", (Turn("one two three four five six"),), pace=0.1)) as model:
        connection = connect(model)
        started = time.monotonic()
        ask(connection).read()
        connection.close()
    assert time.monotonic() - started > 0.5


def test_one_connection_can_carry_several_requests() -> None:
    with FakeModel() as model:
        connection = connect(model)
        assert [len(ask(connection).read()) > 100 for _ in range(3)] == [True] * 3
        connection.close()


@pytest.mark.parametrize("body", [b"{not json", b"[1]", b'"text"'])
def test_an_unreadable_request_is_a_client_error(body: bytes) -> None:
    with FakeModel() as model:
        connection = connect(model)
        assert ask(connection, body).status == 400
        connection.close()


def test_models_are_listed_and_other_addresses_are_not_found() -> None:
    with FakeModel() as model:
        with urllib.request.urlopen(f"{model.url}/v1/models", timeout=10) as response:
            assert json.load(response)["data"][0]["id"]
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(f"{model.url}/v1/elsewhere", timeout=10)
        assert error.value.code == 404
        error.value.close()


def test_counting_tokens_does_not_advance_the_script() -> None:
    with FakeModel() as model:
        connection = connect(model)
        connection.request("POST", "/v1/messages/count_tokens", json.dumps(BODY))
        assert json.load(connection.getresponse()) == {"input_tokens": 1234}
        connection.close()
        assert [r.main for r in model.requests] == [False]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.invalid"])
def test_only_loopback_addresses_are_accepted(host: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        FakeModel(host=host)


def test_the_log_has_the_whole_prompt_and_no_key(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    prompt = "words " * 60_000
    with FakeModel(log=log) as model:
        body = json.dumps(BODY | {"messages": [{"role": "user", "content": prompt}]})
        connection = connect(model)
        connection.request("POST", "/v1/messages", body, {"x-api-key": "hidden-key"})
        connection.getresponse().read()
        connection.close()
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["prompt"] == prompt
    assert "hidden-key" not in line


def test_a_killed_agent_causes_no_output(capfd: pytest.CaptureFixture[str]) -> None:
    with FakeModel("success") as model:
        address = urlsplit(model.url)
        peer = socket.create_connection((address.hostname, address.port), 10)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()  # with a reset, as when its process is gone
        with urllib.request.urlopen(f"{model.url}/v1/models", timeout=10) as response:
            assert response.status == 200
    time.sleep(0.1)
    assert "Traceback" not in capfd.readouterr().err
