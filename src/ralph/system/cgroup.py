"""A cgroup (version 2) for what a run starts: the kernel ends everything in it at once, however it forked.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time

_NAME = re.compile(r"ralph-(\d+)-(\d+)-(\d+)-\d+")
_count = itertools.count()


def create() -> str | None:
    """Creates a group below our own. None where the system has no version 2, or does not let us.

    Groups that a ralph of this user left because it was killed together with its keeper and watcher are ended.
    """
    parent = _own_group()
    if parent is None:
        return None
    _end_abandoned(parent)
    started = _start_time(os.getpid())
    group = f"{parent}/ralph-{_namespace()}-{os.getpid()}-{started}-{next(_count)}"
    try:
        os.mkdir(group, 0o700)  # noqa: PTH102 - the keeper starts faster without pathlib
    except OSError:
        return None
    if not os.path.exists(f"{group}/cgroup.kill"):  # noqa: PTH110 - a kernel before 5.14
        remove(group)
        return None
    return group


def enter(group: str) -> bool:
    """Moves this process into the group; what it starts from now on is in it as well."""
    return _write(f"{group}/cgroup.procs", b"0")


def kill(group: str) -> None:
    """Kills every process in the group and in groups below it."""
    _write(f"{group}/cgroup.kill", b"1")


def remove(group: str) -> None:
    """Removes a group, and those that the agent created in it. What was killed takes a moment to leave."""
    for _ in range(50):
        for folder, _folders, _files in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106
        if not os.path.isdir(group):  # noqa: PTH112
            return
        time.sleep(0.005)


def _write(path: str, data: bytes) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, data)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _own_group() -> str | None:
    """The folder of the group that we are in."""
    try:
        with open("/proc/self/cgroup") as groups:
            own = next((line[3:].rstrip("\n") for line in groups if line.startswith("0::")), None)
        with open("/proc/self/mountinfo") as mounts:
            mounted = [line.split(" ") for line in mounts if " - cgroup2 " in line]
    except OSError:
        return None
    for fields in mounted if own is not None else []:
        root, place = fields[3].rstrip("/"), fields[4]
        inside = f"{own}/".startswith(f"{root}/") and "/.." not in str(own)
        folder = f"{place}{str(own)[len(root) :]}".rstrip("/")
        if inside and os.access(folder, os.W_OK):
            return folder
    return None


def _end_abandoned(parent: str) -> None:
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        found = _NAME.fullmatch(name)
        if found is None or int(found[1]) != _namespace():
            continue  # a process ID means something else in another container
        if _start_time(int(found[2])) != int(found[3]):
            kill(f"{parent}/{name}")
            remove(f"{parent}/{name}")


def _namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        return 0


def _start_time(pid: int) -> int:
    """When a process started, in ticks since boot; 0 if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0
