"""A project of the driver convention, for tests."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Ralph = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parent.parent.parent
DRIVERS = ROOT / "tests" / "fixtures" / "drivers"
PROMPT = "Do the work.\nAll of it.\n"


def status(signal: str, word: str = "IN_PROGRESS", advice: str = "go on") -> str:
    return (
        f"---RALPH_STATUS---\nSTATUS: {word}\nEXIT_SIGNAL: {signal}\nRECOMMENDATION: {advice}\n---END_RALPH_STATUS---"
    )


class Project:
    """A repository that follows the driver convention. Fake CLIs go into a folder that is in PATH."""

    def __init__(self, root: Path, bin_folder: Path) -> None:
        self.root = root
        self.bin = bin_folder
        (root / ".ralph").mkdir()
        (root / ".ralph" / "PROMPT.md").write_text(PROMPT)

    def rc(self, *lines: str) -> None:
        (self.root / ".ralphrc").write_text("\n".join(lines) + "\n")

    def drivers(self, folder: str = ".ralph/drivers") -> Path:
        path = self.root / folder
        if not path.exists():
            shutil.copytree(DRIVERS, path)
        return path

    def cli(self, name: str, body: str) -> None:
        """A CLI that records its arguments, then runs `body` with the number of the call in $n."""
        path = self.bin / name
        path.write_text(
            "#!/usr/bin/env bash\n"
            f"calls={self.bin}/{name}.calls\n"
            'for a in "$@"; do printf \'%s\\037\' "$a"; done >> "$calls"; printf \'\\036\' >> "$calls"\n'
            "n=$(tr -dc '\\036' < \"$calls\" | wc -c)\n" + body + "\n"
        )
        path.chmod(0o755)

    def calls(self, name: str) -> list[list[str]]:
        path = self.bin / f"{name}.calls"
        if not path.exists():
            return []
        return [call.split("\x1f")[:-1] for call in path.read_text().split("\x1e")[:-1]]

    def metas(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.root / ".ralph" / "latest" / "events.jsonl").read_text().splitlines()
        metas = [json.loads(line).get("meta", {}) for line in lines]
        return [m for m in metas if m.get("kind") == kind]


@pytest.fixture
def project(repo: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Project:
    folder = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Project(repo, folder)


def says(*lines: str) -> str:
    return "cat <<'LINES'\n" + "\n".join(lines) + "\nLINES"


def claude(text: str, session: str = "s-1", **result: Any) -> list[str]:
    """Claude's stream-json for one message."""
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return [
        json.dumps({"type": "system", "subtype": "init", "session_id": session, "model": "m"}),
        json.dumps({"type": "assistant", "message": message, "session_id": session}),
        json.dumps(
            {"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": session} | result
        ),
    ]
