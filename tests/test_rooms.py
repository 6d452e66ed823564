"""The compiled core stays readable: a function has one name in all rooms, and few parameters."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "leastaction"
DECORATORS = {"kernel", "sweep", "memory", "entry", "optional", "either", "forms"}

MOST = 12
"""Parameters that a compiled function may have."""

WIDER = {
    "comparators": 5, "contact": 13, "dynamics": 2, "galerkin": 14, "loops": 1, "maximal": 27, "tree": 1,
}  # fmt: skip
"""Functions of a room that have more. The numbers may only fall."""

TWICE = {
    "add_multipliers", "between", "eliminate_screw", "evaluate", "find_contacts", "judge", "keep_multipliers",
    "minus", "products", "put_row", "rollout", "rotor", "turned_too_far", "twists",
}  # fmt: skip
"""Names that mean something in several compiled modules. The list may only shrink."""

ROLES = {"at", "begin", "end", "keep", "make_scratch", "move", "prepare", "roll_from", "see", "solve"}
"""What each family hands to the templates of ``solve``: the same part of a step in all of them."""


def decorators(node: ast.FunctionDef) -> set[str]:
    """Names of the decorators of a function."""
    found = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return {each.id for each in found if isinstance(each, ast.Name)}


@cache
def modules() -> dict[str, list[ast.FunctionDef]]:
    """Functions of every module that has a compiled one, by its file."""
    out = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.name != "decorators.py":
            functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
            if any(decorators(node) & DECORATORS for node in functions):
                out[str(file.relative_to(PACKAGE))] = functions
    return out


def compiled() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every compiled function with its file."""
    return ((file, node) for file, nodes in modules().items() for node in nodes if decorators(node) & DECORATORS)


def test_the_rooms_are_looked_at() -> None:
    assert len(modules()) > 90
    assert sum(1 for _ in compiled()) > 1000


def test_a_name_has_one_home() -> None:
    homes = defaultdict(set)
    for file, nodes in modules().items():
        for node in nodes:
            homes[node.name].add(file)
    assert {name for name, files in homes.items() if len(files) > 1} - ROLES == TWICE - ROLES


def test_parameter_lists_do_not_grow() -> None:
    counts: Counter[str] = Counter()
    for file, node in compiled():
        given = node.args
        if len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) > MOST:
            counts[file.split("/")[0]] += 1
    assert {room: count for room, count in counts.items() if count > WIDER.get(room, 0)} == {}
