"""The scripted model as a context manager."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.testing.model.director import Director
from ralph.testing.model.log import Request, RequestLog
from ralph.testing.model.scenarios import SCENARIOS
from ralph.testing.model.server import Server

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from ralph.testing.model.script import Scenario


class FakeModel:
    """A scripted model on a loopback port, for the time of a `with` block.

    `scenario` is a name from `SCENARIOS`, or a script of your own. `directory` is where the agent works: files are then
    written with absolute paths, which some agents require.
    """

    def __init__(
        self,
        scenario: str | Scenario = "success",
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        directory: str | Path | None = None,
        log: str | Path | None = None,
    ) -> None:
        script = SCENARIOS[scenario] if isinstance(scenario, str) else scenario
        self._log = RequestLog(Path(log) if log is not None else None)
        director = Director(script, str(directory) if directory is not None else None)
        self._server = Server(host, port, director, self._log)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The base address, without a path."""
        return self._server.url

    @property
    def requests(self) -> list[Request]:
        """All requests so far."""
        return self._log.requests

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._thread.join(5)
