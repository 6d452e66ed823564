"""What ``leastaction info`` says about contact."""

from __future__ import annotations

import json

import numpy as np

import leastaction as la
from leastaction.model.serialize import mechanism_to_dict


def test_info_says_what_contact_assumes_of_a_mesh(cli, tmp_path):
    from scipy.spatial import ConvexHull

    points = np.random.default_rng(0).normal(size=(300, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    fine = la.Mesh(vertices=points, faces=ConvexHull(points).simplices)
    flat = la.Mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], faces=[[0, 1, 2]])
    m = la.Mechanism("stones")
    for name, shape in (("stone", fine), ("sheet", flat)):
        m.add_body(name, shape=shape, mass=1.0, inertia=np.eye(3))
        m.add_joint(f"to_{name}", "free", parent="world", child=name)
    m.add_ground()
    path = tmp_path / "stones.json"
    path.write_text(json.dumps(mechanism_to_dict(m)))
    text = " ".join(cli("info", str(path)).out.split())
    assert "of its 300 corners the" in text
    assert "'sheet'" in text
    assert "flat" in text
    # a pair that is refused is named
    m.add_contact("stone", "sheet")
    path.write_text(json.dumps(mechanism_to_dict(m)))
    assert "touches the ground only" in " ".join(cli("info", str(path)).out.split())
