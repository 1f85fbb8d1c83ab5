"""Maskers that know the secrets of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ralph.masking.credentials import secrets_of
from ralph.masking.masker import Masker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ralph.config.layers import Resolved
    from ralph.config.settings import Settings
    from ralph.launching.launch import Launch


def for_settings(settings: Settings, environ: Mapping[str, str], known: Iterable[str] = ()) -> Masker:
    """A masker as the user configured it. `known` has the names of variables that agents log in with."""
    if not settings.mask:
        return Masker(on=False)
    return Masker(secrets_of(environ, settings.mask_env, known), settings.mask_patterns)


def resolved_masker(resolved: Resolved) -> Masker:
    """A masker for use before the agent is chosen."""
    return for_settings(resolved.settings, resolved.environ | resolved.withheld)


def masker_of(launch: Launch) -> Masker:
    """A masker for everything its agents could print: secrets in ralph's environment and theirs, also withheld ones."""
    launches = (launch, *launch.fallbacks)
    environ = launch.resolved.environ | launch.resolved.withheld
    for one in launches:
        environ |= one.env
    known = {name for one in launches if one.spec for name in one.spec.login_env}
    return for_settings(launch.settings, environ, known)
