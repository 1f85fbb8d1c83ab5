"""(d) The peak memory of the ralph process for a large output, and for ten times as much."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from bench import material
from bench.measure import LIMIT, LIMIT_REACHED, MB, custom_agent, environment, ralph, workspace
from bench.table import Row

_AIM_MB = 100.0
_AIM_SPREAD = 0.2
_TIMES = 10


def measure(*, quick: bool) -> list[Row]:
    size = (10 if quick else 50) * MB
    if not Path("/proc/self/status").exists():
        return [Row("d", "peak memory", "needs /proc (Linux)")]
    with workspace() as root:
        rtf1 = root / "output.rtf1"
        material.write(rtf1, root / "output.jsonl", size)
        small = _peak(root, [str(rtf1)])
        large = _peak(root, [str(rtf1)] * _TIMES)
    spread = abs(large - small) / small
    aim = f"< {_AIM_MB:.0f} MB"
    return [
        Row("d", f"peak memory with {size // MB} MB of output", f"{small:.1f} MB", aim, small < _AIM_MB),
        Row("d", f"peak memory with {size * _TIMES // MB} MB of output", f"{large:.1f} MB", aim, large < _AIM_MB),
        Row(
            "d",
            "the second compared with the first",
            f"{large / small:.2f} ×",
            f"within {_AIM_SPREAD:.0%}",
            spread <= _AIM_SPREAD,
            "VmHWM of the ralph process, without its children",
        ),
    ]


def _peak(root: Path, files: list[str]) -> float:
    """In megabytes. The high-water mark only rises, so the last value before the end is the peak."""
    repo = root / "repo"
    custom_agent(repo, shutil.which("cat") or "/bin/cat", files)
    argv = ralph("run", "1", "--transcript", "rtf1", "--ui", "plain")
    peak = 0.0
    started = time.monotonic()
    with subprocess.Popen(argv, cwd=repo, env=environment(root), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, _high_water(process.pid))
            if time.monotonic() - started > LIMIT:
                process.kill()
            time.sleep(0.01)
    if process.returncode != LIMIT_REACHED:
        raise RuntimeError(f"ralph ended with {process.returncode}")
    shutil.rmtree(repo / ".ralph")
    return peak


def _high_water(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it has just ended
        return 0.0
    kib = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")), "0")
    return int(kib) * 1024 / MB
