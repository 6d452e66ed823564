"""Loops at the first state of a run, and how far they open in it."""

from __future__ import annotations

import pytest

import leastaction as la


@pytest.mark.parametrize("name", ["rk4", "euler", "adaptive", "linearly-implicit-euler", "galerkin:2"])
def test_no_run_starts_from_an_open_loop_and_what_opens_later_stands_in_the_report(name):
    """A start that was open by 0.05 m ran without a word under methods that hold loops at acceleration level."""
    model = la.models.four_bar().build()
    closed = la.project(model, model.state())
    with pytest.raises(la.ModelError, match=r"loop joint 'loop' is open by .*leastaction\.project"):
        la.simulate(model, model.state(q=closed.q + 0.1), dt=0.01, duration=0.1, method=name)
    states = [closed, model.state(q=closed.q + 0.1)]
    with pytest.raises(la.ModelError, match=r"environment 1: .*is open by"):
        la.simulate_many(model, states, dt=0.01, duration=0.1, method=name)
    run = la.simulate(model, closed, dt=0.05, duration=2.0, method=name)
    assert run.report.loop_gap == run.constraint_error.max()
    # measured 0.35, 0.75, 4e-10, 0.09, 7e-14 in a mechanism of about a metre
    assert ("warning" in str(run.report)) == (name in ("rk4", "euler", "linearly-implicit-euler"))
    # a run that drifted goes on
    la.resume(run, 0.1)


def test_a_run_without_loops_reports_no_gap():
    assert la.simulate(la.models.pendulum().build(), dt=0.01, duration=0.1).report.loop_gap is None
