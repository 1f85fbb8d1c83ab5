"""The command line: what a command answers, and what is said when something goes wrong."""

from __future__ import annotations

import errno
import os
import sys

from ralph.errors import OUT_OF_RESOURCES, RalphError

#: The disk or the device behind our output has had enough.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})


def _invoke() -> tuple[object, str]:
    """The exit code, and what click has to say against the command line."""
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
    """A message may quote a command line or a file, and these may hold a key."""
    from ralph.masking.masker import for_environment

    return for_environment().text(text)


def _crashed(error: Exception) -> int:
    if os.environ.get("RALPH_DEBUG"):
        raise error
    from ralph.cli.crash import report

    report(error)
    return 1


def main() -> None:
    """Runs a command; whatever goes wrong, the user reads a sentence and not a traceback."""
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
        # Whoever read our output has gone away; say nothing, not even at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except OSError as error:
        if error.errno in _FULL:
            _say(f"ralph: the output cannot be written: {error.strerror}")
            code = 1
        elif error.errno in OUT_OF_RESOURCES:
            _say(f"ralph: the system gives no more: {error.strerror}")
            code = 1
        else:
            code = _crashed(error)
    except MemoryError:
        _say("ralph: the memory is used up")
        code = 1
    except Exception as error:  # noqa: BLE001 - the top: a bug of ours is told in a sentence, its details are kept
        code = _crashed(error)
    _let_go()
    sys.exit(code if isinstance(code, int) else 0)


def _say(text: str) -> None:
    """On stderr, as far as there is somebody."""
    from ralph.cli.echo import echo

    try:
        echo(text, err=True)
    except OSError:
        pass  # the exit code says it as well


def _let_go() -> None:
    """What a stream that has gone away cannot take any more must not change the exit code at shutdown (to 120)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
