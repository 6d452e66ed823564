"""COLLADA meshes: what a scene shows, in metres, and files that are broken or hostile."""

import numpy as np
import pytest

from leastaction.errors import ModelError
from leastaction.model.shapes import Mesh

# corners and outward quadrilaterals of a cube from 0 to 1
CORNERS = "0 0 0  1 0 0  1 1 0  0 1 0  0 0 1  1 0 1  1 1 1  0 1 1"
QUADS = [(0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]


def words(rows) -> str:
    """Numbers of nested lists as text."""
    return " ".join(str(number) for row in rows for number in row)


def with_normals(rows) -> str:
    """Each index of a vertex followed by one of a normal."""
    return words([(k, 0) for row in rows for k in row])


SURFACES = {
    "polylist": f"<polylist count='6'>{{inputs}}<vcount>{'4 ' * 6}</vcount><p>{{quads}}</p></polylist>",
    "triangles": "<triangles count='12'>{inputs}<p>{halves}</p></triangles>",
    "polygons": "<polygons count='6'>{inputs}{each}</polygons>",
    "trifans": "<trifans count='6'>{inputs}{each}</trifans>",
    "tristrips": "<tristrips count='6'>{inputs}{strips}</tristrips>",
}
HALVES = [half for a, b, c, d in QUADS for half in ((a, b, c), (a, c, d))]
SURFACE = SURFACES["polylist"]


def document(surface: str = SURFACE, nodes: str = "<instance_geometry url='#cube'/>", head: str = "", **parts) -> str:
    """A COLLADA file of a cube, with a surface, the content of its node, and text before it."""
    filled = surface.format(
        inputs="<input semantic='VERTEX' source='#v' offset='0'/><input semantic='NORMAL' source='#n' offset='1'/>",
        quads=with_normals(QUADS),
        halves=with_normals(HALVES),
        each="".join(f"<p>{with_normals([quad])}</p>" for quad in QUADS),
        strips="".join(f"<p>{with_normals([(a, b, d, c)])}</p>" for a, b, c, d in QUADS),
    )
    corners, unit = parts.get("corners", CORNERS), parts.get("unit", "<unit meter='0.01'/>")
    library = parts.get("library", "")
    return f"""<?xml version="1.0" encoding="utf-8"?>{head}
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset>{unit}<up_axis>Y_UP</up_axis></asset>
  <library_geometries><geometry id="cube"><mesh>
    <source id="s"><float_array id="a" count="24">{corners}</float_array>
      <technique_common><accessor source="#a" count="8" stride="3"/></technique_common></source>
    <source id="n0"><float_array id="b" count="3">0 0 1</float_array></source>
    <vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
    {filled}
    <lines count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1</p></lines>
  </mesh></geometry></library_geometries>
  {library}
  <library_visual_scenes><visual_scene id="scene"><node id="top">{nodes}</node></visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#scene"/></scene>
</COLLADA>"""


def read(folder, text: str) -> Mesh:
    """A mesh from the text of a file."""
    file = folder / "part.dae"
    file.write_text(text)
    return Mesh(file)


@pytest.mark.parametrize("kind", SURFACES)
def test_every_kind_of_surface_encloses_the_cube(tmp_path, kind):
    mesh = read(tmp_path, document(SURFACES[kind]))
    assert mesh.points.shape == (8, 3)
    assert mesh.triangles.shape == (12, 3)
    # a centimetre cube; measured 2e-16
    np.testing.assert_allclose(mesh.volume, 1e-6, rtol=1e-14)
    np.testing.assert_allclose(mesh.points.max(axis=0), 0.01, rtol=1e-15)
    assert mesh.notes == []


def test_nodes_place_turn_mirror_and_repeat(tmp_path):
    library = """<library_nodes><node id="again"><translate>5 0 0</translate><rotate>0 0 2 90</rotate>
        <scale>2 1 -1</scale><node><instance_geometry url="#cube"/></node></node></library_nodes>"""
    nodes = """<matrix>1 0 0 0  0 1 0 0  0 0 1 10  0 0 0 1</matrix><instance_geometry url="#cube"/>
        <instance_node url="#again"/><node><translate>0 7 0</translate><instance_node url="#again"/></node>
        <instance_camera url="#eye"/>"""
    mesh = read(tmp_path, document(nodes=nodes, library=library, unit=""))
    # by hand: x -> y * 2, y -> -x + 5, z -> -z, all 10 higher; the reflection keeps the surface outward
    boxes = [((0, 0, 10), (1, 1, 11)), ((4, 0, 9), (5, 2, 10)), ((4, 7, 9), (5, 9, 10))]
    corners = {tuple(np.where([a, b, c], high, low).tolist()) for low, high in boxes for a, b, c in np.ndindex(2, 2, 2)}
    assert {tuple(np.round(point, 12).tolist()) for point in mesh.points} == corners
    # measured 0
    np.testing.assert_allclose(mesh.volume, 1.0 + 2.0 + 2.0, rtol=1e-14)
    assert mesh.notes == []


def test_without_a_scene_all_geometries_are_shown(tmp_path):
    text = document().split("<library_visual_scenes>")[0] + "</COLLADA>"
    # measured 2e-16
    np.testing.assert_allclose(read(tmp_path, text).volume, 1e-6, rtol=1e-14)


DOUBLING = "".join(
    f"<node id='n{k}'><instance_node url='#n{k + 1}'/><instance_node url='#n{k + 1}'/></node>" for k in range(60)
)
CASES = {
    "document type": (document(head='<!DOCTYPE a [<!ENTITY b "c">]>'), "document type declaration"),
    "another file": (document(nodes="<instance_geometry url='secret.dae#cube'/>"), r"secret\.dae.*other files"),
    "network": (document(nodes="<instance_node url='http://example.org/a.dae#b'/>"), "other files are not read"),
    "missing": (document(nodes="<instance_geometry url='#ball'/>"), "no geometry 'ball'"),
    "inside itself": (document(nodes="<instance_node url='#top'/>"), "a node inside itself"),
    "doubling": (
        document(
            nodes="<instance_node url='#n0'/>", library=f"<library_nodes>{DOUBLING}<node id='n60'/></library_nodes>"
        ),
        "too many nodes",
    ),
    "nested": (document(nodes="<node>" * 200 + "</node>" * 200), "inside each other"),
    "index": (document("<triangles>{inputs}<p>0 0 1 0 8 0</p></triangles>"), "names vertex 8, but there are 8"),
    "negative": (document("<triangles>{inputs}<p>0 0 1 0 -1 0</p></triangles>"), "whole numbers from 0"),
    "half": (document("<triangles>{inputs}<p>0 0 1 0</p></triangles>"), "three corners each"),
    "odd": (document("<triangles>{inputs}<p>0 0 1 0 2</p></triangles>"), "a multiple of 2"),
    "count": (document("<polylist>{inputs}<vcount>5</vcount><p>{quads}</p></polylist>"), "have 5 corners"),
    "holes": (document("<polygons>{inputs}<ph><p>0 0 1 0 2 0</p><h/></ph></polygons>"), "holes"),
    "no surface": (document(""), "no triangles"),
    "numbers": (document(corners="0 0 zero"), "must be numbers"),
    "finite": (document(corners="0 0 1e999"), "finite"),
    "unit": (document(unit="<unit meter='-1'/>"), "positive"),
    "matrix": (document(nodes="<matrix>1 0 0</matrix>"), "expected 16 numbers"),
    "axis": (document(nodes="<rotate>0 0 0 90</rotate>"), "no length"),
    "skin": (document(nodes="<instance_controller url='#skin'/>"), "instance_controller.*is not read"),
    "cut off": (document()[:900], "not well-formed"),
    "encoding": (document().replace("utf-8", "klingon"), "cannot decode|not well-formed|unknown encoding"),
    "other": ("<robot/>", "<COLLADA>"),
}


@pytest.mark.parametrize("case", CASES)
def test_broken_and_hostile_files_are_refused_with_file_and_line(tmp_path, case):
    text, reason = CASES[case]
    with pytest.raises(ModelError, match=rf"part\.dae': line \d+: .*({reason})"):
        _ = read(tmp_path, text).points
