"""Every fault of the scripted model, with real CLIs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faults.case import Fault, NotPossibleError, add
from ralph.testing.model import SCENARIOS, FakeModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from faults.place import Place

_ROSTER = Path(__file__).parents[2] / "tests" / "realcli" / "roster.py"
_AGENTS = ("claude", "codex")
#: The expected result of each, with at most two attempts when the provider fails.
_EXPECTED = {
    "error401": "5 needs_person · auth",
    "error429": "5 needs_person · rate_limited",
    "error500": "1 failed · overloaded×2",
    "quota": "5 needs_person · quota",
    "ctxlimit": "1 failed · context_exceeded",
    "flaky": "0 complete · ok",
    "cut": "1 failed · failed×2",
    "hang": "1 failed · timeout_idle",
    "empty": "1 failed · empty",
}
_FLAGS = (
    *("--on-limit", "stop", "--max-failures", "1"),
    *("--idle-timeout", "45", "--wall-timeout", "100"),
)
_PRIVATE = ("ANTHROPIC_", "CLAUDE", "OPENAI_", "CODEX_")


def _faulty(name: str) -> bool:
    return SCENARIOS[name].fault is not None or name == "empty"


def _roster() -> Any:
    """The module that points real CLIs at the scripted model; it belongs to the tests of the real CLIs."""
    spec = importlib.util.spec_from_file_location("roster", _ROSTER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["roster"] = module
    spec.loader.exec_module(module)
    return module


def _with(agent: str, scenario: str) -> Callable[[Place], None]:
    def make(at: Place) -> None:
        real = next(one for one in _roster().ROSTER if one.folder == agent)
        if not real.bin.is_dir():
            raise NotPossibleError(f"{agent} is not installed here (tools/realcli.sh {agent})")
        with FakeModel(scenario, directory=at.repo) as model:
            for variable in [name for name in at.env if name.startswith(_PRIVATE)]:
                del at.env[variable]
            at.env |= {"PATH": real.path, "CLAUDE_CODE_MAX_RETRIES": "1", "RALPH_LIMIT_RETRIES": "1"} | real.prepare(
                at.home, model.url
            )
            at.see(at.start("run", "--ui", "plain", "--agent", agent, *_FLAGS, "5").ended(240))

    return make


for _scenario in SCENARIOS:
    if _faulty(_scenario):
        for _agent in _AGENTS:
            add(
                Fault(
                    f"{_agent}: {_scenario} ({SCENARIOS[_scenario].about})",
                    _EXPECTED[_scenario],
                    _with(_agent, _scenario),
                    bound=300,
                    short=False,
                )
            )
