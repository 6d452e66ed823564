"""Real MJCF models against MuJoCo: masses, poses, mass matrix, bias, actuators, limits, friction, contact pairs."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la

from ..oracles.listed import folder, parameters
from .mujoco_oracle import check_actuators, check_dynamics, our_touches, shape_of, touches

mujoco = pytest.importorskip("mujoco")

# models and what of them is dropped: tests/oracles/models.txt
SECTIONS = ("robots/mjcf", "gymnasium/envs/mujoco/assets", "dm_control")


@pytest.mark.filterwarnings("ignore:.*settotalmass.*")
@pytest.mark.parametrize("one", parameters(SECTIONS, compared=True))
def test_model(one):
    """Everything that can be asked of both, at rest and at a random state."""
    mj = mujoco.MjModel.from_xml_path(str(one.path))
    options = {"package_dirs": [folder(one.section)]}
    m = la.load(one.path, allow=one.allow, **options)
    # each name is needed: without it the model is refused, by that name
    for name in one.allow:
        with pytest.raises(la.ModelError, match=rf'allow=\("{name}",\)'):
            la.load(one.path, allow=tuple(set(one.allow) - {name}), **options)
    # contact: every two geoms with the same friction, but for planes and fields that were allowed to be dropped
    shape = shape_of(mujoco, mj)
    theirs = {
        frozenset((shape[g], shape[h])): mu for (g, h), mu in touches(mujoco, mj).items() if g in shape and h in shape
    }
    assert {pair: numbers[0] for pair, numbers in our_touches(m).items()} == theirs
    # static quantities and dynamics
    assert sum(body.mass for body in m.bodies.values()) == pytest.approx(mj.body_mass[1:].sum(), rel=1e-13)
    model = m.without("contacts").build()
    check_limits(mj, m)
    errors = check_dynamics(mujoco, mj, model, seed=0)
    errors["actuators"] = check_actuators(mujoco, mj, m, m.without("contacts").build(), seed=1)
    assert max(errors.values()) < 1e-11, errors  # measured 2e-14


def check_limits(mj, m):
    """Limits of hinges, slides and balls count from ref, and are in force."""
    names = la.io.mjcf_names.joint_names(mj)
    for j in np.flatnonzero(mj.jnt_limited):
        low, high = mj.jnt_range[j] + [mj.jnt_margin[j], -mj.jnt_margin[j]]
        ball = mj.jnt_type[j] == int(mujoco.mjtJoint.mjJNT_BALL)
        ref = 0.0 if ball else mj.qpos0[mj.jnt_qposadr[j]]
        assert m.joints[names[j]].limits[0] == pytest.approx([0.0 if ball else low - ref, high - ref], abs=1e-14)
        assert m.limits_enforced
