"""The bench of many environments: that it measures what it says. Its bounds are judged by the slow tests."""

from __future__ import annotations

from leastaction.bench import lanes as bench_lanes


def test_lanes_are_compared_with_the_loop_and_with_mujoco():
    rows = bench_lanes.bench_ensembles(environments=6, links=3, steps=4)
    for name, (loop, mujoco) in zip(("galerkin:2", "maximal"), (rows[:2], rows[2:]), strict=True):
        assert f"{name} step of one of 6 chains n=3, loop over environments" in loop.what
        assert "mujoco.rollout" in mujoco.what
        assert loop.ours == mujoco.ours
        assert (loop.bound, mujoco.bound) == (1 / 2, 1 / 1.8)
    for row in rows:
        assert row.group == "lanes"
        assert row.ratio == row.ours / row.theirs
