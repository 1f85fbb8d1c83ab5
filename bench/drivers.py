"""(h) Platform drivers: the cost of hosting one, compared with sourcing it and running its command directly."""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from bench.measure import LIMIT_REACHED, MB, environment, ralph, run_timed, workspace
from bench.table import Row

if TYPE_CHECKING:
    from pathlib import Path

_EXTRA_MS = 100.0
#: Each line waits for its answer, so that it is shown at once. No model writes a tenth of this.
_MB_PER_SECOND = 1.0

_DRIVER = """
driver_name() { echo "bench"; }
driver_display_name() { echo "Bench"; }
driver_cli_binary() { echo "cat"; }
driver_valid_tools() { VALID_TOOL_PATTERNS=("read"); }
driver_build_command() { CLAUDE_CMD_ARGS=(COMMAND); }
driver_stream_filter() { echo 'select(.type == "text") | .text'; }
"""
_BARE = """
VALID_TOOL_PATTERNS=() CLAUDE_CMD_ARGS=()
source bench.sh
driver_valid_tools
driver_build_command PROMPT.md "" ""
"${CLAUDE_CMD_ARGS[@]}" </dev/null | tee last_output >/dev/null
"""


def measure(*, quick: bool) -> list[Row]:
    with workspace() as root:
        rows = [_overhead(root, 30 if quick else 100)]
        if shutil.which("jq") is not None:
            rows.append(_throughput(root, 5 * MB if quick else 20 * MB))
        return rows


def _overhead(root: Path, count: int) -> Row:
    """The agent never prints the same text twice, or ralph would call it stuck."""
    _driver(root, 'bash -c "echo hello \\$EPOCHREALTIME"')
    bare = _bare(root, count)
    ours = _run(root, str(count))
    bare = (bare + _bare(root, count)) / 2
    each, alone = ours / count * 1000, bare / count * 1000
    return Row(
        "h",
        f"{count} iterations of a platform driver, over the bare shell, each",
        f"+ {each - alone:.1f} ms",
        f"≤ {_EXTRA_MS:.0f} ms",
        each - alone <= _EXTRA_MS,
        f"{each:.1f} ms to {alone:.1f} ms; ralph's own start and end included",
    )


def _throughput(root: Path, size: int) -> Row:
    """JSON lines of an unknown agent through its driver's own filter."""
    line = '{"type":"text","text":"%s"}\n' % ("all work and no play " * 10)
    output = root / "output.jsonl"
    output.write_text(line * (size // len(line)))
    _driver(root, f'cat "{output}"')
    seconds = _run(root, "1")
    figure = output.stat().st_size / MB / seconds
    what = f"{size // MB} MB through a driver's own jq filter"
    return Row(
        "h", what, f"{figure:.0f} MB/s", f"≥ {_MB_PER_SECOND:.0f} MB/s", figure >= _MB_PER_SECOND, "one jq for all"
    )


def _run(root: Path, iterations: str) -> float:
    return run_timed(
        ralph("run", iterations, "--driver", "./bench.sh", "--stuck-after", "0", "--ui", "plain"),
        root / "repo",
        env=environment(root),
        stdout=root / "screen",
        expect=LIMIT_REACHED,
    )


def _driver(root: Path, command: str) -> None:
    (root / "repo" / "bench.sh").write_text(_DRIVER.replace("COMMAND", command))


def _bare(root: Path, count: int) -> float:
    """Does what the convention's own loop does in an iteration."""
    before = time.perf_counter()
    for _ in range(count):
        subprocess.run(
            ["bash", "-c", _BARE], cwd=root / "repo", env=environment(root), stdin=subprocess.DEVNULL, check=True
        )
    return time.perf_counter() - before
