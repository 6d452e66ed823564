"""Bad URDF: every error names file, line, element and reason."""

from __future__ import annotations

import time

import pytest

import leastaction as la

LINKS = '<link name="a"/>\n<link name="b"/>\n'


def joint(inside="", name="j", kind="revolute", parent="a", child="b"):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>\n'


def inertial(mass="1", ixx="1", extra=""):
    return (
        f'<link name="a">\n<inertial>{extra}<mass value="{mass}"/>\n'
        f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
    )


def geometry(inside):
    return f'<link name="a"><visual>\n<geometry>{inside}</geometry></visual></link>'


CASES = {
    "no links": ("", r":1: <robot name=\"r\">: the robot has no <link>"),
    "link without a name": ("<link/>", r":2: <link>: the attribute name is missing"),
    "link with an empty name": ('<link name=" "/>', r":2: <link name=\"\">: the attribute name is empty"),
    "two roots": (LINKS, r':3: <link name="b">: 2 links have no parent: "a" \(line 2\), "b" \(line 3\)'),
    "duplicate links": ('<link name="a"/>\n<link name="a"/>', r':3: <link name="a">: .* by the link on line 2'),
    "duplicate joints": (
        LINKS + '<link name="c"/>\n' + joint() + joint(child="c"),
        r':6: <joint name="j">: .* by the joint on line 5',
    ),
    "unknown parent": (LINKS + joint(parent="x"), r':4: <joint name="j">: the parent link "x" does not exist'),
    "unknown child": (LINKS + joint(child="x"), r':4: <joint name="j">: the child link "x" does not exist'),
    "joint to itself": (LINKS + joint(child="a"), r':4: <joint name="j">: it connects the link "a" to itself'),
    "cycle without a root": (
        LINKS + joint() + joint(name="k", parent="b", child="a"),
        r":1: <robot name=\"r\">: there is no root link: the joints form a cycle \(a -> b -> a\)",
    ),
    "cycle beside a root": (
        LINKS + '<link name="c"/>' + joint() + joint(name="k", parent="b", child="a"),
        r"form a cycle",
    ),
    "two parents": (
        LINKS + '<link name="c"/>\n' + joint() + joint(name="k", parent="c"),
        r':6: <joint name="k">: the link "b" already has a parent, by <joint name="j"> on line 5',
    ),
    "second world": (
        '<link name="a"/><link name="world"/>' + joint(child="world"),
        r'<link name="world">: body .world.: this name is reserved',
    ),
    "unknown type": (LINKS + joint(kind="ball"), r':4: <joint name="j">: unknown type "ball"; known are revolute,'),
    "no type": (
        LINKS + '<joint name="j"><parent link="a"/><child link="b"/></joint>',
        r':4: <joint name="j">: the attribute type is missing',
    ),
    "no parent": (LINKS + '<joint name="j" type="fixed"><child link="b"/></joint>', r"<parent> is missing"),
    "two children": (LINKS + joint('<child link="a"/>'), r":4: <child> in <joint name=\"j\">: a second <child>"),
    "zero axis": (LINKS + joint('\n<axis xyz="0 0 0"/>'), r':4: <joint name="j">: the axis on line 5 is zero'),
    "axis of two numbers": (LINKS + joint('<axis xyz="0 1"/>'), r':4: <axis> in <joint name="j">: .* 3 numbers, got 2'),
    "NaN in an axis": (LINKS + joint('<axis xyz="0 nan 1"/>'), r':4: <axis> in <joint name="j">: .* finite'),
    "negative damping": (LINKS + joint('<dynamics damping="-1"/>'), r":4: .*damping on line 4 is negative"),
    "friction on a floating joint": (
        LINKS + joint('<dynamics friction="1"/>', kind="floating"),
        r':4: <joint name="j">: .*friction',
    ),
    "NaN mass": (inertial(mass="nan"), r':3: <mass> in <link name="a">: value="nan" must be finite'),
    "negative mass": (inertial(mass="-1"), r':3: <mass> in <link name="a">: the mass is negative: -1.0'),
    "mass is a word": (inertial(mass="heavy"), r':3: <mass> in <link name="a">: .*"heavy"'),
    "NaN inertia": (inertial(ixx="nan"), r':4: <inertia> in <link name="a">: ixx="nan" must be finite'),
    "no mass": (
        '<link name="a"><inertial><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>',
        r":2: <inertial> in <link name=\"a\">: <mass> is missing",
    ),
    "no inertia": (
        '<link name="a"><inertial><mass value="1"/></inertial></link>',
        r":2: <inertial> in <link name=\"a\">: <inertia> is missing",
    ),
    "two inertials": (
        '<link name="a"><inertial/><inertial/></link>',
        r":2: <inertial> in <link name=\"a\">: a second <inertial>",
    ),
    "origin of two numbers": (inertial(extra='<origin xyz="1 2"/>'), r":3: <origin> in <link name=\"a\">: .*3 numbers"),
    "negative radius": (geometry('<sphere radius="-1"/>'), r":3: <sphere> in .*: .*must be positive"),
    "mesh without a file": (geometry("<mesh/>"), r":3: <mesh> in .*: the attribute filename is missing"),
    "xacro": ('<link name="a"/><xacro:macro name="m"/>', r":2: <xacro:macro name=\"m\">: .*Run \"xacro robot.urdf -o"),
    "an expression": (
        '<link name="a"/>\n<joint name="${prefix}j" type="fixed"/>',
        r":3: <joint .*is for xacro to expand. Run \"xacro robot.urdf -o robot_expanded.urdf\"",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_error_names_line_element_and_reason(urdf, case):
    inside, reason = CASES[case]
    path = urdf(inside)
    with pytest.raises(la.ModelError, match=reason) as caught:
        la.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert message.count(str(path)) == 1
    assert "\n" not in message


def test_large_cycle_fails_fast(urdf):
    n = 20_000
    links = "".join(f'<link name="l{i}"/>' for i in range(n))
    joints = "".join(joint(name=f"j{i}", parent=f"l{i}", child=f"l{(i + 1) % n}") for i in range(n))
    path = urdf('<link name="alone"/>' + links + joints)
    start = time.perf_counter()
    with pytest.raises(la.ModelError, match=r"the joints form a cycle \(l.* -> \.\.\. -> l"):
        la.load(path)
    assert time.perf_counter() - start < 10  # measured 0.5 s


def test_not_a_robot(write):
    with pytest.raises(la.ModelError, match=r"x\.urdf:1: <mujoco>: expected <robot>"):
        la.load(write("x.urdf", "<mujoco/>"))


def test_floating_needs_urdf(write):
    with pytest.raises(la.ModelError, match="floating=True is for URDF"):
        la.load(write("x.xml", "<mujoco/>"), floating=True)
