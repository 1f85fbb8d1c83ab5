"""The secrets of a planned run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ralph.masking.masker import Masker, for_settings

if TYPE_CHECKING:
    from ralph.config.layers import Resolved
    from ralph.planning.launch import Launch


def resolved_masker(resolved: Resolved) -> Masker:
    """As far as it can be known before there is a plan."""
    return for_settings(resolved.settings, dict(os.environ) | resolved.kept_back)


def masker_of(launch: Launch) -> Masker:
    """Of all that its agents could print: what is in our environment or in theirs, and what is kept back as well."""
    launches = (launch, *launch.fallbacks)
    environ = dict(os.environ) | launch.resolved.kept_back
    for one in launches:
        environ |= one.env
    known = {name for one in launches if one.spec for name in one.spec.login_env}
    return for_settings(launch.settings, environ, known)
