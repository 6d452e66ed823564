"""Systems on random trees and cyclic graphs against dense solutions; fill-in, cost, constraints, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.errors import ModelError
from leastaction.solve import graph
from leastaction.solve.graph_plan import later_nodes

ORDERS = ("degree", "depth")


def random_graph(rng, n, extra):
    """Sizes and edges of a random tree of n nodes with some more edges."""
    edges = {(int(rng.integers(0, i)), i) for i in range(1, n)}
    for _ in range(extra):
        i, j = sorted(rng.choice(n, 2, replace=False).tolist())
        edges.add((i, j))
    return rng.integers(1, 8, n).tolist(), sorted(edges)


def random_blocks(rng, sizes, edges):
    """Nonsymmetric blocks with a regular diagonal."""
    blocks = {(i, i): rng.normal(size=(n, n)) + 4.0 * np.eye(n) for i, n in enumerate(sizes)}
    for i, j in edges:
        blocks[i, j] = rng.normal(size=(sizes[i], sizes[j]))
        blocks[j, i] = rng.normal(size=(sizes[j], sizes[i]))
    return blocks


def chain(n, rows=5, loose=False, ground=False):
    """n bodies and joints from the ground on; without the first joint, or with one more to the ground at the end."""
    sizes, edges, joints = {}, [], []
    for k in range(n):
        sizes[f"b{k}"] = 6
        if k > 0 or not loose:
            sizes[f"j{k}"] = rows
            joints.append(f"j{k}")
            edges += [(f"j{k}", f"b{k}")] + ([(f"j{k}", f"b{k - 1}")] if k else [])
    if ground:
        sizes["end"] = rows
        joints.append("end")
        edges.append(("end", f"b{n - 1}"))
    return sizes, edges, joints


def mechanism_blocks(rng, sizes, edges, joints):
    """Bodies with regular blocks, joints without a diagonal block."""
    blocks = {}
    for node, n in sizes.items():
        if node not in joints:
            blocks[node, node] = 50.0 * (np.eye(n) + 0.1 * rng.normal(size=(n, n)))
    for joint, body in edges:
        G = rng.normal(size=(sizes[joint], sizes[body]))
        blocks[joint, body], blocks[body, joint] = G, -G.T + 0.01 * rng.normal(size=G.T.shape)
    return blocks


def miss(system, blocks, rng, **options):
    """Largest relative difference from the dense solution, for two right-hand sides."""
    b = rng.normal(size=(system.size, 2))
    x, y = system.solve(blocks, b, **options), np.linalg.solve(system.dense(blocks), b)
    return np.abs(x - y).max() / np.abs(y).max()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("extra", [0, 1, 3, 8])
def test_random_graphs_agree_with_dense(order, extra):
    rng = np.random.default_rng(extra)
    for trial in range(20):
        sizes, edges = random_graph(rng, int(rng.integers(2, 30)), extra)
        last = rng.choice(len(sizes), 2, replace=False).tolist() if trial % 4 == 3 else []
        system = la.GraphSystem(sizes, edges, order=order, last=last)
        assert miss(system, random_blocks(rng, sizes, edges), rng) < 1e-12  # measured 2.5e-14
        if extra == 0 and not last:
            assert system.fill_in == ()


def test_forests_and_single_nodes_are_graphs():
    rng = np.random.default_rng(0)
    system = la.GraphSystem([2, 3, 1, 2], [(0, 1)])
    assert miss(system, random_blocks(rng, [2, 3, 1, 2], [(0, 1)]), rng) < 1e-14  # measured 1e-16
    assert la.GraphSystem([1], []).solve({(0, 0): 4.0}, [2.0]).tolist() == [0.5]


@pytest.mark.parametrize("order", ORDERS)
def test_block_operations_of_trees_grow_with_the_nodes(order):
    counts = []
    for n in (10, 100, 1000):
        sizes, edges, joints = chain(n)
        system = la.GraphSystem(sizes, edges, constraints=joints, order=order)
        assert system.fill_in == ()
        counts.append(system.operations)
    # three to a node, one for the root
    assert counts == [58, 598, 5998]


def test_fill_in_of_a_chain_of_loops_is_confined_to_each_loop():
    # squares in a row that share corners: one fill-in each
    n = 40
    edges = [(3 * k, 3 * k + 1) for k in range(n)] + [(3 * k + 1, 3 * k + 3) for k in range(n)]
    edges += [(3 * k, 3 * k + 2) for k in range(n)] + [(3 * k + 2, 3 * k + 3) for k in range(n)]
    for order in ORDERS:
        system = la.GraphSystem([1] * (3 * n + 1), edges, order=order)
        assert len(system.fill_in) == n
        for i, j in system.fill_in:
            assert min(i, j) // 3 == max(i, j) // 3 or max(i, j) - min(i, j) <= 3


def test_fill_in_is_where_elimination_makes_numbers():
    rng = np.random.default_rng(3)
    sizes, edges = random_graph(rng, 25, 6)
    system = la.GraphSystem([1] * 25, edges)
    place = {node: k for k, node in enumerate(system.order)}
    # plain elimination of the permuted matrix
    A = system.dense(random_blocks(rng, [1] * 25, edges))[np.ix_(system.order, system.order)]
    before = A != 0
    for k in range(25):
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :]) / A[k, k]
    made = {frozenset(pair) for pair in np.argwhere((A != 0) & ~before).tolist()}
    assert made == {frozenset((place[i], place[j])) for i, j in system.fill_in}
    assert len(made) > 0
    assert len(sizes) == 25


def test_the_middle_of_a_star_first_fills_everything():
    edges = [(0, k) for k in range(1, 7)]
    assert len(la.GraphSystem([1] * 7, edges, order=range(7)).fill_in) == 15
    assert la.GraphSystem([1] * 7, edges).fill_in == ()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "options", [{}, {"loose": True}, {"ground": True}, {"rows": 3}], ids=["fixed", "floating", "both ends", "ball"]
)
def test_joints_are_never_eliminated_too_early(order, options):
    rng = np.random.default_rng(4)
    sizes, edges, joints = chain(12, **options)
    # nodes in every order, so that nothing depends on the first to be named
    for _ in range(5):
        shuffled = {node: sizes[node] for node in rng.permutation(list(sizes)).tolist()}
        system = la.GraphSystem(shuffled, edges, constraints=joints, order=order)
        assert miss(system, mechanism_blocks(rng, shuffled, edges, joints), rng) < 1e-11  # measured 1.8e-13
        if options.get("ground") is None:
            assert system.fill_in == ()
        if not options.get("loose") and not options.get("ground"):
            assert system.order[-1] == "j0"


def test_a_tree_in_the_order_of_its_description_meets_a_zero_pivot():
    sizes, edges, joints = chain(3)
    blocks = mechanism_blocks(np.random.default_rng(0), sizes, edges, joints)
    system = la.GraphSystem(sizes, edges, order=["j0", "b0", "j1", "b1", "j2", "b2"])
    with pytest.raises(ModelError, match="node 'j0': its pivot is zero where it is eliminated, after 0 of 6 nodes"):
        system.solve(blocks, np.zeros(system.size))


@pytest.mark.parametrize("stacked", [False, True])
def test_a_loop_is_closed_by_a_joint_with_few_rows(stacked):
    # a planar four-bar: the last hinge holds two rows only
    rng = np.random.default_rng(5)
    sizes, edges, joints = chain(3)
    sizes["close"], edges, joints = 2, [*edges, ("close", "b2")], [*joints, "close"]
    last = ["close"] if stacked else []
    system = la.GraphSystem(sizes, edges, constraints=joints, last=last)
    assert miss(system, mechanism_blocks(rng, sizes, edges, joints), rng) < 1e-12  # measured 2.2e-14
    if stacked:
        assert system.order[-1] == "close"


def test_redundant_constraints_need_a_number_on_their_diagonal():
    rng = np.random.default_rng(6)
    sizes, edges, joints = chain(2)
    sizes["twin"], edges, joints = 5, [*edges, ("twin", "b1"), ("twin", "b0")], [*joints, "twin"]
    blocks = mechanism_blocks(rng, sizes, edges, joints)
    # the same joint twice
    for body in ("b0", "b1"):
        blocks["twin", body], blocks[body, "twin"] = blocks["j1", body], blocks[body, "j1"]
    system = la.GraphSystem(sizes, edges, constraints=joints)
    with pytest.raises(ModelError, match="its pivot is zero"):
        system.solve(blocks, np.zeros(system.size))
    for joint in ("j1", "twin"):
        blocks[joint, joint] = 1e-8 * np.eye(5)
    b = rng.normal(size=system.size)
    b[system.rows("twin")] = b[system.rows("j1")]
    x = system.solve(blocks, b)
    # both share the force
    assert np.allclose(
        x[system.rows("j1")], x[system.rows("twin")], rtol=0, atol=1e-8 * np.abs(x).max()
    )  # measured 5e-11
    assert np.abs(system.dense(blocks) @ x - b).max() < 1e-11  # measured 6.5e-14


def test_stacked_nodes_exchange_pivots_with_each_other():
    # the diagonal blocks of 1 and 2 stay zero, only together are they regular
    blocks = {(0, 0): 1.0, (1, 2): 1.0, (2, 1): 1.0, (0, 1): 1.0, (1, 0): 0.0}
    edges = [(0, 1), (1, 2)]
    with pytest.raises(ModelError, match="its pivot is zero"):
        la.GraphSystem([1, 1, 1], edges, order=[0, 1, 2]).solve(blocks, [1.0, 2.0, 3.0])
    system = la.GraphSystem([1, 1, 1], edges, last=[1, 2])
    assert system.solve(blocks, [1.0, 2.0, 3.0]).tolist() == [-2.0, 3.0, 2.0]
    assert set(system.order[-2:]) == {1, 2}
    assert system.parents[2] is None


def test_scaling_and_refinement_bring_digits_back():
    rng = np.random.default_rng(7)
    sizes, edges = random_graph(rng, 20, 4)
    # pivots that are small without being zero: the elimination inside blocks alone loses digits
    blocks = random_blocks(rng, sizes, edges)
    for i, n in enumerate(sizes):
        blocks[i, i] = 1e-5 * blocks[i, i] if i % 2 else blocks[i, i] + 0.0 * np.eye(n)
    system = la.GraphSystem(sizes, edges)
    F = system.dense(blocks)
    truth = rng.normal(size=system.size)
    b = F @ truth
    errors = [np.abs(F @ system.solve(blocks, b, refine=k) - b).max() for k in (0, 1, 3)]
    assert errors[0] > 1e-9  # measured 1.1e-6
    assert errors[2] < 1e-13  # measured 1.8e-15
    assert errors[2] <= errors[1] <= errors[0]


def test_units_do_not_matter():
    rng = np.random.default_rng(8)
    sizes, edges, joints = chain(8, ground=True)
    blocks = mechanism_blocks(rng, sizes, edges, joints)
    system = la.GraphSystem(sizes, edges, constraints=joints)
    b = rng.normal(size=system.size)
    x = system.solve(blocks, b)
    # other units for each row and column
    units = {node: 2.0 ** rng.integers(-30, 30) for node in sizes}
    other = {(i, j): block * units[i] / units[j] for (i, j), block in blocks.items()}
    scale = np.concatenate([np.full(sizes[node], units[node]) for node in system.nodes])
    y = system.solve(other, b * scale) / scale
    assert np.abs(x - y).max() < 1e-12 * np.abs(x).max()  # measured 8e-16
    # without scaling of its own the elimination is the same, and names no small pivot
    assert np.allclose(system.solve(blocks, b, scale=False), x, rtol=1e-10, atol=0)  # measured 2e-13


def test_factors_are_used_again_and_blocks_are_kept():
    rng = np.random.default_rng(9)
    sizes, edges = random_graph(rng, 12, 3)
    blocks = random_blocks(rng, sizes, edges)
    system = la.GraphSystem(sizes, edges)
    factors = system.factor(blocks)
    for shape in ((system.size,), (system.size, 1), (system.size, 4)):
        b = rng.normal(size=shape)
        x = factors.solve(b)
        assert x.shape == shape
        assert np.allclose(system.dense(blocks) @ x, b, atol=1e-11)
    # the block of a pair lies where it says
    first, width = system.place(*edges[0])
    i, j = edges[0]
    index = first + width * np.arange(sizes[i])[:, None] + np.arange(sizes[j])
    assert np.array_equal(factors.blocks[index], blocks[i, j])


def test_compiled_code_solves_in_place():
    rng = np.random.default_rng(10)
    sizes, edges, joints = chain(20)
    blocks = mechanism_blocks(rng, sizes, edges, joints)
    system = la.GraphSystem(sizes, edges, constraints=joints)
    truth = rng.normal(size=system.size)
    # vectors of compiled code have the nodes in the order of elimination
    x = np.concatenate([(system.dense(blocks) @ truth)[system.rows(node)] for node in system.order])
    pivot, big = np.empty(system.size, dtype=np.int64), np.empty(len(system.nodes))
    assert graph.solve_once(system.plan, system.pack(blocks), pivot, big, x) == -1
    expected = np.concatenate([truth[system.rows(node)] for node in system.order])
    assert np.abs(x - expected).max() < 1e-9  # measured 2.5e-11


def test_later_nodes_of_a_path_are_its_neighbours():
    neighbours = [{1}, {0, 2}, {1}]
    assert later_nodes([0, 1, 2], neighbours) == [[1], [2], []]
    assert later_nodes([1, 0, 2], neighbours) == [[1, 2], [2], []]


def test_repr_says_what_it_is():
    assert repr(la.GraphSystem([1, 2], [(0, 1)])) == "GraphSystem(2 nodes, 1 edges, fill-in 0)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: la.GraphSystem([], []), "there are no nodes"),
        (lambda: la.GraphSystem([1, 0], []), "node 1: its size must be a whole number of at least 1, got 0"),
        (lambda: la.GraphSystem([1, 2.5], []), "node 1: its size"),
        (lambda: la.GraphSystem([1, 1], [(0, 2)]), r"pair \(0, 2\): there is no node 2"),
        (lambda: la.GraphSystem([1, 1], [(0, 0)]), "diagonal block without an edge to itself"),
        (lambda: la.GraphSystem([1, 1], [3]), "expected a pair of nodes, got 3"),
        (lambda: la.GraphSystem([1, 1], [], constraints=[5]), "constraints: there is no node 5"),
        (lambda: la.GraphSystem([1, 1], [], last=[1, 1]), "last: a node stands in it twice"),
        (lambda: la.GraphSystem([1, 1], [], order="best"), "order: expected one of degree, depth"),
        (lambda: la.GraphSystem([1, 1], [], order=[0]), "order: every node must stand in it once"),
        (lambda: la.GraphSystem([1, 1], []).pack({(0, 1): 1.0}), "there is no edge between these nodes"),
        (lambda: la.GraphSystem([1, 2], []).pack({(1, 1): np.eye(3)}), r"expected shape \(2, 2\), got \(3, 3\)"),
        (lambda: la.GraphSystem([1], []).pack({(0, 0): np.nan}), "every number must be finite"),
        (lambda: la.GraphSystem([1], []).solve({(0, 0): 1.0}, [1.0, 2.0]), "expected 1 rows, got shape"),
        (lambda: la.GraphSystem([1], []).solve({(0, 0): 1.0}, [np.inf]), "right-hand side: every number"),
        (lambda: la.GraphSystem([1], []).solve({(0, 0): 1.0}, [1.0], refine=-1), "refine: expected a whole number"),
        (lambda: la.GraphSystem([1], []).solve({}, [1.0]), "node 0: its pivot is zero"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ModelError, match=message):
        call()
