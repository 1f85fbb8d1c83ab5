"""The requests to the server, in order: in memory for tests, and as JSON lines for people."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.testing.model.exchange import Json


@dataclass(frozen=True)
class Request:
    """One request, without its headers, which contain keys."""

    method: str
    path: str
    #: anthropic, chat, responses or gemini; empty for anything else
    api: str = ""
    #: whether it is the agent's own work, not a title, a router or a token count
    main: bool = False
    #: the turn of the script that answered it, from 0
    step: int = 0
    model: str = ""
    #: the full text of the user's last message
    prompt: str = ""
    tools: list[str] = field(default_factory=list)
    stream: bool = False
    body: Json = field(default_factory=dict)


class RequestLog:
    """Many threads append to it."""

    def __init__(self, file: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._file = file
        if file is not None:
            file.write_text("")  # fail now if the file cannot be written, not at the first request

    def add(self, request: Request) -> int:
        """Adds a request. Returns the number of main requests so far, with this one."""
        with self._lock:
            self._requests.append(request)
            if self._file is not None:
                with self._file.open("a", encoding="utf-8", errors="surrogatepass") as out:
                    out.write(json.dumps(asdict(request), ensure_ascii=False) + "\n")
            return sum(r.main for r in self._requests)

    @property
    def requests(self) -> list[Request]:
        with self._lock:
            return list(self._requests)
