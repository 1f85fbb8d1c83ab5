"""Makes the README's relative links absolute in the built package: on a package index they would lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: The target of a Markdown link or image that is neither absolute nor a heading of the same page.
_RELATIVE = re.compile(r"(?<=\]\()(?![a-z+]+:|#)[^)\s]+")


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        text = absolute_links((root / "README.md").read_text("utf-8"), root, metadata["urls"]["Homepage"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute_links(markdown: str, root: Path, homepage: str) -> str:
    def absolute(link: re.Match[str]) -> str:
        kind = "tree" if (root / link[0].partition("#")[0]).is_dir() else "blob"
        return f"{homepage}/{kind}/main/{link[0]}"

    return _RELATIVE.sub(absolute, markdown)
