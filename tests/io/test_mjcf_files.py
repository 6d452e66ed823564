"""The files that an MJCF model names: checked by our own parser before MuJoCo opens them."""

from __future__ import annotations

import os

import pytest

import leastaction as la

pytest.importorskip("mujoco")

BALL = '<geom type="sphere" size="0.1"/>'


def cube_text():
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    for a, b, c, d in faces:
        lines += [f"f {a + 1} {b + 1} {c + 1}", f"f {a + 1} {c + 1} {d + 1}"]
    return "\n".join(lines) + "\n"


class TestFiles:
    INCLUDE = f'<mujocoinclude><worldbody><body name="inc">{BALL}</body></worldbody></mujocoinclude>'

    def test_include(self, mjcf, write):
        write("parts/more.xml", '<mujocoinclude><include file="deeper.xml"/></mujocoinclude>')
        write("parts/deeper.xml", self.INCLUDE)
        assert "inc" in la.load(mjcf('<include file="parts/more.xml"/>')).bodies

    def test_relative_path_of_the_model(self, write, tmp_path, monkeypatch):
        write("robot/parts/more.xml", '<mujocoinclude><asset><mesh name="m" file="m.obj"/></asset></mujocoinclude>')
        write("robot/parts/m.obj", cube_text())
        write("robot/model.xml", '<mujoco><include file="parts/more.xml"/></mujoco>')
        monkeypatch.chdir(tmp_path)
        assert la.load("robot/model.xml").name
        monkeypatch.chdir(tmp_path / "robot")
        assert la.load("model.xml").name

    @pytest.mark.parametrize("name", ["../secret.xml", "sub/../../secret.xml", "..\\\\secret.xml"])
    def test_include_outside(self, write, name):
        write("secret.xml", self.INCLUDE)
        path = write("robot/model.xml", f'<mujoco>\n<include file="{name}"/></mujoco>')
        (path.parent / "sub").mkdir()
        with pytest.raises(la.ModelError, match=r"model\.xml:2: <include>: the included file .* lies outside"):
            la.load(path)

    def test_include_of_an_include_outside(self, write):
        write("secret.xml", self.INCLUDE)
        write("robot/more.xml", '<mujocoinclude>\n\n<include file="../secret.xml"/></mujocoinclude>')
        path = write("robot/model.xml", '<mujoco><include file="more.xml"/></mujoco>')
        with pytest.raises(la.ModelError, match=r"more\.xml:3: <include>: .* lies outside"):
            la.load(path)

    def test_include_by_a_link(self, write):
        secret = write("secret.xml", self.INCLUDE)
        path = write("robot/model.xml", '<mujoco><include file="more.xml"/></mujoco>')
        (path.parent / "more.xml").symlink_to(secret)
        with pytest.raises(la.ModelError, match="lies outside"):
            la.load(path)
        assert "inc" in la.load(path, package_dirs=[secret.parent]).bodies

    def test_included_file_is_hardened_too(self, mjcf, write):
        write("more.xml", '<!DOCTYPE a [<!ENTITY x "1">]><mujocoinclude/>')
        with pytest.raises(la.ModelError, match=r"more\.xml:1: <!DOCTYPE a>"):
            la.load(mjcf('<include file="more.xml"/>'))

    def test_included_pipe(self, mjcf, tmp_path):
        os.mkfifo(tmp_path / "more.xml")
        with pytest.raises(la.ModelError, match="is a pipe"):
            la.load(mjcf('<include file="more.xml"/>'))

    def test_include_of_itself(self, mjcf):
        with pytest.raises(la.ModelError, match="MuJoCo refuses the model"):
            la.load(mjcf('<include file="model.xml"/>'))

    def test_missing_include(self, mjcf):
        with pytest.raises(
            la.ModelError, match=r'model\.xml:2: <include>: the included file "gone\.xml" does not exist'
        ):
            la.load(mjcf('<include file="gone.xml"/>'))

    @pytest.mark.parametrize(
        ("compiler", "file"),
        [
            ("", "../secret.obj"),
            ('<compiler meshdir=".."/>', "secret.obj"),
            ('<compiler assetdir=".."/>', "secret.obj"),
            ('<compiler meshdir="/etc"/>', "hostname"),
            ('<compiler meshdir="sub"/>', "../../secret.obj"),
            ('<compiler meshdir="sub"/>', "..\\\\..\\\\secret.obj"),
            ("", "/etc/hostname"),
        ],
    )
    def test_mesh_outside(self, write, compiler, file):
        write("secret.obj", cube_text())
        write("robot/sub/x", "")
        path = write("robot/model.xml", f'<mujoco>{compiler}<asset><mesh name="m" file="{file}"/></asset></mujoco>')
        with pytest.raises(la.ModelError, match=r"model\.xml:1: <(mesh|compiler).* lies outside"):
            la.load(path)

    @pytest.mark.parametrize(
        "asset",
        [
            '<texture name="t" type="2d" file="../t.png"/>',
            '<texture name="t" type="cube" fileup="../t.png"/>',
            '<hfield name="h" size="1 1 1 1" file="../t.png"/>',
            '<model name="m" file="../secret.xml"/>',
        ],
    )
    def test_other_assets_outside(self, write, asset):
        path = write("robot/model.xml", f"<mujoco><asset>{asset}</asset></mujoco>")
        with pytest.raises(la.ModelError, match="lies outside"):
            la.load(path)

    def test_mesh_that_is_a_pipe(self, mjcf, tmp_path):
        os.mkfifo(tmp_path / "m.obj")
        with pytest.raises(la.ModelError, match="is a pipe"):
            la.load(mjcf('<asset><mesh name="m" file="m.obj"/></asset>'))

    def test_missing_mesh(self, mjcf):
        with pytest.raises(la.ModelError, match=r'model\.xml:2: <mesh name="m">: the asset "m.obj" does not exist'):
            la.load(mjcf('<asset><mesh name="m" file="m.obj"/></asset>'))

    @pytest.mark.parametrize("name", ["http://127.0.0.1:9/m.obj", "zip:m.obj"])
    def test_other_sources(self, mjcf, name):
        with pytest.raises(la.ModelError, match="is not a local file"):
            la.load(mjcf(f'<asset><mesh name="m" file="{name}"/></asset>'))

    def test_plugins(self, mjcf):
        with pytest.raises(la.ModelError, match=r"model\.xml:2: <plugin>: plugins are not supported"):
            la.load(mjcf('<extension><plugin plugin="mujoco.elasticity.cable"/></extension>'))


