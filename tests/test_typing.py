"""What users write passes mypy: numbers may be given as tuples and lists, what is stored stays an array."""

from __future__ import annotations

from pathlib import Path

import pytest

CODE = """
import leastaction as la

la.Box((1.0, 2.0, 3.0))
la.Box([1.0, 2.0, 3.0], color=(1.0, 0.0, 0.0), name="crate")
la.Ellipsoid((1.0, 2.0, 3.0), at=la.pose(xyz=(0, 0, 1)))
la.PointForce("a", (0.0, 0.0, 0.0), (1.0, 2.0, 3.0), "body", name="push")
la.PointForce("a", force=lambda t: (t, 0.0, 0.0))
la.PointSpring("a", (0, 0, 0), "b", [1, 2, 3], stiffness=1.0, name="s")
la.Wrench("a", (0, 0, 0, 1, 2, 3))
la.Wrench("a", lambda t: (0, 0, 0, t, 0, 0), frame="body")
reveal_type(la.Box((1, 2, 3)).size)
reveal_type(la.Ellipsoid((1, 2, 3)).radii)
reveal_type(la.PointSpring("a", (0, 0, 0), "b", (0, 0, 0)).point_b)
reveal_type(la.PointForce("a").point)
"""


@pytest.mark.slow
def test_users_code(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    root = Path(__file__).resolve().parents[1]
    monkeypatch.chdir(root)
    monkeypatch.setenv("MYPYPATH", str(root / "src"))
    (tmp_path / "code.py").write_text(CODE)
    words = [str(tmp_path / "code.py"), "--strict", "--follow-imports=silent", "--config-file", "pyproject.toml"]
    out, err, code = api.run(words)
    assert (code, err) == (0, ""), out
    stored = [line for line in out.splitlines() if "Revealed type" in line]
    assert len(stored) == 4
    assert all("ndarray" in line and "float64" in line for line in stored), stored
