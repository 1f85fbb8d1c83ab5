"""How an agent dies."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from faults.case import Fault, add, fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from faults.place import Place

_SIGNALS = (
    "HUP",
    "INT",
    "QUIT",
    "ILL",
    "TRAP",
    "ABRT",
    "BUS",
    "FPE",
    "KILL",
    "USR1",
    "SEGV",
    "PIPE",
    "ALRM",
    "TERM",
    "XCPU",
    "XFSZ",
    "SYS",
)
_COMMON = ("HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "PIPE", "TERM", "XCPU")


@fault("dies in the middle of a UTF-8 character", "1 failed · crashed")
def half_a_character(at: Place) -> None:
    at.see(at.run(at.agent("out('naïve 日'.encode()[:-1]); os.kill(os.getpid(), 9)"), "--max-failures", "1").ended())


@fault("dies in the middle of a JSON line", "1 failed · crashed")
def half_a_line(at: Place) -> None:
    agent = (
        """say('@@RALPH@@ {"type":"text","tag":"AI","text":"working"}')\n"""
        """out(b'@@RALPH@@ {"type":"text","tag":"AI","text":"<promise>COMPL'); os.kill(os.getpid(), 9)"""
    )
    at.see(at.run(at.agent(agent), "--transcript", "rtf1", "--max-failures", "1").ended())


@fault("claims to be done, then a signal kills it", "1 failed · crashed")
def done_and_dead(at: Place) -> None:
    agent = "say('<promise>COMPLETE</promise>'); os.kill(os.getpid(), signal.SIGSEGV)"
    at.see(at.run(at.agent(agent), "--max-failures", "1").ended())


@fault("claims to be done, then exits with 1", "1 failed · failed")
def done_and_failed(at: Place) -> None:
    agent = "say('<promise>COMPLETE</promise>'); sys.exit(1)"
    at.see(at.run(at.agent(agent), "--max-failures", "1").ended())


@fault("exits with each of 1, 2, 126, 127, 128, 137, 143, 255", "1 failed · failed×8")
def exit_codes(at: Place) -> None:
    agent = "say('here'); sys.exit([1, 2, 126, 127, 128, 137, 143, 255][ITERATION - 1])"
    at.see(at.run(at.agent(agent), "--max-failures", "8").ended())


def _dies_by(name: str) -> Callable[[Place], None]:
    def make(at: Place) -> None:
        number = getattr(signal, f"SIG{name}")
        # Leaves no core files on the disk.
        agent = (
            "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
            f"say('here'); signal.signal({number:d}, signal.SIG_DFL) if {number:d} != 9 else None\n"
            f"os.kill(os.getpid(), {number:d}); time.sleep(10)"
        )
        record = at.see(at.run(at.agent(agent), "--max-failures", "1").ended())
        why = [m["why"] for m in record.metas("iteration_end")]
        at.check(f"by SIG{name}", any(f"SIG{name}" in text for text in why), why)

    return make


for _name in _SIGNALS:
    _made = Fault(
        f"killed by SIG{_name}", f"1 failed · crashed; by SIG{_name}", _dies_by(_name), short=_name in _COMMON
    )
    add(_made)
