"""Properties that hold for every mechanism, on seeded random ones.

A plain run takes a fixed hundred seeds, each with some of the properties. ``--seeds 1000`` or ``--seeds 500:600`` takes
every property on every seed of a range, ``--seed 4711`` on one; ``-k gradient`` chooses a property. A failing case
prints the program that shows it.
"""

from __future__ import annotations

import pytest
from fuzzing.case import PropertyError
from fuzzing.generator import RECIPES, Drawer, draw
from fuzzing.program import HEAD
from fuzzing.properties import PROPERTIES, check
from fuzzing.writing import write

from leastaction.model.joints import KINDS

FIXED = 100
"""Seeds of a plain run."""


def _seeds(text: str) -> range:
    """The seeds of ``1000`` (from 0 on) or ``500:600``."""
    first, colon, last = text.partition(":")
    return range(int(first), int(last)) if colon else range(int(first))


def _cases(config: pytest.Config) -> list[tuple[str, int]]:
    """Properties and seeds that were asked for."""
    one, some = config.getoption("seed"), config.getoption("seeds")
    if one is not None:
        return [(name, one) for name in PROPERTIES]
    if some is not None:
        return [(name, seed) for seed in _seeds(some) for name in PROPERTIES]
    # one property each, in turn
    names = list(PROPERTIES)
    return [(names[seed % len(names)], seed) for seed in range(FIXED)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        cases = _cases(metafunc.config)
        metafunc.parametrize(("name", "seed"), cases, ids=[f"{name}-{seed}" for name, seed in cases])


def test_property(name: str, seed: int) -> None:
    wrong = None
    try:
        check(name, seed)
    except PropertyError as failure:
        wrong = str(failure)
    # the program, not the way through the checks
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)


@pytest.mark.parametrize("recipe", RECIPES)
def test_programs_are_what_ran(recipe: str) -> None:
    program = write(draw(3, recipe))
    space: dict[str, object] = {}
    exec(HEAD + program.text(), space)
    assert space["x0"].q.tolist() == program.state.q.tolist()  # type: ignore[attr-defined]


def test_every_kind_of_joint_is_drawn() -> None:
    kinds: set[str] = set()
    for seed in range(100):
        drawer = Drawer(seed, "locks")
        RECIPES["locks"](drawer)
        for joint in drawer.plan.joints:
            kinds |= {joint.kind, *joint.kinds}
    # splines are curves of poses, which these mechanisms do not have
    assert kinds == set(KINDS) - {"spline"}
