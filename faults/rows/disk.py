"""Disks that are full, read-only or gone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from faults.case import NotPossibleError, fault
from faults.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from faults.place import Place

_FLOODS = "ready()\nfor n in range(200000): say(f'line {n} ' + 'x' * 80)\nsay('<promise>COMPLETE</promise>')"


def _small(folder: Path, size: str = "1m", more: str = "") -> None:
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}{more}", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        raise NotPossibleError(done.stderr.strip())


def _fill(folder: Path) -> Path:
    """Uses all free space."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler


def _journal_readable_prefix(at: Place) -> None:
    """Checks that the journal has everything up to the point where the disk was full, in order."""
    assert at.lost is not None
    for file in sorted(at.side.glob("*.stdout")):
        raws = sorted(at.repo.glob(".ralph/runs/*/iterations/0001/stdout.raw"))
        kept = raws[-1].read_bytes() if raws else b""
        if file.read_bytes()[: len(kept)] != kept and not kept.startswith(file.read_bytes()):
            at.wrong.append("stdout.raw is not what the agent wrote")
        if not kept:
            at.wrong.append("nothing was kept")
    at.lost = None


@fault("disk full while the agent writes", "1 · none; reported", mounts=True)
def full(at: Place) -> None:
    _small(at.repo, "2m")
    at.make_repository(at.repo)
    at.see(at.run(at.agent(_FLOODS)).ended(), cut=True)
    _journal_readable_prefix(at)
    at.reported("the journal cannot be written", "No space left")


@fault("… and room is made: the next run works", "1 · none; 0 complete · ok", mounts=True)
def full_then_room(at: Place) -> None:
    _small(at.repo, "2m")
    at.make_repository(at.repo)
    at.see(at.run(at.agent(_FLOODS)).ended(), cut=True)
    for file in at.side.glob("*.std*"):
        file.unlink()
    at.lost = None
    for raw in at.repo.glob(".ralph/runs/*/iterations/*/stdout.raw"):
        raw.unlink()
    at.see(at.run(at.agent("say('<promise>COMPLETE</promise>')", "again")).ended())


@fault("disk full when the agent has just ended", "1; reported", mounts=True)
def full_at_end(at: Place) -> None:
    _small(at.repo, "1m")
    at.make_repository(at.repo)
    agent = (
        "say('here')\n"
        "raw = os.environ['RALPH_RUN_DIR'] + '/iterations/0001/stdout.raw'\n"
        "while os.path.getsize(raw) < 5: time.sleep(0.01)\n"
        "try:\n    with open('filler', 'wb', 0) as f:\n"
        "        while True: f.write(bytes(4096))\nexcept OSError: pass"
    )
    at.see(at.run(at.agent(agent), "3").ended(), cut=True)
    at.observed = [
        said.partition(" · ")[0] for said in at.observed
    ]  # the outcome of the iteration may be what did not fit
    at.reported("No space left")


@fault("disk full before the start", "1, nothing run; reported", mounts=True)
def full_before(at: Place) -> None:
    _small(at.repo, "1m")
    at.make_repository(at.repo)
    _fill(at.repo)
    at.see(at.run(at.agent("say('never')")).ended())
    at.reported("the journal cannot be written", "No space left")
    if at.lost:
        at.wrong.append("the agent was started")


@fault("a disk with room for 0 to 64 KB", "a clear end each time; no run without its run.json", mounts=True)
def little_room(at: Place) -> None:
    _small(at.repo, "1m")
    at.make_repository(at.repo)
    filler = _fill(at.repo)
    size = filler.stat().st_size
    agent = at.agent("say('x' * 500)")
    wrong, halves = {}, []
    for room in range(0, 65536, 8192 if at.short else 4096):
        os.truncate(filler, size - room)
        code = at.run(agent, "3").ended()
        if code not in (1, 2):
            wrong[room] = code
        record = Record.newest(at.repo)
        at.wrong += [f"{what} (with {room} bytes)" for what in record.faults(torn=False, cut=True)]
        if record.root is not None:
            at.shows()
            halves += [room] if not (record.root / "run.json").exists() else []
        shutil.rmtree(at.repo / ".ralph", ignore_errors=True)
        shutil.rmtree(at.repo / ".agent", ignore_errors=True)
        for file in at.side.glob("*.std*"):
            file.unlink()
    at.no_bug()
    at.check("a clear end each time", not wrong, wrong)
    at.check("no run without its run.json", not halves, halves)


@fault("no more inodes", "1 failed · ok repeatedly; reported", mounts=True)
def no_inodes(at: Place) -> None:
    _small(at.repo, "20m")
    at.make_repository(at.repo)
    used = sum(1 for _ in at.repo.rglob("*")) + 1
    subprocess.run(["mount", "-o", f"remount,nr_inodes={used + 120}", str(at.repo)], check=True)
    at.see(at.run(at.agent("say(f'here {ITERATION}')"), "30", "--stuck-after", "0").ended())
    at.observed = [
        re.sub(r"ok×\d+", "ok repeatedly", said) for said in at.observed
    ]  # the number of files of a run may change
    at.reported("the journal cannot be written")


