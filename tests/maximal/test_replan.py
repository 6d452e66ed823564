"""The plan of the elimination that a rollout makes for what touches, against sets of neighbours."""

from types import SimpleNamespace

import numpy as np
import pytest

import leastaction as la
from leastaction.maximal.graph import coupling_of, leads
from leastaction.maximal.replan import Outline, keep_plan, own_plan
from leastaction.model.couplings import outline_of
from leastaction.tree.layout import ADDED, NOWHERE, ON_DIAGONAL, PARENT, TURNED


def drawn(rng):
    """A random tree with nodes of multipliers, springs and contacts: parents, parts, plan, tree, contacts."""
    n = int(rng.integers(2, 12))
    parents = [0] + [int(rng.integers(0, i)) for i in range(1, n + 1)]
    ends = [sorted(set(rng.integers(0, n + 1, size=2).tolist())) for _ in range(int(rng.integers(0, 3)))]
    parts = [(3 * k, 3, bodies) for k, bodies in enumerate(ends) if bodies != [0]]
    pairs = [tuple(rng.integers(1, n + 1, size=2).tolist()) for _ in range(int(rng.integers(0, 2)))]
    outline = Outline(**outline_of(parents, pairs, parts, 12), stiff=np.ones(1, dtype=np.int64))
    rows = np.zeros((n + 1, PARENT + 1), dtype=np.int64)
    rows[:, PARENT] = parents
    tree, touch = SimpleNamespace(rows=rows), SimpleNamespace(ints=np.zeros((6, 4), dtype=np.int64))
    touch.ints[:, 1:3] = rng.integers(0, n + 1, size=(6, 2))
    return parents, parts, pairs, outline, own_plan(outline, tree), tree, touch


class Sets:
    """Neighbours that are left of every node."""

    def __init__(self, size):
        self.near = [set() for _ in range(size)]

    def couple(self, i, j):
        """Make two nodes neighbours."""
        if i > 0 and j > 0 and i != j:
            self.near[i].add(j)
            self.near[j].add(i)


@pytest.mark.parametrize("seed", range(60))
def test_plan_against_sets(seed):
    """Order, neighbours, places of blocks and what is handed on: random trees with loops, springs and contacts."""
    rng = np.random.default_rng(seed)
    parents, parts, pairs, outline, plan, tree, touch = drawn(rng)
    n, count = len(parents) - 1, int(rng.integers(0, 7))
    assert keep_plan(plan, tree, touch, count)
    order, first, near = plan.order[:, 0].tolist(), plan.first, plan.near
    assert sorted(order) == list(range(1, n + 1 + len(parts)))
    sets = Sets(n + 1 + len(parts))
    for a, b in [*pairs, *touch.ints[:count, 1:3].tolist()]:
        sets.couple(a, b)
    for k, (_, _, bodies) in enumerate(parts):
        for body in bodies:
            sets.couple(n + 1 + k, body)
    gone = set()
    for i in order:
        parent = parents[i] if i <= n else 0
        assert all(child in gone for child in range(1, n + 1) if i <= n and parents[child] == i)
        present = sorted(sets.near[i])
        assert near[first[i] : first[i + 1]].tolist() == present
        for a in present:
            sets.near[a].discard(i)
            sets.couple(a, parent)
            for b in present:
                sets.couple(a, b)
        # what goes to the parent
        for k in range(first[i], first[i + 1]):
            here, to, how = plan.moves[k].tolist()
            assert here == 2 * k
            if parent == 0:
                assert how == NOWHERE
            elif near[k] == parent:
                assert (to, how) == (parent, ON_DIAGONAL)
            else:
                assert to == 2 * coupling_of(plan, parent, near[k])
                assert how == (ADDED if leads(plan, parent, near[k]) == leads(plan, i, near[k]) else TURNED)
        # every pair of its neighbours once, in the axes of that which leads
        fill = plan.fill[plan.fills[i] : plan.fills[i + 1]].tolist()
        seen = {frozenset((int(near[a]), int(near[b]))) for a, b, _ in fill}
        assert len(fill) == len(seen) == len(present) * (len(present) + 1) // 2
        for a, b, at in fill:
            if a == b:
                assert at == near[a]
            else:
                assert leads(plan, near[a], near[b])
                assert at == 2 * coupling_of(plan, near[a], near[b]) >= 0
        gone.add(i)
    # multipliers after what lies between their bodies and the ancestor of all of them, and before that
    for k, (_, _, bodies) in enumerate(parts):
        node, above = n + 1 + k, int(outline.above[k])
        assert above == 0 or plan.turn[node] < plan.turn[above]
        assert all(plan.turn[body] < plan.turn[node] for body in bodies if body not in (0, above))


def test_a_plan_is_that_of_the_pairs_and_of_nothing_else():
    parents = [0, 0, 0, 0]
    outline = Outline(**outline_of(parents, [], [], 12), stiff=np.ones(1, dtype=np.int64))
    tree = SimpleNamespace(rows=np.zeros((4, PARENT + 1), dtype=np.int64))
    plan, touch = own_plan(outline, tree), SimpleNamespace(ints=np.zeros((2, 4), dtype=np.int64))
    touch.ints[:, 1:3] = [(1, 2), (3, 2)]
    for count, used in ((1, 2), (2, 4), (1, 2), (0, 0), (2, 4)):
        assert keep_plan(plan, tree, touch, count)
        assert plan.used[0] == used
        fresh = own_plan(outline, tree)
        assert keep_plan(fresh, tree, touch, count)
        np.testing.assert_array_equal(plan.order, fresh.order)


def test_no_room_for_the_plan_is_said():
    outline = Outline(**outline_of([0, 0, 0, 0], [], [], 12), stiff=np.ones(1, dtype=np.int64))
    outline.size[:] = 1, 1
    tree = SimpleNamespace(rows=np.zeros((4, PARENT + 1), dtype=np.int64))
    plan, touch = own_plan(outline, tree), SimpleNamespace(ints=np.zeros((2, 4), dtype=np.int64))
    touch.ints[:, 1:3] = [(1, 2), (3, 2)]
    assert keep_plan(plan, tree, touch, 1)
    assert not keep_plan(plan, tree, touch, 2)


def test_a_stack_of_balls_is_as_with_all_pairs_in_the_plan():
    """The recursion along the plan of a rollout against LAPACK for the whole system."""
    m = la.Mechanism("stack")
    for k in range(4):
        m.add_body(f"b{k}", shape=la.Sphere(0.1), mass=1.0 + 0.2 * k)
        m.add_joint(f"j{k}", "free", parent="world", child=f"b{k}")
    m.add_ground(friction=0.5)
    m.add_contacts(friction=0.3)
    model = m.build()
    q = np.concatenate([[0.02 * (-1) ** k, 0.01 * k, 0.1 + 0.2001 * k, 1.0, 0.0, 0.0, 0.0] for k in range(4)])
    runs = [
        la.simulate(model, model.state(q), dt=0.005, duration=0.1, method=la.Maximal(linear=linear))
        for linear in ("nullspace", "dense")
    ]
    # measured 2e-10; the balls fall off each other
    assert np.abs(runs[0].q - runs[1].q).max() < 2e-8
    assert np.abs(runs[0].q[-1] - q).max() > 1e-3
