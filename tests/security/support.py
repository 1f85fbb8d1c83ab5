"""Helpers for all attacks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Ralph: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

DONE = "<promise>COMPLETE</promise>"
#: an agent that stores its prompt, so that a test sees what left the machine
AGENT = ("run", "1", "--agent-cmd", f"cat > received; echo '{DONE}'")
#: what may control a terminal: C0 without tab and newline, DEL, C1, and characters that change the text direction
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: sets the title, fills the clipboard, returns to the start of the line, reverses the text
EVIL = "\x1b]0;evil\x07\x1b]52;c;ZXZpbA==\x07\x1b[2Jx\rgone\x9b31m\u202egnp"


def harmless(done: subprocess.CompletedProcess[str]) -> None:
    """Checks that it ended without a crash, and printed nothing that controls a terminal."""
    output = done.stdout + done.stderr
    assert CONTROL.search(output) is None, output
    assert "this is a bug in ralph" not in output, output
    assert "Traceback" not in output, output


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in sorted(folder.rglob("*"))}
