"""Plain output that repeats the prompt, in any form, completes nothing; an answer after it does.

An input is a prompt without its last line, then byte 3, then what the agent prints before the echo.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from fuzz.checks import choices, cut, require
from ralph.judging.judge import judge
from ralph.judging.observe import Observation
from ralph.judging.output import OutputReader
from ralph.judging.signals import Markers
from ralph.runners.process import Ended, EndKind
from ralph.transcripts.plain import PlainAdapter
from ralph.transcripts.safe import SafeAdapter

if TYPE_CHECKING:
    import random

_ENDED = Ended(EndKind.EXITED, "exited with code 0", 0)
#: Words that no prompt ends with.
_OWN = "Everything that was asked for works now, 7 of 7."


def check(data: bytes) -> None:
    rng = choices(data)
    prompt, _, banner = data.decode("utf-8", "replace").partition("\x03")
    marker = rng.choice(Markers().complete)
    prompt = f"{prompt}\n{marker}\n"
    if not any(character.isalnum() for character in prompt.removesuffix(f"{marker}\n")):
        return  # nothing but the marker: any answer would look the same
    echo = f"{banner}\n{_echo(prompt, marker, rng)}"
    require(not _completed(echo, prompt, rng), "an echo of the prompt completes nothing", echo, prompt)
    signs = rng.choice(("", "  ", "**", "_", "`"))
    answer = f"{echo}\n{_OWN}\n{signs}{marker}{signs}\n"
    require(_OWN in prompt or _completed(answer, prompt, rng), "an answer after an echo completes", answer, prompt)


def _echo(prompt: str, marker: str, rng: random.Random) -> str:
    """The prompt as a command may print it, with the marker alone on the last line."""
    body = prompt.removesuffix(f"{marker}\n").split("\n")
    match rng.randrange(6):
        case 0:
            body = [f"{rng.choice(('    ', chr(9), '> ', '│ '))}{line}" for line in body]
        case 1:
            body = [line for line in body if line.strip()]
        case 2:
            body = [f"{line}\r" for line in body]
        case 3:
            body = [part for line in body for part in textwrap.wrap(line, rng.randrange(5, 60)) or [""]]
        case 4:
            body = [line + "\n" * rng.randrange(3) for line in body]
        case _:
            pass
    signs = rng.choice(("", "", "    ", "**", "`"))
    return "\n".join([*body, f"{signs}{marker}{signs}", *[""] * rng.randrange(3)])


def _completed(output: str, prompt: str, rng: random.Random) -> bool:
    adapter = SafeAdapter(PlainAdapter(prompt))
    seen = Observation(Markers(), prompt=prompt)
    reader = OutputReader(adapter, seen)
    for chunk in cut(output.encode("utf-8", "replace"), rng):
        reader.stdout(chunk)
    reader.exited()
    reader.end()
    return judge(_ENDED, seen, structured=adapter.structured).completed
