"""Real MJCF models against MuJoCo: masses, poses, mass matrix, bias, actuators, limits, friction, contact pairs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import leastaction as la

from .mujoco_oracle import check_actuators, check_dynamics, our_touches, shape_of, touches

mujoco = pytest.importorskip("mujoco")

SHARED = Path(__file__).parents[2] / "../shared/robots/mjcf"

# model: what it has that cannot be honoured yet, and so must be allowed to be dropped
ROBOTS = {
    "agility_cassie/scene.xml": (),
    "franka_emika_panda/mjx_single_cube.xml": ("equality",),
    "franka_emika_panda/panda_nohand.xml": (),
    "franka_emika_panda/scene.xml": ("equality", "actuators"),
    "iit_softfoot/scene.xml": ("equality", "tendon"),
    "kuka_iiwa_14/scene.xml": (),
    "pal_talos/scene_motor.xml": ("equality",),
    "pal_talos/scene_position.xml": ("equality",),
    "pal_tiago/scene_motor.xml": ("torsion",),
    "pal_tiago/scene_position.xml": ("torsion",),
    "pal_tiago/scene_velocity.xml": ("torsion",),
    "robotiq_2f85/scene.xml": ("fluid", "equality", "actuators", "tendon"),
    "shadow_hand/scene_left.xml": ("actuators", "torsion"),
    "shadow_hand/scene_right.xml": ("actuators", "torsion"),
    "skydio_x2/scene.xml": ("fluid", "actuators"),
    "trossen_vx300s/scene.xml": ("equality", "torsion"),
    "unitree_a1/scene.xml": ("torsion",),
    "unitree_go1/scene.xml": ("torsion",),
    "unitree_go2/scene.xml": ("torsion",),
    "unitree_go2/scene_mjx.xml": ("torsion",),
    "unitree_h1/scene.xml": (),
    "wonik_allegro/scene_left.xml": ("torsion",),
    "wonik_allegro/scene_right.xml": ("torsion",),
}

GYMNASIUM = {
    "ant.xml": (),
    "half_cheetah.xml": (),
    "hopper.xml": (),
    "humanoid.xml": (),
    "humanoidstandup.xml": (),
    "inverted_double_pendulum.xml": (),
    "inverted_pendulum.xml": (),
    "point.xml": (),
    "pusher_v5.xml": (),
    "reacher.xml": (),
    "swimmer.xml": ("fluid",),
    "walker2d_v5.xml": (),
}

DM_CONTROL = {
    "acrobot.xml": (),
    "ball_in_cup.xml": ("tendon",),
    "cartpole.xml": (),
    "cheetah.xml": (),
    "finger.xml": (),
    "fish.xml": ("fluid", "actuators", "tendon"),
    "hopper.xml": (),
    "humanoid.xml": (),
    "humanoid_CMU.xml": (),
    "manipulator.xml": ("equality", "actuators", "contacts"),
    "pendulum.xml": (),
    "point_mass.xml": ("actuators",),
    "quadruped.xml": ("equality", "activation", "actuators", "torsion", "contacts"),
    "reacher.xml": (),
    "stacker.xml": ("equality", "actuators", "contacts"),
    "swimmer.xml": ("fluid",),
    "walker.xml": (),
}

# files that are not compared, and why
LEFT_OUT = {
    "shadow_hand/keyframes.xml": "no model of its own",
    "suite/dog.xml": "5797 pairs of geoms, too many for a test of seconds",
    "suite/lqr.xml": "no body in the file, its program adds them",
}


def folder_of(package, inside):
    """Folder of an installed package, without importing it."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(found.submodule_search_locations[0]) / inside


def compare(path, allow):
    """Everything that can be asked of both, at rest and at a random state."""
    mj = mujoco.MjModel.from_xml_path(str(path))
    m = la.load(path, allow=allow)
    # each name is needed: without it the model is refused, by that name
    for name in allow:
        with pytest.raises(la.ModelError, match=rf'allow=\("{name}",\)'):
            la.load(path, allow=tuple(set(allow) - {name}))
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
    errors, T = check_dynamics(mujoco, mj, model, seed=0)
    errors["actuators"] = check_actuators(mujoco, mj, m, m.without("contacts").build(), T, seed=1)
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


@pytest.mark.parametrize("name", ROBOTS)
def test_robot(name):
    if not SHARED.is_dir():
        pytest.skip("the folder of robots is not there")
    compare(SHARED / name, ROBOTS[name])


@pytest.mark.filterwarnings("ignore:.*settotalmass.*")
@pytest.mark.parametrize("name", GYMNASIUM)
def test_gymnasium(name):
    compare(folder_of("gymnasium", "envs/mujoco/assets") / name, GYMNASIUM[name])


@pytest.mark.filterwarnings("ignore:.*settotalmass.*")
@pytest.mark.parametrize("name", DM_CONTROL)
def test_dm_control(name):
    compare(folder_of("dm_control", "suite") / name, DM_CONTROL[name])
