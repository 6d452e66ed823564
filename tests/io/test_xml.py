"""Hostile XML fails fast with one clear line."""

from __future__ import annotations

import time

import pytest

import leastaction as la
from leastaction.io.xml import MAX_DEPTH, parse_bytes

LAUGHS = (
    '<?xml version="1.0"?>\n<!DOCTYPE lolz [\n<!ENTITY lol "lol">\n'
    + "\n".join(f'<!ENTITY lol{i} "{f"&lol{i - 1 if i > 1 else str()};" * 10}">' for i in range(1, 12))
    + ']>\n<robot name="&lol11;"><link name="a"/></robot>'
)


@pytest.mark.parametrize("name", ["robot.urdf", "robot.xml"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LAUGHS, r":2: <!DOCTYPE lolz>: a document type is not allowed"),
        ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="&x;"/>', r":1: <!DOCTYPE r>"),
        ('<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd"><robot name="r"/>', r":1: <!DOCTYPE r>"),
        ('<!DOCTYPE r [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]><robot/>', r":1: <!DOCTYPE r>"),
        ("<!DOCTYPE robot><robot/>", r":1: <!DOCTYPE robot>"),
        ('<robot name="&x;"/>', r":1: not well-formed XML: undefined entity"),
        ('<robot name="r">\n<link name="a">\n</robot>', r":3: not well-formed XML: mismatched tag"),
        ('<robot name="r">\n<link name="a" name="b"/></robot>', r":2: not well-formed XML: duplicate attribute"),
        ('<robot name="r"/><robot name="s"/>', r":1: not well-formed XML: junk after document element"),
        ('<?xml version="1.0" encoding="no-such"?><robot/>', r"(cannot decode|unknown encoding)"),
        ('<?xml version="1.0" encoding="utf-7"?><robot/>', r"(cannot decode|unknown encoding)"),
        ('<robot name="r">', r":1: not well-formed XML: no element found"),
        ("<!-- only a comment -->", r":1: not well-formed XML: no element found"),
    ],
)
def test_refused(write, name, text, reason):
    path = write(name, text)
    start = time.perf_counter()
    with pytest.raises(la.ModelError, match=reason) as caught:
        la.load(path)
    assert time.perf_counter() - start < 1.0  # measured 1e-3 s
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting(write, closed):
    n = 100_000
    path = write("deep.urdf", "<robot>" * n + ("</robot>" * n if closed else ""))
    start = time.perf_counter()
    with pytest.raises(la.ModelError, match=rf"deep\.urdf:1: <robot>: elements are nested more than {MAX_DEPTH} deep"):
        la.load(path)
    assert time.perf_counter() - start < 1.0  # measured 2e-3 s


def test_depth_below_the_limit(write):
    depth = MAX_DEPTH - 1
    path = write("r.urdf", '<robot name="r"><link name="a"/>' + "<x>" * depth + "</x>" * depth + "</robot>")
    assert la.load(path).bodies.keys() == {"a"}


def test_many_elements(write, monkeypatch):
    monkeypatch.setattr("leastaction.io.xml.MAX_ELEMENTS", 100)
    with pytest.raises(la.ModelError, match="more than 100 elements"):
        la.load(write("many.urdf", "<robot>" + "<link/>" * 200 + "</robot>"))


def test_long_text_between_comments_is_linear():
    # pieces of text that a reader might join one by one
    data = b"<robot>" + b"x<!---->" * 500_000 + b"</robot>"
    start = time.perf_counter()
    assert parse_bytes(data, "long").children == []
    assert time.perf_counter() - start < 5.0  # measured 0.02 s


def test_lines_and_names():
    root = parse_bytes(
        b'<robot>\n<link name="a">\n\n<inertial><mass\nvalue="1"/></inertial></link>\n</robot>', "r.urdf"
    )
    link = root.children[0]
    mass = link.required("inertial").required("mass")
    assert link.where == 'r.urdf:2: <link name="a">'
    assert mass.where == 'r.urdf:4: <mass> in <link name="a">'
    assert mass.number("value") == 1.0


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e999", "1_0", "0x1", "1,5", "one", "\u0661"])
def test_numbers_are_finite_and_plain(word):
    element = parse_bytes(f'<a x="0 {word} 1"/>'.encode(), "f")
    with pytest.raises(la.ModelError, match=r"f:1: <a>: x=.* must be finite numbers"):
        element.numbers("x", 3)


@pytest.mark.parametrize("text", ["", "1 2", "1 2 3 4"])
def test_number_count(text):
    with pytest.raises(la.ModelError, match=r"must be 3 numbers, got"):
        parse_bytes(f'<a x="{text}"/>'.encode(), "f").numbers("x", 3)


def test_other_encodings():
    for encoding in ("utf-16", "latin-1"):
        text = f'<?xml version="1.0" encoding="{encoding}"?><robot name="\u00fc"/>'
        assert parse_bytes(text.encode(encoding), "f").attrib["name"] == "\u00fc"
