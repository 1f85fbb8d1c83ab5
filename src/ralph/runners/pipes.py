"""The descriptors between ralph and a command."""

from __future__ import annotations

import contextlib
import fcntl
import os

#: Some CLIs exit before their pipe is drained: whatever fits into it is not lost.
PIPE_SIZE = 1 << 20
_F_SETPIPE_SZ = 1031


def open_pipe() -> tuple[int, int]:
    read, write = os.pipe()
    # An unprivileged user may be over the quota for large pipes; the default size works too.
    with contextlib.suppress(OSError):
        fcntl.fcntl(write, _F_SETPIPE_SZ, PIPE_SIZE)
    return read, write


def open_pty() -> tuple[int, int]:
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST  # no CR before each LF
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    return master, slave
