"""A chatty agent with predictable output: `chatter.py SEED LAST`; the iteration comes from its environment.

What it prints is a pure function of the seed and the iteration, so that each byte of the journal can be checked. It
needs only the standard library.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from typing import Any

SENTINEL = "@@RALPH@@ "
DONE = "<promise>COMPLETE</promise>"
_WORDS = ("read", "the", "parser,", "naïve", "“quotes”", "→", "whole\u2028", "even", "here:", "42", "passed", "\\")


def lines(seed: int, iteration: int, last: int) -> list[dict[str, Any]]:
    """The events that it prints on stdout: text, tools, topics, usage, lines of many kilobytes."""
    rng = random.Random(f"{seed}/{iteration}")
    found: list[dict[str, Any]] = [_text("AI", f"iteration {iteration} begins")]
    for number in range(rng.randint(3, 6)):
        call = f"call-{iteration}-{number}"
        found.append(_text("THINK", _words(rng, 30)))
        found.append({"type": "tool_start", "tool": {"id": call, "name": "Bash", "input": {"command": _words(rng, 5)}}})
        for _ in range(rng.randint(1, 4)):
            size = rng.choice((10, 200, 3000))
            found.append({"type": "tool_output", "tool": {"id": call, "name": "Bash"}, "text": _words(rng, size)})
        found.append({"type": "tool_end", "tool": {"id": call, "status": "ok", "name": "Bash"}})
        found.append(_text("AI", f'<event topic="step.{number}">{_words(rng, 4)}</event>'))
        tokens = {"prompt_tokens": rng.randint(1, 9999), "completion_tokens": rng.randint(1, 999)}
        found.append({"type": "usage", "usage": tokens})
    found.append(_text("AI", DONE if iteration >= last else f"iteration {iteration} ends"))
    return found


def errors(seed: int, iteration: int) -> list[str]:
    """The lines that it prints on stderr."""
    rng = random.Random(f"{seed}/{iteration}/stderr")
    return [f"note {number}: {_words(rng, 8)}" for number in range(rng.randint(1, 3))]


def encode(event: dict[str, Any]) -> bytes:
    return (SENTINEL + json.dumps(event, ensure_ascii=False)).encode() + b"\n"


def _text(tag: str, text: str) -> dict[str, Any]:
    return {"type": "text", "tag": tag, "text": text}


def _words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


def main() -> None:
    seed, last = int(sys.argv[1]), int(sys.argv[2])
    iteration = int(os.environ["RALPH_ITERATION"])
    out = b"".join(encode(event) for event in lines(seed, iteration, last))
    # A child that ends by itself: if ralph and its keeper are both killed, nobody else would end it.
    helper = subprocess.Popen(["sleep", "0.3"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.write(2, "".join(line + "\n" for line in errors(seed, iteration)).encode())
    rng = random.Random()  # different pieces each time: where a line is split must not matter
    while out:
        size = rng.choice((1, 700, 5000, 30000))
        os.write(1, out[:size])
        out = out[size:]
        time.sleep(rng.choice((0, 0, 0.002, 0.006)))
    helper.kill()
    helper.wait()


if __name__ == "__main__":
    main()
