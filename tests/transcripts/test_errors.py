"""Fatal errors, and when a limit ends."""

from __future__ import annotations

import pytest

from ralph.transcripts import meta
from ralph.transcripts.errors import fatal_error
from ralph.transcripts.meta import ErrorClass


@pytest.mark.parametrize("kind", [ErrorClass.RATE_LIMITED, ErrorClass.QUOTA, ErrorClass.OVERLOADED])
def test_a_limit_reports_how_long_to_wait(kind: ErrorClass) -> None:
    message = "Slow down, retry in 2s."
    assert fatal_error(message, kind) == [meta.rate_limit(message=message, retry_after=2.0), meta.error(message, kind)]
    assert fatal_error("Slow down.", kind) == [meta.error("Slow down.", kind)]


def test_other_errors_never_report_a_wait() -> None:
    message = "The build broke, retry in 2s."
    assert fatal_error(message, ErrorClass.FAILED) == [meta.error(message, ErrorClass.FAILED)]