class TestSize:
    def test_many_parts_are_refused_before_they_are_made(self, mjcf):
        many = "".join(f"<body>{BALL}</body>" for _ in range(10_001))
        with pytest.raises(la.ModelError, match="more than 20000 bodies"):
            la.load(mjcf(f"<worldbody>{many}</worldbody>"))

    @pytest.mark.parametrize("count", ["20001", "99999999999"])
    def test_so_are_repeated_ones(self, mjcf, count):
        inner = f'<replicate count="150" offset="0 0 1"><body>{BALL}</body></replicate>'
        for text in (f"<body>{BALL}</body>", inner):
            with pytest.raises(la.ModelError, match="more than 20000 bodies"):
                la.load(mjcf(f'<worldbody><replicate count="{count}" offset="1 0 0">{text}</replicate></worldbody>'))

    def test_too_many_pairs_are_refused_and_fewer_take_a_time_in_proportion(self, mjcf):
        def text(n: int, more: str = "") -> str:
            bodies = (f'<body pos="{i} 0 0"><freejoint/><geom size="0.1" {more}/></body>' for i in range(n))
            return f"<worldbody>{''.join(bodies)}</worldbody>"

        with pytest.raises(la.ModelError, match="more than 50000 pairs of geoms may touch"):
            la.load(mjcf(text(320)))
        assert len(la.load(mjcf(text(120))).contacts) == 120 * 119 // 2
        assert not la.load(mjcf(text(320, 'contype="0" conaffinity="0"'))).contacts
