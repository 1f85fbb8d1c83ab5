"""Settings that guard: a project may make them stricter than the user does, but not looser."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config.durations import write_duration
from ralph.config.settings import AdapterSettings, CodexSandbox, default, is_duration
from ralph.errors import closest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Guard(StrEnum):
    """Which of two values is the stricter one."""

    YES = "yes"
    NO = "no"
    LOWEST = "lowest"  # 0 is no limit
    HIGHEST = "highest"
    ALL = "all"  # the entries of both lists
    PATHS = "paths"  # both lists must cover a file
    TOOLS = "tools"
    ADAPTERS = "adapters"
    SANDBOX = "sandbox"
    USERS = "users"  # neither is stricter; the user's own counts


GUARDS: dict[str, Guard] = {
    **dict.fromkeys(("mask", "redact_raw", "exclusive", "interactive"), Guard.YES),
    **dict.fromkeys(("preserve_anthropic_api_key", "breaker_auto_reset", "verify_baseline"), Guard.NO),
    **dict.fromkeys(("max_iterations", "max_runtime", "max_cost", "max_tokens", "max_failures"), Guard.LOWEST),
    **dict.fromkeys(("max_calls_per_hour", "max_wait", "limit_retries", "denied_after"), Guard.LOWEST),
    **dict.fromkeys(("stuck_after", "same_error_after", "same_answer_after"), Guard.LOWEST),
    **dict.fromkeys(("idle_timeout", "wall_timeout", "verify_timeout"), Guard.LOWEST),
    "confirmations": Guard.HIGHEST,
    **dict.fromkeys(("verify", "env_deny", "mask_env", "mask_patterns"), Guard.ALL),
    "allowed_paths": Guard.PATHS,
    "allowed_tools": Guard.TOOLS,
    "adapters": Guard.ADAPTERS,
    "codex_sandbox": Guard.SANDBOX,
    "prices": Guard.USERS,
}

#: Switches whose default protects users who set nothing. Other defaults are only a start: a project may change a
#: limit, though not remove it.
PROTECTED = frozenset({"mask", "exclusive", "preserve_anthropic_api_key"})

#: Between two entries of `allowed_paths` that must both cover a file.
AND = " && "
_MOST_PAIRS = 10_000
#: How much of a value a warning shows.
_LONGEST = 100
#: How many letters of a name and of its misspelling differ at most.
_TYPO = 3


class Loosened(msgspec.Struct, frozen=True):
    """A project's value that is looser than what the user has, and where it is set."""

    name: str
    value: str
    origin: str
    #: the directory of the project's file
    base: Path
    #: what is used instead, and where the user's part of it is set
    instead: str
    users: str

    @property
    def text(self) -> str:
        return f"{self.name}: {self.value} instead of {self.instead}"

    @property
    def warning(self) -> str:
        mine = "the default" if self.users == "default" else f"your own ({self.users})"
        return (
            f"{self.origin}: {self.name}: {_short(self.value)} is looser than {mine}, so the value is "
            f"{_short(self.instead)}. To allow it: ralph trust. For one run: set it on the command line or in the "
            f"environment"
        )


def near_miss(word: str, names: Mapping[str, str]) -> str | None:
    """The name of a guard that a word is a misspelling of, or a part. `names` has all names, each with its setting."""
    from difflib import SequenceMatcher

    close = closest(word, [name for name, setting in names.items() if setting in GUARDS], cutoff=0.8)
    if close is None:
        return None
    one, other = word.lower(), close.lower()
    same = sum(block.size for block in SequenceMatcher(None, one, other).get_matching_blocks())
    # Long names of one convention are similar, even if they have nothing to do with each other.
    return close if one in other or other in one or len(one) + len(other) - 2 * same <= _TYPO else None


def users_part(name: str, project: Any) -> Any | None:
    """The default that a project's value must not loosen; None if there is none."""
    value = default(name)
    # Without `denied_after`, the other limits still end a run, and other conventions do without it.
    removed = GUARDS[name] is Guard.LOWEST and not project and value and name != "denied_after"
    if name in PROTECTED or removed:
        return value
    return None


def stricter(name: str, project: Any, user: Any) -> Any:
    """Combines the two values of a guard. A ValueError if they are too many to combine."""
    match GUARDS[name]:
        case Guard.YES:
            return project or user
        case Guard.NO:
            return project and user
        case Guard.LOWEST:
            return min(filter(None, (project, user)), default=project)
        case Guard.HIGHEST:
            return max(project, user)
        case Guard.ALL:
            return tuple(dict.fromkeys((*user, *project)))
        case Guard.PATHS:
            return _both_cover(project, user)
        case Guard.TOOLS:
            common = [*(t for t in project if _allows(user, t)), *(t for t in user if _allows(project, t))]
            return tuple(dict.fromkeys(common)) or user
        case Guard.ADAPTERS:
            return _adapters(project, user)
        case Guard.SANDBOX:
            return max(project, user, key=list(CodexSandbox).index)
        case _:
            return user


def _both_cover(project: tuple[str, ...], user: tuple[str, ...]) -> tuple[str, ...]:
    """Entries that cover only what an entry of each list covers. An empty list covers everything."""
    if not project or not user:
        return project or user
    if len(project) * len(user) > _MOST_PAIRS:
        raise ValueError(f"there are too many paths to combine with your own {len(user)}")
    return tuple(dict.fromkeys(_narrower(one, other) for one in user for other in project))


def _narrower(one: str, other: str) -> str:
    """The entry that is inside the other one, or both of them."""
    for outer, inner in ((one, other), (other, one)):
        folder = outer.removeprefix("./").rstrip("/")
        plain = not any(sign in outer for sign in "*?[") and ".." not in inner
        if plain and AND not in inner and (inner.removeprefix("./").rstrip("/") + "/").startswith(folder + "/"):
            return inner
    return f"{one}{AND}{other}"


def _allows(tools: tuple[str, ...], tool: str) -> bool:
    """Whether a list contains a tool: by its whole text, or by its name without arguments."""
    return not tools or tool in tools or tool.partition("(")[0] in tools


def _adapters(project: dict[str, AdapterSettings], user: dict[str, AdapterSettings]) -> dict[str, AdapterSettings]:
    combined = {**user, **project}
    for name in user.keys() & project.keys():
        timeouts = [each.timeout for each in (project[name], user[name]) if each.timeout is not None]
        limit = min(filter(None, timeouts), default=timeouts[0] if timeouts else None)
        combined[name] = AdapterSettings(project[name].enabled and user[name].enabled, limit)
    return combined


def shown(name: str, value: Any) -> str:
    """A value in full, as people write it in a file: an approval covers this text."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float() if is_duration(name) and value:
            return write_duration(value)
        case int() | float() if not value:
            return "no limit"
        case tuple():
            return f"[{', '.join(value)}]"
        case dict():
            return "{" + ", ".join(f"{agent}: {_adapter(each)}" for agent, each in value.items()) + "}"
        case _:
            return str(value).removesuffix(".0")


def _adapter(value: AdapterSettings) -> str:
    timeout = "" if value.timeout is None else f" {shown('wall_timeout', value.timeout)}"
    return f"{'on' if value.enabled else 'off'}{timeout}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
