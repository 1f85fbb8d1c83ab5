"""Files of the journal that are replaced as a whole, and repairing one that a kill cut short."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ralph.errors import RunError
from ralph.system.files import read

if TYPE_CHECKING:
    from pathlib import Path

    from ralph.masking.stream import ByteMasker


#: An agent can write any number of bytes to a file that is masked later, but no agent does.
_MAX_MASKED = 1 << 30
#: Longer than any line that ralph writes.
_MAX_LINE = 256 << 20


def has_output(folder: Path) -> bool:
    return any(path.exists() and path.stat().st_size for path in (folder / "stdout.raw", folder / "stderr.raw"))


def replace_file(path: Path, body: bytes) -> None:
    """Replaces a file atomically."""
    temporary = path.with_suffix(".tmp")
    try:
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # never through a link
        with os.fdopen(fd, "wb") as file:
            file.write(body)
        temporary.replace(path)
    except OSError as error:
        raise journal_error(path, error) from None


def redact_file(path: Path, masker: ByteMasker) -> None:
    """Masks a file in place, if there is anything to mask."""
    exact = read(path, _MAX_MASKED, follow=False)
    masked = masker.feed(exact) + masker.flush()
    if masked != exact:
        replace_file(path, masked)


def drop_torn_line(events: Path) -> tuple[int, bytes]:
    """Removes a last line that a kill cut off. Returns the last sequence number, and that line."""
    if not events.exists():
        return 0, b""
    with os.fdopen(os.open(events, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        tail = b""
        while end > 0 and b"\n" not in tail.removesuffix(b"\n"):
            if len(tail) > _MAX_LINE:
                raise OSError(errno.EFBIG, "its last line is too long")
            step = min(end, max(len(tail), 1 << 16))
            end -= step
            file.seek(end)
            tail = file.read(step) + tail
        whole, newline, torn = tail.rpartition(b"\n")
        if torn:
            file.truncate(end + len(whole) + len(newline))
    last = whole.rpartition(b"\n")[2]
    number = last.removeprefix(b'{"seq":').partition(b",")[0]
    return (int(number) if number.isdigit() else 0), torn


def replace_link(link: Path, target: Path) -> None:
    temporary = link.with_name(f"{link.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(target)
    temporary.replace(link)


def journal_error(path: Path, error: OSError) -> RunError:
    return RunError(
        f"the journal cannot be written: {path}: {error.strerror}.\n"
        "  ralph does not run without a journal: free some disk space, or make the directory writable."
    )
