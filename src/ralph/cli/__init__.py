"""The command line: runs a command and turns every error into one sentence and an exit code."""

from __future__ import annotations

import errno
import os
import sys

from ralph.errors import OUT_OF_RESOURCES, RalphError

#: The disk or device behind our output takes no more.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


def _invoke() -> tuple[object, str]:
    """The exit code, and click's complaint about the command line, if it has one."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"]:
        from ralph.cli.quick import read

        asked = read(arguments[1:])
        if asked is not None:
            from ralph.cli.run import run

            code = run(asked.flags, config_file=asked.config_file, dry_run=asked.dry_run, trust=asked.trust)
            return code, ""
    from ralph.cli.group import invoke

    return invoke()


def _safe(text: str) -> str:
    """Masks secrets: a message may quote a command line or a file."""
    from ralph.masking.masker import for_environment

    return for_environment().text(text)


def _crashed(error: Exception) -> int:
    if os.environ.get("RALPH_DEBUG"):
        raise error
    from ralph.cli.crash import report

    report(error)
    return 1


def main() -> None:
    """Runs a command. When something goes wrong, the user reads a sentence, not a traceback."""
    try:
        code, refusal = _invoke()
        sys.stdout.flush()
        if refusal:
            _say(_safe(refusal))
    except RalphError as error:
        _say(_safe(f"ralph: {error}"))
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The reader of our output has gone away (`| head -1`): end silently, also at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except OSError as error:
        if error.errno in _FULL:
            _say(f"ralph: the output cannot be written: {error.strerror}")
            code = 1
        elif error.errno in OUT_OF_RESOURCES:
            _say(f"ralph: out of system resources: {error.strerror}")
            code = 1
        else:
            code = _crashed(error)
    except MemoryError:
        _say("ralph: out of memory")
        code = 1
    except Exception as error:  # noqa: BLE001 - the top: a bug of ours becomes a sentence and a crash file
        code = _crashed(error)
    _drop_unwritable()
    sys.exit(code if isinstance(code, int) else 0)


def _say(text: str) -> None:
    """Writes to stderr, if somebody still reads it."""
    from ralph.cli.echo import echo

    try:
        echo(text, err=True)
    except OSError:
        pass  # the exit code reports the failure as well


def _drop_unwritable() -> None:
    """Drops what a closed stream cannot take: failing to flush it at shutdown would change the exit code to 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
