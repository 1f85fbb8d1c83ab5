"""The secrets of a planned run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ralph.masking.masker import Masker, for_settings

if TYPE_CHECKING:
    from ralph.config.layers import Resolved
    from ralph.planning.launch import Plan


def resolved_masker(resolved: Resolved) -> Masker:
    """As far as it can be known before there is a plan."""
    return for_settings(resolved.settings, dict(os.environ) | resolved.kept_back)


def masker_of(plan: Plan) -> Masker:
    """Of all that its agents could print: what is in our environment or in theirs, and what is kept back as well."""
    crew = (plan, *plan.relief)
    environ = dict(os.environ) | plan.resolved.kept_back
    for one in crew:
        environ |= one.env
    known = {name for one in crew if one.spec for name in one.spec.login_env}
    return for_settings(plan.settings, environ, known)
