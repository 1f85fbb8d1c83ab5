"""What stands between "the agent says it is done" and "it is done": checks, and paths that must not be touched."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ralph.loop import progress, report
from ralph.loop.verify import Check, blocking, feedback, run_check

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.launching.launch import Launch
    from ralph.runners.process import Supervisor
    from ralph.transcripts.events import TranscriptEvent


class Gates:
    """Knows how the tree and the checks were before the run. `notes` collects what the next prompt must say."""

    def __init__(
        self,
        launch: Launch,
        supervisor: Supervisor,
        emit: Callable[[list[TranscriptEvent]], None],
        checking: Callable[[str, float], None],
        until: Callable[[], float | None] = lambda: None,
        first: progress.Snapshot | None = None,
    ) -> None:
        """`until` says when the run must end."""
        self._launch = launch
        self._checking = checking
        self._until = until
        self._supervisor = supervisor
        self._emit = emit
        #: how the checks were before the run
        self.baseline: dict[str, bool] = {}
        self.trespassed: set[str] = set()
        self.first = first or progress.take(launch.workdir)
        self.notes: list[str] = []

    @property
    def commands(self) -> tuple[str, ...]:
        return self._launch.settings.verify

    def take_baseline(self) -> bool:
        """Checks before the run: what fails now is not the agent's fault later. False: they were stopped."""
        for command in self.commands:
            if command in self.baseline:
                continue
            check = self._check(command)
            if check.stopped:
                return False
            self.baseline[command] = check.ok
            note = None
            if not check.ok and not self._strict:
                note = "it fails already, so it will not block completion (use --verify-strict if it should)"
            self._emit([report.verify(check, baseline=True, note=note)])
        return True

    def trespass(self, changes: progress.Changes) -> str | None:
        """What this iteration changed that must not be changed, in words."""
        allowed = self._launch.settings.allowed_paths
        if not allowed:
            return None
        bad = progress.outside(self._local(changes.files), allowed)
        if bad:  # putting back what it was when the run began is what it is asked to do
            bad = sorted(set(bad) & self._changed_since_start())
        if not bad:
            return None
        self.trespassed.update(bad)
        self.notes.append(
            "The previous iteration changed files that must not be changed. Undo that, and change only "
            f"{', '.join(allowed)}. Changed: {', '.join(bad[:50])}"
        )
        return f"changed outside of the allowed paths: {', '.join(bad[:5])}{' …' if len(bad) > 5 else ''}"

    def reject(self) -> str | None:
        """Why a claim of being done is not believed, or None."""
        still = sorted(self.trespassed & self._changed_since_start()) if self.trespassed else []
        if still:
            self.notes.append(f"These changes of earlier iterations are not allowed. Undo them: {', '.join(still)}")
            return f"files outside of the allowed paths are still changed: {', '.join(still[:5])}"
        checks = []
        for command in self.commands:
            check = self._check(command)
            if check.stopped:
                return "the checks were interrupted"
            note = None
            if not check.ok and not self._strict and not self.baseline.get(command, True):
                note = "it failed before the run as well, so it does not block"
            self._emit([report.verify(check, baseline=False, note=note)])
            checks.append(check)
        failed = blocking(checks, self.baseline, strict=self._strict)
        if not failed:
            return None
        self.notes.append(feedback(failed))
        names = ", ".join(f"`{c.command}`" for c in failed)
        return f"the agent says it is complete, but verification fails: {names}"

    @property
    def _strict(self) -> bool:
        return self._launch.settings.verify_strict

    def _check(self, command: str) -> Check:
        timeout = self._launch.settings.verify_timeout or None
        began = time.monotonic()
        return run_check(
            self._supervisor,
            command,
            str(self._launch.workdir),
            self._launch.env,
            timeout,
            lambda: self._checking(command, time.monotonic() - began),
            self._until(),
        )

    def _changed_since_start(self) -> set[str]:
        return set(self._local(progress.compare(self.first, progress.take(self._launch.workdir)).files))

    def _local(self, files: list[str]) -> list[str]:
        """Paths as seen from the working directory."""
        if self.first.top is None:
            return files
        workdir = os.path.realpath(self._launch.workdir)
        top = os.path.realpath(self.first.top)
        return [os.path.relpath(f"{top}/{name}", workdir) for name in files]
