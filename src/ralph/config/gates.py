"""Reads the gates of a ralph.yml: commands that must pass, so they become `verify` commands."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import msgspec

from ralph.config.convert import short

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The keys whose values are lists of gates.
GATES_SECTION = "backpressure"
GATES = ("backpressure.gates", "event_loop.completion_gates")
#: Values that turn a gate into one that does not have to pass.
_OPTIONAL: dict[str, tuple[Any, ...]] = {
    "enabled": (False,),
    "required": (False,),
    "blocking": (False,),
    "optional": (True,),
    "on_fail": ("warn", "warning", "ignore", "continue", "log"),
}
#: What the other fields mean for ralph, where that is not obvious.
_INSTEAD = {
    "on_fail": "after a failure, the next prompt shows what the command printed",
    "timeout": "verify_timeout limits every check",
    "timeout_seconds": "verify_timeout limits every check",
}
_USED = frozenset({"name", "command", "description", "enabled", "required", "blocking", "optional"})
#: What ralph does anyway after a failed check.
_USUAL = ("retry", "block", "fail", "error")


class _Gate(msgspec.Struct, frozen=True):
    name: str
    fields: dict[str, Any]

    @property
    def command(self) -> str:
        command = self.fields.get("command")
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            return shlex.join(command)
        return command.strip() if isinstance(command, str) else ""

    @property
    def unused(self) -> list[str]:
        fields = [field for field in self.fields if field not in _USED]
        return [field for field in fields if field != "on_fail" or self.fields[field] not in (None, *_USUAL)]


class Gates(msgspec.Struct, frozen=True):
    #: the commands that must pass
    commands: tuple[str, ...] = ()
    #: what of the gates is not used, and what happens instead
    remarks: tuple[str, ...] = ()


def read_gates(value: Any) -> Gates:
    """The gates in a list, or in a map of names and commands. Gates that need not pass are not run."""
    if not isinstance(value, list | dict):
        return Gates(remarks=(f"expected a list of gates, not {short(value)}; it is ignored",))
    gates = list(_gates(value))
    run = [gate for gate in gates if _why_not_run(gate) is None]
    remarks = [f"'{gate.name}' is not run, because it {why}" for gate in gates if (why := _why_not_run(gate))]
    for field in dict.fromkeys(field for gate in run for field in gate.unused):
        names = ", ".join(gate.name for gate in run if field in gate.unused)
        instead = f"; {_INSTEAD[field]}" if field in _INSTEAD else ""
        remarks.append(f"{field} is not used ({names}){instead}")
    return Gates(tuple(gate.command for gate in run), tuple(remarks))


def _gates(value: list[Any] | dict[str, Any]) -> Iterator[_Gate]:
    """A gate that is no map is just a command."""
    items = value.items() if isinstance(value, dict) else ((f"gate {n}", gate) for n, gate in enumerate(value, 1))
    for name, body in items:
        fields = body if isinstance(body, dict) else {"command": body}
        yield _Gate(str(fields.get("name") or name), fields)


def _why_not_run(gate: _Gate) -> str | None:
    if not gate.command:
        return "has no command"
    for field, values in _OPTIONAL.items():
        if field in gate.fields and any(gate.fields[field] == value for value in values):
            return f"need not pass ({field}: {str(gate.fields[field]).lower()})"
    return None
