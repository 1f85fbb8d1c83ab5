"""Where the prompt comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralph.errors import UsageError

if TYPE_CHECKING:
    from ralph.config.layers import Resolved

DEFAULT_PROMPT_FILE = "PROMPT.md"


class PromptSource(msgspec.Struct, frozen=True):
    """Where the prompt comes from; read again for each iteration."""

    text: str | None
    path: Path | None
    origin: str

    @property
    def shown(self) -> str:
        return str(self.path) if self.path else self.origin

    def read(self) -> str:
        """The prompt now. UsageError if there is none."""
        if self.text is not None:
            if not self.text.strip():
                raise UsageError(f"the prompt ({self.origin}) is empty: say what the agent should do")
            return self.text
        assert self.path is not None
        try:
            text = self.path.read_bytes().decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            raise UsageError(
                f"there is no prompt: {self.path} does not exist.\n"
                "  Write it, or say what to do with -p 'TEXT' or -P FILE; `ralph init` makes a first one."
            ) from None
        except OSError as error:
            raise UsageError(f"the prompt {self.path} cannot be read: {error.strerror}") from None
        if not text.strip():
            raise UsageError(f"the prompt {self.path} is empty: say in it what the agent should do")
        return text


def prompt_source(resolved: Resolved, workdir: Path) -> PromptSource:
    settings = resolved.settings
    if settings.prompt is not None:
        return PromptSource(settings.prompt, None, resolved.origins["prompt"])
    origin = resolved.origins["prompt_file"]
    if settings.prompt_file is None:
        return PromptSource(None, workdir / DEFAULT_PROMPT_FILE, "default")
    name = Path(settings.prompt_file).expanduser()
    path = workdir / name
    base = resolved.bases.get("prompt_file")
    if base is not None and not path.exists() and (base / name).exists():
        path = base / name  # beside the ralph.yml that names it
    return PromptSource(None, path, origin)
