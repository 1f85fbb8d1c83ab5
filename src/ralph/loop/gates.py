"""What ralph requires before it believes that the agent is done: checks that pass, no changes to other paths."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import msgspec

from ralph.loop import report
from ralph.loop.allowed import outside
from ralph.loop.verify import Check, blocking, describe, describe_changed, feedback, run_check

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.launching.launch import Launch
    from ralph.runners.process import Supervisor
    from ralph.transcripts.events import TranscriptEvent
    from ralph.tree.inspector import Inspector
    from ralph.tree.snapshot import Changes, Snapshot


class Finding(msgspec.Struct, frozen=True):
    """Why the work is not accepted, what the next prompt says about it, and which files it is about."""

    reason: str
    note: str | None = None
    files: tuple[str, ...] = ()


class Accepted(msgspec.Struct, frozen=True):
    """What ralph saw when it accepted a claim to be done, in words; empty if there was nothing to see."""

    seen: str = ""


class Gates:
    """Compares the tree and the checks with those before the run."""

    def __init__(
        self,
        launch: Launch,
        supervisor: Supervisor,
        inspector: Inspector,
        emit: Callable[[list[TranscriptEvent]], None],
        checking: Callable[[str, float], None],
        until: Callable[[], float | None] = lambda: None,
        first: Snapshot | None = None,
        baseline: dict[str, bool] | None = None,
    ) -> None:
        """`until` returns when the run must end. `first` and `baseline` are the tree and the checks before the run,
        if it is resumed."""
        self._launch = launch
        self._checking = checking
        self._until = until
        self._supervisor = supervisor
        self._emit = emit
        self._inspector = inspector
        #: which checks passed before the run
        self._baseline = dict(baseline or {})
        self.first = first or inspector.take()

    @property
    def commands(self) -> tuple[str, ...]:
        return self._launch.settings.verify

    def take_baseline(self) -> bool:
        """Runs the checks before the run, to show what fails already. False if they were stopped."""
        for command in self.commands:
            if command in self._baseline:
                continue
            check = self._check(command)
            if check.stopped:
                return False
            self._baseline[command] = check.ok
            note = None
            if not check.ok and self._excused:
                note = "it fails before the run, so it does not block completion (--verify-baseline)"
            elif not check.ok:
                note = "it must pass before the run is complete"
            self._emit([report.verify(check, baseline=True, note=note)])
        return True

    def trespass(self, changes: Changes) -> Finding | None:
        """What an iteration changed outside the allowed paths."""
        allowed = self._launch.settings.allowed_paths
        if not allowed:
            return None
        bad = outside(self._local(changes.files), allowed)
        if bad:  # undoing such a change is allowed
            bad = sorted(set(bad) & self._changed_since_start())
        if not bad and changes.unknown:
            return Finding(f"it is unknown whether files outside the allowed paths changed: {changes.unknown}")
        if not bad:
            return None
        return Finding(
            f"changed files outside the allowed paths: {', '.join(bad[:5])}{' …' if len(bad) > 5 else ''}",
            "The previous iteration changed files that must not be changed. Undo that, and change only "
            f"{', '.join(allowed)}. Changed: {', '.join(bad[:50])}",
            tuple(bad),
        )

    def examine(self, trespassed: tuple[str, ...]) -> Finding | Accepted:
        """Whether a claim to be done is accepted. `trespassed` are the files that earlier iterations must not have
        changed."""
        changes = self._inspector.compare(self.first, self._inspector.take(reuse=True))
        files = self._local(changes.files)
        still = sorted(set(trespassed).intersection(files))
        if still:
            return Finding(
                f"files outside the allowed paths are still changed: {', '.join(still[:5])}",
                f"These changes of earlier iterations are not allowed. Undo them: {', '.join(still)}",
            )
        checks = []
        for command in self.commands:
            from ralph.loop.check_files import changed_files  # late: many runs have no checks

            check = msgspec.structs.replace(
                self._check(command),
                failed_before=not self._baseline.get(command, True),
                changed=tuple(changed_files(command, files, self._launch.workdir)),
            )
            if check.stopped:
                return Finding("the checks were interrupted")
            self._emit([report.verify(check, baseline=False, note=self._note(check))])
            checks.append(check)
        failed = blocking(checks, excused=self._excused)
        if failed:
            names = ", ".join(c.name for c in failed)
            fail = "a check fails" if len(failed) == 1 else f"{len(failed)} checks fail"
            return Finding(f"the agent says it is done, but {fail}: {names}", feedback(failed))
        parts = [describe(checks)] if checks else []
        if not changes.changed and not changes.files:
            parts.append("nothing has changed since the start of the run")
        return Accepted("; ".join(parts))

    def _note(self, check: Check) -> str | None:
        """What the result of a check after a claim leaves unsaid."""
        parts = []
        if not check.ok and check.failed_before:
            excuse = ", so it does not block completion (--verify-baseline)" if self._excused else ""
            parts.append(f"it failed before the run too{excuse}")
        if check.changed:
            parts.append(describe_changed(check))
        return "; ".join(parts) or None

    @property
    def _excused(self) -> bool:
        """Whether a check that failed before the run may still fail."""
        return self._launch.settings.verify_baseline

    def _check(self, command: str) -> Check:
        timeout = self._launch.settings.verify_timeout or None
        self._inspector.forget()
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
        return set(self._local(self._inspector.compare(self.first, self._inspector.take(reuse=True)).files))

    def _local(self, files: list[str]) -> list[str]:
        """Paths relative to the working directory."""
        workdir = os.path.realpath(self._launch.workdir)
        top = os.path.realpath(self._inspector.root)
        if top == workdir:
            return files
        return [os.path.relpath(f"{top}/{name}", workdir) for name in files]