@fault("the working directory is full, the journal's disk is not", "0 complete · failed ok", mounts=True)
def full_workdir(at: Place) -> None:
    elsewhere = at.root / "elsewhere"
    elsewhere.mkdir()
    _small(at.repo, "1m")
    at.make_repository(at.repo)
    (at.repo / ".ralph").symlink_to(elsewhere)
    (at.repo / ".agent").mkdir()
    _fill(at.repo)
    agent = (
        "say('x' * 100000)\n"
        "if ITERATION == 1:\n    open('new', 'wb', 0).write(bytes(9000))\n"
        "else: say('<promise>COMPLETE</promise>')"
    )
    at.see(at.run(at.agent(agent)).ended())


@fault("/tmp is full", "0 complete · ok", mounts=True)
def full_tmp(at: Place) -> None:
    _small(at.tmp, "64k")
    _fill(at.tmp)
    (at.repo / "PROMPT.md").write_text("x" * 300_000)
    at.see(at.run(at.agent("say('<promise>COMPLETE</promise>')"), "--verify", "true").ended())


@fault("the journal is read-only before the start", "1, nothing run; reported", mounts=True)
def read_only_before(at: Place) -> None:
    (at.repo / ".ralph").mkdir()
    _small(at.repo / ".ralph")
    subprocess.run(["mount", "-o", "remount,ro", str(at.repo / ".ralph")], check=True)
    at.see(at.run(at.agent("say('never')")).ended())
    at.reported("the journal cannot be written", "Read-only file system")
    if at.lost:
        at.wrong.append("the agent was started")


@fault("the journal becomes read-only between iterations", "1 · ok×3; reported", mounts=True)
def read_only_during(at: Place) -> None:
    (at.repo / ".ralph").mkdir()
    _small(at.repo / ".ralph", "8m")
    agent = "say('here')\nif ITERATION == 3: ready(); time.sleep(2)"
    running = at.run(at.agent(agent), "9")
    at.ready()
    # A file system with files open for writing cannot become read-only, but a bind mount of it can.
    folder = str(at.repo / ".ralph")
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    at.see(running.ended(), cut=True)
    at.reported("the journal cannot be written", "Read-only file system")


@fault("the working directory vanishes during the run", "1; reported")
def workdir_gone(at: Place) -> None:
    agent = "import shutil\nsay('here'); shutil.rmtree(os.getcwd()); say('gone')"
    code = at.run(at.agent(agent), "3").ended()
    at.no_bug()
    at.check(str(code), True)
    at.reported("the working directory is gone")


@fault("… while the agent keeps running", "1; reported; agent not cut off")
def workdir_gone_working(at: Place) -> None:
    agent = "import shutil\nsay('here'); shutil.rmtree(os.getcwd()); work(2); ready()"
    code = at.run(at.agent(agent), "3").ended()
    at.no_bug()
    at.check(str(code), True)
    at.reported("the working directory is gone")
    at.check("agent not cut off", (at.side / "ready").exists())


@fault("the working directory is moved away", "1; reported; journal moved with it")
def workdir_moved(at: Place) -> None:
    agent = "say('here'); ready(); time.sleep(1); say('<promise>COMPLETE</promise>' if ITERATION == 2 else 'more')"
    running = at.run(at.agent(agent), "3")
    at.ready()
    moved = at.root / "moved"
    at.repo.rename(moved)
    code = running.ended()
    at.no_bug()
    at.check(str(code), True)
    at.reported("the working directory is gone")
    runs = list((moved / ".ralph" / "runs").glob("*/events.jsonl"))
    at.check("journal moved with it", bool(runs) and b"run_end" in runs[0].read_bytes())


@fault("the journal is deleted during the run (git clean)", "2 limit · ok×3; reported; nothing lost")
def journal_deleted(at: Place) -> None:
    agent = "import subprocess\nsay('here'); subprocess.run(['git', 'clean', '-qfdx'], check=True)"
    at.see(at.run(at.agent(agent), "3").ended())
    at.reported("it was restored")
    runs = list((at.repo / ".ralph" / "runs").glob("*"))
    at.check("nothing lost", len(runs) == 1 and len(list(runs[0].glob("iterations/*/stdout.raw"))) == 3)


@fault("a verify command fills the disk", "1 · none; reported", mounts=True)
def verify_fills(at: Place) -> None:
    _small(at.repo, "2m")
    at.make_repository(at.repo)
    check = "head -c 8000000 /dev/zero > filler; seq 1 200000; exit 1"
    at.see(at.run(at.agent("say('<promise>COMPLETE</promise>')"), "3", "--verify", check).ended(), cut=True)
    at.reported("No space left")
