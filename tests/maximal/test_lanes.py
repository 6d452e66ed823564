"""Four environments of ``Maximal`` at once give what single ones give, whatever the joints; each decides for itself."""

from __future__ import annotations

import numpy as np

import leastaction as la
from leastaction.reference import samples as make
from leastaction.run.ensemble_lanes import has_lanes


def against_single_runs(model, states, dt, steps, control=None):
    """The batch, the single runs, and the largest differences of q and v."""
    method, more = la.Maximal(), {"dt": dt, "duration": steps * dt}
    out = la.simulate_many(model, states, method=method, control=control, **more)
    assert out.lanes
    runs = [
        la.simulate(
            model, state, method=method, control=None if control is None else control[e], on_failure="keep", **more
        )
        for e, state in enumerate(states)
    ]
    dq, dv = (
        max(np.abs(getattr(out, name)[e, : len(run.q)] - getattr(run, name)).max() for e, run in enumerate(runs))
        for name in "qv"
    )
    return out, runs, dq, dv


def test_every_kind_of_joint_with_springs_rotors_and_controls():
    rng = np.random.default_rng(1)
    kinds = ["free", "spherical", "helical", "universal", "planar_free", "composite", "spherical", "prismatic"]
    model = make.random_tree(kinds, rng, springs=True).build()
    # two blocks of four, the second one not full
    states = [model.state(*make.random_state(model, rng)) for _ in range(6)]
    control = rng.normal(size=(6, 40, model.nv))
    out, runs, dq, dv = against_single_runs(model, states, 0.002, 40, control)
    assert not out.failed.any()
    assert dq < 1e-12  # measured 1e-13
    assert dv < 1e-10  # measured 3e-12
    # rounding may cost a lane an iteration
    assert abs(out.counters["iterations"] - sum(run.report.counters["iterations"] for run in runs)) <= 3


def test_a_lane_that_cuts_or_fails_leaves_the_others_alone():
    model, rng = la.models.chain(6).build(), np.random.default_rng(3)
    states = [model.state(rng.uniform(-1, 1, 6), size * rng.normal(size=6)) for size in (1, 6, 8, 3, 10, 2)]
    out, runs, dq, dv = against_single_runs(model, states, 0.03, 30)
    # line searches cut in lanes that end well, and two lanes fail, one in its first step
    cuts = [run.report.counters["backtracks"] for run in runs]
    assert [run.report.failure is not None for run in runs] == out.failed.tolist()
    assert out.failed.any()
    assert not out.failed.all()
    assert any(cut and not failed for cut, failed in zip(cuts, out.failed, strict=True))
    for failure in out.failures:
        assert failure.step == runs[failure.environment].steps
        assert failure.reason in runs[failure.environment].report.failure
    assert dq < 1e-11  # measured 3e-13
    assert dv < 1e-10  # measured 3e-12
    # saved every few steps, the last one too
    some = la.simulate_many(model, states, dt=0.03, duration=0.9, method="maximal", save_every=7)
    assert np.array_equal(some.q[:, 1], out.q[:, 7])
    assert np.abs(some.q[:, -1] - out.q[:, -1]).max() < 1e-12  # measured 0


def test_what_has_no_lanes_is_a_loop():
    tree, loop = la.models.chain(2).build(), la.models.four_bar().build()
    assert has_lanes(la.Maximal(), tree)
    assert not has_lanes(la.Maximal(), loop)
    assert not has_lanes(la.Maximal(start="seed"), tree)
    m = la.models.chain(2)
    m.enforce_limits(True)
    m.joints["joint1"].limits = np.array([[-1.0, 1.0]])
    assert not has_lanes(la.Maximal(), m.build())
