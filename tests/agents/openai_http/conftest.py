from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agents.openai_http.byteserver import ByteServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def serve() -> Iterator[Callable[..., ByteServer]]:
    servers: list[ByteServer] = []

    def start(*answers: list[bytes | float], **options: Any) -> ByteServer:
        servers.append(ByteServer(*answers, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
