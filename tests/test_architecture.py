"""The rooms of the source tree stand in one order, and no module imports itself by a detour."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest
from tools.rooms import ROOMS


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Every import of every module, also those inside functions and for type checking alone."""
    graph = grimp.build_graph("ralph", cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def room(module: str) -> str | None:
    """The room that a module is in; the package itself and `__main__` are in none."""
    _, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    return None if name in ("", "__main__") else name


def test_every_module_is_in_a_room(imports: dict[str, set[str]]) -> None:
    assert {name for module in imports if (name := room(module))} == set(ROOMS)


def test_a_room_imports_only_from_rooms_above_it(imports: dict[str, set[str]]) -> None:
    order = {name: number for number, name in enumerate(ROOMS)}
    wrong = [
        f"{importer} imports {imported}"
        for importer, others in imports.items()
        for imported in others
        if (here := room(importer)) and (there := room(imported)) and order[there] > order[here]
    ]
    assert wrong == []


def test_there_is_no_import_cycle(imports: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_an_agents_folder_imports_no_other_part_of_the_registry(imports: dict[str, set[str]]) -> None:
    """So that a folder can be copied out as a plugin: it knows transcripts and other agents' formats only."""
    shared = {"adapters", "compose", "detect", "login", "registry", "specfile", "survey", "versions"}
    wrong = [
        f"{importer} imports {imported}"
        for importer, others in imports.items()
        for imported in others
        if importer.startswith("ralph.agents.") and importer.count(".") == 3
        if imported.startswith("ralph.agents.") and imported.split(".")[2] in shared
    ]
    assert wrong == []
