"""Paths by which a repository leads ralph out of it: each is asked for like code, unless the user named it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ralph.errors import UsageError
from ralph.journal.layout import StatePaths
from ralph.system.files import leads_out, repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ralph.config.layers import Resolved
    from ralph.trust.items import Item


def items(resolved: Resolved, workdir: Path) -> list[Item]:
    """What would be read or written outside of the repository because a file or a link in it says so."""
    from ralph.trust import items as trust

    found = journal(workdir)
    for name, path in _named(resolved, workdir):
        if trust.is_the_users_word(resolved, name):
            continue
        base = resolved.bases.get(name, workdir)
        roots = (repository(base),) if name == "cwd" else (repository(workdir), repository(base))
        target = leads_out(path, *roots)
        if target is not None:
            origin = resolved.origins[name]
            found.append(_item(name, path, target, base if name == "cwd" else workdir, origin))
    return found


def journal(workdir: Path) -> list[Item]:
    """The folder of the runs, if it lies elsewhere."""
    state = StatePaths(workdir)
    for path in (state.root, state.runs):
        target = leads_out(path, repository(workdir))
        if target is not None:
            return [_item("journal", path, target, workdir, "")]
    return []


def require_journal(workdir: Path) -> None:
    """UsageError if the runs here lie elsewhere, and nobody said that this is meant."""
    from ralph.trust import items as trust

    trust.require(journal(workdir))


def _item(name: str, path: Path, target: Path, root: Path, origin: str) -> Item:
    from ralph.trust.items import Item
    from ralph.trust.store import digest

    shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    text = f"{shown} leads out of the repository, to {target}" if shown != str(target) else f"{shown}, outside of it"
    hashed = digest(text.encode("utf-8", "surrogateescape"))
    return Item(name, text, hashed, root, "" if origin == "default" else origin, at_start=True, path=True)


def _named(resolved: Resolved, workdir: Path) -> Iterator[tuple[str, Path]]:
    """Settings that are paths, with where each of them leads."""
    settings = resolved.settings
    yield from _prompt(resolved, workdir)
    if settings.fix_plan:
        yield "fix_plan", workdir / Path(settings.fix_plan)
    if settings.prices:
        yield "prices", resolved.bases.get("prices", Path()) / Path(settings.prices).expanduser()
    if settings.cwd and "cwd" in resolved.bases:
        yield "cwd", resolved.bases["cwd"] / Path(settings.cwd).expanduser()


def _prompt(resolved: Resolved, workdir: Path) -> Iterator[tuple[str, Path]]:
    from ralph.planning import prompt

    settings = resolved.settings
    if settings.plan is not None:
        from ralph.dialects.provider import planfile

        if planfile.is_followed(resolved):
            try:
                yield "plan", planfile.locate(resolved, workdir)
            except UsageError:
                pass  # there is none, which is told where it is needed
            yield "claude_prompt", workdir / planfile.TEMPLATE
            return
    if settings.prompt is None:
        yield "prompt_file", prompt.path_of(resolved, workdir)
