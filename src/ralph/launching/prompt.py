"""Finds and reads the prompt."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import UsageError
from ralph.system.files import read, read_any
from ralph.system.folders import user_config_dir

if TYPE_CHECKING:
    from ralph.config.layers import Resolved

DEFAULT_PROMPT_FILE = "PROMPT.md"
#: In bytes; more than any agent takes.
MAX_PROMPT = 16 << 20
#: Printed for a run without a prompt, which is allowed only for a command of the user's own.
NO_PROMPT = "no prompt: -p is empty, so the command gets an empty prompt"


_LONGEST_NAME = 255


class PromptSource(msgspec.Struct, frozen=True):
    """Where the prompt comes from. It is read again for each iteration."""

    text: str | None
    path: Path | None
    origin: str
    #: the path in messages
    label: str = ""
    #: the text may be empty
    optional: bool = False
    #: the user named the file, so it may be a pipe
    typed: bool = False

    @property
    def shown(self) -> str:
        return (self.label or str(self.path)) if self.path else self.origin

    @property
    def absent(self) -> bool:
        """Whether there is no prompt, for an agent that does not need one."""
        return self.optional and not self.text

    @property
    def gone(self) -> bool:
        return self.path is not None and not os.path.lexists(self.path)

    def read(self) -> str:
        """The current prompt. Raises a UsageError if there is none."""
        if self.text is not None:
            if not self.text.strip() and not self.optional:
                raise UsageError(f"the prompt ({self.origin}) is empty: describe what the agent should do")
            return self.text
        assert self.path is not None
        try:
            data = read_any(self.path, MAX_PROMPT) if self.typed else read(self.path, MAX_PROMPT)
            text = data.decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            raise UsageError(
                f"there is no prompt: {self.path} does not exist.\n"
                "  Write one, or use -p 'TEXT' or -P FILE. To start from a template: ralph init\n"
                "  For a command of your own that needs none: -p ''"
            ) from None
        except OSError as error:
            raise UsageError(f"the prompt {self.path} cannot be read: {error.strerror}") from None
        if not text.strip():
            raise UsageError(f"the prompt {self.path} is empty: describe in it what the agent should do")
        if "\0" in text:
            raise UsageError(f"the prompt {self.path} is not text (it contains NUL bytes): save it as UTF-8")
        return text


def from_settings(resolved: Resolved, workdir: Path) -> PromptSource:
    """The prompt from -p, -P, ralph.yml or PROMPT.md."""
    settings = resolved.settings
    if settings.prompt is not None:
        # Without a prompt, an agent might do anything. A command of the user's own may need none, if they say so.
        optional = settings.agent == "custom" and settings.prompt == "" and resolved.origins["prompt"].startswith("-")
        return PromptSource(settings.prompt, None, resolved.origins["prompt"], optional=optional)
    origin = resolved.origins["prompt_file"]
    if settings.prompt_file is None:
        return PromptSource(None, workdir / DEFAULT_PROMPT_FILE, origin, DEFAULT_PROMPT_FILE)
    path = path_of(resolved, workdir)
    typed = resolved.bases.get("prompt_file") in (None, user_config_dir(resolved.environ))
    source = PromptSource(None, path, origin, _label(path, workdir), typed=typed)
    if typed and _is_readable_once(path):
        return PromptSource(source.read(), None, source.shown)
    return source


def looks_like_a_file(resolved: Resolved, workdir: Path) -> str | None:
    """A warning if the text of the prompt is the name of a file."""
    text = resolved.settings.prompt
    if not text or len(text) > _LONGEST_NAME or "\n" in text or not _is_file(text, workdir):
        return None
    origin = resolved.origins["prompt"]
    flag = "-P" if origin.startswith("-") else "prompt_file:"
    return f"the prompt ({origin}) is the text '{text}', not the file of that name; to use the file: {flag} {text}"


def _is_file(text: str, workdir: Path) -> bool:
    name = os.path.expanduser(text.strip())  # noqa: PTH111 - it may not be a path at all
    return any(os.path.isfile(os.path.join(place, name)) for place in (workdir, Path.cwd()))  # noqa: PTH113, PTH118


def path_of(resolved: Resolved, workdir: Path) -> Path:
    """The path of the prompt file, whether or not it exists."""
    name = resolved.settings.prompt_file
    if name is None:
        return workdir / DEFAULT_PROMPT_FILE
    return _find(name, workdir, resolved.bases.get("prompt_file"))


def _find(name: str, workdir: Path, base: Path | None) -> Path:
    """Resolves a path: one in ralph.yml relative to the working directory, else to that file.

    One on the command line is relative to the current directory, else to the working directory.
    """
    written = Path("/dev/stdin") if name == "-" and base is None else Path(name).expanduser()
    places = [workdir, base] if base is not None else [Path.cwd(), workdir]
    return next((place / written for place in places if (place / written).exists()), workdir / written)


def _is_readable_once(path: Path) -> bool:
    """Whether it is a pipe or the like, as in `-P <(command)`."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def _label(path: Path, workdir: Path) -> str:
    return str(path.relative_to(workdir)) if path.is_relative_to(workdir) else str(path)
