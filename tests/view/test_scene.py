"""What is drawn of a model: shapes on the bodies that carry them, ellipsoids for bodies without, notes."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.dynamics import quantities
from leastaction.view.record import arrows_of, bounds, pick_rows, record, sensible_rows, trace_points
from leastaction.view.scene import scene_of


def pendulum_run(**options):
    model = la.models.pendulum().build()
    return la.simulate(model, model.state(q={"hinge": 1.0}), **{"dt": 0.01, "duration": 1.0, **options})


def test_shapes_move_with_what_carries_them():
    model = la.models.quadruped().build()
    scene = scene_of(model)
    q = model.check_q({"FR_calf_joint": -1.0, "root": (1, 2, 3, 1, 0, 0, 0)})
    feet = [item for item in scene.items if item.body == "FR_foot"]
    assert len(feet) == 1
    carrier = scene.carriers[feet[0].carrier]
    assert carrier == "FR_calf"
    # the foot is where its own link frame says, although the calf carries it
    there = quantities.poses(model, q)[carrier] @ feet[0].pose
    assert there == pytest.approx(quantities.frame_poses(model, q[None], ["FR_foot"])[0, 0], abs=1e-12)
    assert scene.notes == []


def test_equal_shapes_are_kept_once():
    scene = scene_of(la.models.quadruped().build())
    assert len(scene.items) == 21
    assert len(scene.surfaces) < 10


def test_a_body_without_a_shape_is_the_ellipsoid_of_its_inertia():
    radii = np.array([0.1, 0.2, 0.3])
    inertia = la.Ellipsoid(radii).mass_properties(mass=2.0).inertia
    m = la.Mechanism("bare")
    m.add_body("link", mass=2.0, com=(0, 0, -0.5), inertia=inertia)
    m.add_joint("hinge", "revolute", parent="world", child="link", axis=(0, 1, 0))
    scene = scene_of(m.build())
    assert scene.notes == ["body 'link' has no shape; drawn as the ellipsoid of its inertia."]
    points = scene.surfaces[scene.items[0].surface].points @ scene.items[0].pose[:3, :3].T
    assert np.abs(points).max(axis=0) == pytest.approx(radii, rel=1e-9)
    assert scene.items[0].pose[:3, 3] == pytest.approx([0, 0, -0.5])


@pytest.mark.parametrize("inertia", [(0.0, 0.0, 0.0), (0.1, 0.1, 0.0)])
def test_points_and_rods_are_thick_enough_to_be_seen(inertia):
    m = la.Mechanism("thin")
    m.add_body("link", mass=1.0, com=(0, 0, -0.5), inertia=inertia)
    m.add_joint("hinge", "revolute", parent="world", child="link", axis=(0, 1, 0))
    scene = scene_of(m.build())
    extent = np.ptp(scene.surfaces[0].points, axis=0)
    assert extent.min() > 0.01
    assert extent.min() > 0.04 * extent.max()


def test_a_mesh_that_has_gone_is_a_note(tmp_path):
    pytest.importorskip("trimesh")
    path = tmp_path / "part.stl"
    corners = "vertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0"
    path.write_text(f"solid a\nfacet normal 0 0 1\nouter loop\n{corners}\nendloop\nendfacet\nendsolid a\n")
    m = la.Mechanism("arm")
    m.add_body("link", mass=1.0, inertia=(0.1, 0.1, 0.1), shape=la.Mesh(path))
    m.add_joint("hinge", "revolute", parent="world", child="link")
    model = m.build()
    path.unlink()
    scene = scene_of(model)
    assert len(scene.notes) == 1
    assert "part.stl" in scene.notes[0]
    assert "'link'" in scene.notes[0]
    # the ellipsoid stands for it
    assert len(scene.items) == 1


def test_shapes_for_contact_are_drawn_where_there_are_no_others():
    m = la.Mechanism("box")
    m.add_body("a", mass=1.0, shapes=[la.Box((1, 1, 1), visual=False)])
    m.add_body("b", mass=1.0, inertia=(1, 1, 1), shapes=[la.Box((1, 1, 1), visual=False), la.Sphere(0.1)])
    m.add_joint("x", "prismatic", parent="world", child="a")
    m.add_joint("y", "prismatic", parent="a", child="b")
    scene = scene_of(m.build())
    assert [item.body for item in scene.items] == ["a", "b"]


class TestGround:
    def rolling(self, **ground):
        m = la.Mechanism("ball")
        m.add_body("ball", mass=1.0, shape=la.Sphere(0.1))
        m.add_joint("root", "free", parent="world", child="ball")
        m.add_ground(**ground)
        return m.build()

    def test_level_ground_is_no_item(self):
        assert not any(item.ground for item in scene_of(self.rolling(height=0.3)).items)

    def test_a_slope_is_drawn_where_it_is(self):
        normal = np.array([0.6, 0.0, 0.8])
        scene = scene_of(self.rolling(normal=normal, height=0.25))
        (item,) = (item for item in scene.items if item.ground)
        surface = scene.surfaces[item.surface]
        points = surface.points @ item.pose[:3, :3].T + item.pose[:3, 3]
        assert points @ normal == pytest.approx(np.full(len(points), 0.25), abs=1e-12)
        assert surface.normals @ item.pose[:3, :3].T == pytest.approx(np.tile(normal, (len(points), 1)), abs=1e-12)

    def test_a_field_has_its_heights(self):
        heights = np.random.default_rng(3).uniform(0, 0.1, (4, 6))
        model = self.rolling(heights=heights, spacing=(0.5, 0.25))
        scene = scene_of(model)
        (item,) = (item for item in scene.items if item.ground)
        surface = scene.surfaces[item.surface]
        assert np.ptp(surface.points, axis=0)[:2] == pytest.approx([1.5, 1.25])
        assert {*np.unique(surface.points[:, 2].round(9))} == {*np.unique(heights.round(9))}
        assert (surface.normals[:, 2] > 0).all()
        assert len(surface.faces) == 30
        # the picture need not hold it whole
        start = model.state(q={"root": (0, 0, 1, 1, 0, 0, 0)})
        run = la.simulate(model, start, dt=0.01, duration=0.0, method=la.MaximalEuler())
        low, high = bounds(record(run))
        assert (high - low).max() == pytest.approx(0.2)


class TestRecording:
    def test_rows_are_picked_at_a_steady_rate(self):
        t = np.arange(0, 10001) * 0.001
        rows = pick_rows(t, 60.0, 10**6)
        assert (rows[0], rows[-1], len(rows)) == (0, 10000, 601)
        assert np.diff(rows).min() >= 16
        assert np.diff(rows).max() <= 17
        assert len(pick_rows(t, 60.0, 100)) == 100
        assert np.array_equal(pick_rows(t[:5], 60.0, 100), [0, 4])
        assert np.array_equal(pick_rows(t[:1], 60.0, 100), [0])
        # fewer rows than asked for: all of them
        assert np.array_equal(pick_rows(np.array([0.0, 1.0, 3.0]), 60.0, 100), [0, 1, 2])

    def test_poses_and_energy_are_those_of_the_run(self):
        run = pendulum_run()
        recording = record(run)
        rows = np.searchsorted(run.t, recording.t)
        assert recording.energy == pytest.approx((run.energy.total - run.energy.total[0])[rows], abs=1e-12)
        assert recording.gap is None
        turned = 2 * np.arctan2(recording.rotations[:, 0, 2], recording.rotations[:, 0, 0])
        assert turned == pytest.approx(run.q[rows, 0], abs=1e-12)
        # no jump of sign between pictures
        assert np.einsum("rk,rk->r", recording.rotations[1:, 0], recording.rotations[:-1, 0]).min() > 0

    def test_loops_have_a_gap(self):
        model = la.models.four_bar().build()
        run = la.simulate(model, dt=0.01, duration=0.1)
        assert record(run).gap == pytest.approx(run.constraint_error[pick_rows(run.t, 60.0, 100)])

    def test_a_run_that_blew_up_ends_where_it_made_sense(self):
        run = pendulum_run()
        run.v[40:] = 1e30
        assert sensible_rows(run) == 40
        recording = record(run)
        assert recording.t[-1] == pytest.approx(run.t[39])
        assert recording.stopped == "beyond all sense from t = 0.4 s on"

    def test_bounds_hold_what_moves(self):
        low, high = bounds(record(pendulum_run()))
        assert low[0] < -0.7 < 0.7 < high[0]
        assert -1.2 < low[2] < -1.0
        first_low, first_high = bounds(record(pendulum_run()), 0)
        assert (first_low >= low - 1e-12).all()
        assert (first_high <= high + 1e-12).all()

    def test_traces(self):
        model = la.models.quadruped().build()
        ((index, point),) = trace_points(model, ["FR_foot"])
        assert model.body_names[index] == "FR_calf"
        assert point == pytest.approx([0, 0, -0.2])
        with pytest.raises(la.ModelError, match="no body or frame 'nose'"):
            trace_points(model, ["nose"])
        with pytest.raises(la.ModelError, match="does not move"):
            trace_points(model, ["world"])
        with pytest.raises(la.ModelError, match="expected names"):
            trace_points(model, "FR_foot")

    def test_contacts_have_points_and_arrows(self):
        recording = record(landing())
        points, arrows = recording.contacts[..., :3], arrows_of(recording)
        # in the air there is none; at rest four corners on the ground carry the weight
        assert np.isnan(points[0]).all()
        last = points[-2][np.isfinite(points[-2]).all(axis=1)]
        assert len(last) == 4
        assert np.abs(last[:, 2]).max() < 1e-3
        force = recording.contacts[-2, :, 3:]
        assert np.nansum(force, axis=0) == pytest.approx([0, 0, 9.81], abs=0.05)
        # the weight is as long as the box is large; a blow is no longer than one and a half of that
        size = np.sqrt(0.3**2 + 0.2**2 + 0.1**2)
        assert np.linalg.norm(np.nansum(arrows[-2], axis=0)) == pytest.approx(size, rel=0.01)
        assert np.nanmax(np.linalg.norm(arrows, axis=-1)) <= 1.5 * size * (1 + 1e-12)
        assert record(pendulum_run()).contacts.shape[1] == 0


def test_a_lost_control_is_a_note(tmp_path):
    run = landing(control=lambda t, state: np.zeros(6))
    run.save(tmp_path / "a.npz")
    recording = record(la.Trajectory.load(tmp_path / "a.npz"))
    assert recording.contacts.shape[1] == 0
    assert any("contact forces are not drawn" in note for note in recording.scene.notes)


def landing(**options):
    """A box that falls flat onto the ground and stays."""
    m = la.Mechanism("box")
    m.add_body("box", mass=1.0, shape=la.Box((0.3, 0.2, 0.1)))
    m.add_joint("root", "free", parent="world", child="box")
    m.add_ground(friction=0.5)
    model = m.build()
    start = model.state(q={"root": (0, 0, 0.1, 1, 0, 0, 0)})
    return la.simulate(model, start, dt=0.005, duration=0.5, method=la.Maximal(), **options)
