"""Many iterations."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from faults.case import fault
from faults.usage import Watch

if TYPE_CHECKING:
    from faults.place import Place

_NEVER = ("MAX_FAILURES", "STUCK_AFTER", "SAME_ERROR_AFTER", "SAME_ANSWER_AFTER")


@fault("10,000 empty iterations", "2 limit · empty×10000; memory and files flat", bound=1500, short=False)
def ten_thousand(at: Place) -> None:
    _nothing(at, 10_000)


@fault("300 empty iterations", "2 limit · empty×300; memory and files flat", bound=120)
def three_hundred(at: Place) -> None:
    _nothing(at, 300)


def _nothing(at: Place, count: int) -> None:
    program = shutil.which("true") or "/bin/true"
    (at.repo / "ralph.yml").write_text(f"agent: custom\ncommand: {program}\nprompt_mode: stdin\n")
    at.env |= {f"RALPH_{name}": "0" for name in _NEVER}
    running = at.start("run", str(count), "--ui", "plain", stdout=subprocess.DEVNULL)
    watch = Watch(running.pid)
    at.see(watch.follow(running, within=1400))
    at.check("memory and files flat", watch.flat(), watch.summary())
