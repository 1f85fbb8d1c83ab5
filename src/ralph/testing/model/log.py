"""What the server was asked, in order: for a test in memory, for a person as JSON lines."""

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
    """One request. Its headers are left out: they hold keys."""

    method: str
    path: str
    #: anthropic, chat, responses or gemini; empty for anything else
    api: str = ""
    #: of an agent at work, in contrast to a title, a router or a count of tokens
    main: bool = False
    #: the script's turn that it was answered with, from 0
    step: int = 0
    model: str = ""
    #: the words of the user's last message, whole
    prompt: str = ""
    tools: list[str] = field(default_factory=list)
    stream: bool = False
    body: Json = field(default_factory=dict)


class RequestLog:
    """Appended to by many threads."""

    def __init__(self, file: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._file = file
        if file is not None:
            file.write_text("")  # a file that cannot be written is an error now, not at the first request

    def add(self, request: Request) -> int:
        """Returns how many main requests there have been, with this one."""
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
