"""Where a search starts: real recordings and files, and the tokens of each format."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path

from fuzz.damage import FIXTURES, read
from fuzz.streams import STDERR
from ralph.config.settings import OPTIONS

_ROOT = Path(__file__).parent.parent
OWN_SEEDS = Path(__file__).parent / "seeds"
_AGENTS = _ROOT / "src" / "ralph" / "agents"
#: The recordings for each adapter. Adapters without recordings have a file in our own seeds.
FOLDERS: dict[str, tuple[str, ...]] = {
    "amp": ("amp",), "claude": ("claude",), "cline": ("cline",), "codex": ("codex",), "copilot": ("copilot",),
    "cursor": ("cursor-agent",), "droid": ("droid",), "gemini": ("gemini",), "goose": ("goose",),
    "kimi": ("kimi-cli", "kimi-code"), "kiro": ("kiro-cli",), "ollama": ("ollama",), "opencode": ("opencode",),
    "pi": ("pi",), "plain": ("kiro-cli",), "provider": ("claude",), "qwen": ("qwen",),
}  # fmt: skip
_LONGEST_LINE = 1500
_LARGEST = 6000
_MOST = 60
#: Damage that can occur in any format.
_ANY = (
    b"\x01", b"\x02", b"\x03", b"\x1b[0m", b"\r\n", b"\n\n", b"\xff", b"\xe2\x80\xa8", b"\\ud800", b"\\u0000", b"\\n",
    b"null", b"true", b"false", b"-1", b"1e999", b"NaN", b"-Infinity", b"99999999999999999999", b"1" * 40, b"0.1",
    b"{}", b"[]", b'""', b"{", b"[", b'"', b"[" * 64, b"```", b"~~~~", b"<promise>COMPLETE</promise>", b"LOOP_COMPLETE",
    b"<promise>REPLAN</promise>",
)  # fmt: skip


def seeds(target: str) -> list[bytes]:
    """Small inputs for a target, the same each time."""
    own = sorted(OWN_SEEDS.glob(f"{target}.*"))
    found = [path.read_bytes() for path in own]
    found += [line for data in found[:] for line in data.split(b"\n\n") if line]
    match target:
        case "config":
            found += [path.read_bytes() for path in sorted((FIXTURES / "orchestrator").glob("*.yml"))]
            found += [path.read_bytes() for path in sorted((_ROOT / "examples").rglob("ralph.yml"))]
        case "agent-file":
            found += [path.read_bytes() for path in sorted(_AGENTS.glob("*/spec.toml"))]
        case "framing":
            found += [b"one\r\ntwo\nthree", "é\u2028→🙂\r\n".encode() * 3, b"\xf0\x9f\x99\n\x80\x80\x80\x80\r"]
        case "tree":
            found += [bytes((start, *range(30), *range(60, 0, -1))) for start in range(4)]
    found += _recordings(target)
    return list(dict.fromkeys(found)) or [b"\n"]


def tokens(target: str) -> list[bytes]:
    """The tokens of a format: its most frequent keys and short values."""
    counted: Counter[bytes] = Counter()
    for data in seeds(target):
        counted.update(set(re.findall(rb'"[^"\\\n]{1,24}"', data)))
        counted.update(set(re.findall(rb"[A-Za-z_<>$@-][\w.<>:{}@-]{1,24}", data)))
    known = [word for word, _ in counted.most_common(250)]
    if target == "config":
        known += [key.encode() for option in OPTIONS for key in option.all_keys]
        known += [
            b"&a ",
            b"*a",
            b"<<: ",
            b"!!set ",
            b"!!binary ",
            b"? ",
            b"- ",
            b": ",
            b"|\n  ",
            b".inf",
            b".nan",
            b"2001-01-01",
        ]
    return [*_ANY, *dict.fromkeys(known)]


def _recordings(target: str) -> list[bytes]:
    paths = [
        path
        for folder in FOLDERS.get(target, ())
        for path in sorted((FIXTURES / folder).glob("*/*"))
        if not path.name.endswith((".meta.json", ".stderr"))
    ]
    step = max(1, len(paths) // _MOST)
    return [_small(path) for path in islice(paths, 0, None, step)]


def _small(path: Path) -> bytes:
    """A seed from a recording: lines of stderr, then of stdout, without the long ones."""
    stderr = path.with_name(path.name.partition(".")[0] + ".stderr")
    lines = [STDERR + line for line in (stderr.read_bytes().split(b"\n") if stderr.exists() else [])][:20]
    lines += read(path).split(b"\n")
    kept, size = [], 0
    for line in lines:
        if len(line) <= _LONGEST_LINE and size + len(line) < _LARGEST:
            kept.append(line)
            size += len(line) + 1
    return b"\n".join(kept)
