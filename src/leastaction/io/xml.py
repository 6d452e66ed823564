"""A small hardened XML reader: no document type, no entities, no network, bounded depth and size, lines remembered.

Built directly on expat's callbacks, so that a refused construct stops the parse at once, before it costs anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from leastaction.errors import ModelError
from leastaction.model.files import MAX_MODEL_BYTES, read_file

MAX_DEPTH = 200
"""Deepest nesting of elements."""

MAX_ELEMENTS = 1_000_000
"""Largest number of elements of one file."""

_CHUNK = 1 << 16


@dataclass(eq=False)
class Element:
    """One XML element that knows where it stands. Character data is not kept: no format read here uses it.

    Attributes:
        tag: name of the element.
        attrib: attributes by name.
        children: elements inside it, in order.
        file: the file as the user named it.
        line: line of its opening tag, from 1.
        parent: the element around it, None for the outermost.
    """

    tag: str
    attrib: dict[str, str]
    file: str
    line: int
    parent: Element | None = field(default=None, repr=False)
    children: list[Element] = field(default_factory=list, repr=False)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.children)

    @property
    def where(self) -> str:
        """``robot.urdf:12: <joint name="elbow">``, the beginning of every message about this element.

        An element without a name is followed by the nearest one around it that has one.
        """
        around = self
        while "name" not in around.attrib and around.parent is not None and around.parent.parent is not None:
            around = around.parent
        inside = f" in {around.short}" if around is not self and "name" in around.attrib else ""
        return f"{self.file}:{self.line}: {self.short}{inside}"

    @property
    def short(self) -> str:
        """``<joint name="elbow">``."""
        name = self.attrib.get("name")
        return f"<{self.tag}>" if name is None else f'<{self.tag} name="{_shortened(name)}">'

    def error(self, reason: str) -> ModelError:
        """A ``ModelError`` that names file, line and element."""
        return ModelError(f"{self.where}: {reason}")

    def all(self, tag: str) -> list[Element]:
        """Children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def optional(self, tag: str) -> Element | None:
        """The only child with this tag, or None; two are an error."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].error(f"a second <{tag}> inside {self.short}; the first is on line {found[0].line}.")
        return found[0] if found else None

    def required(self, tag: str) -> Element:
        """The only child with this tag; none or two are an error."""
        found = self.optional(tag)
        if found is None:
            raise self.error(f"<{tag}> is missing.")
        return found

    def string(self, name: str) -> str:
        """A nonempty attribute."""
        value = self.attrib.get(name)
        if value is None or not value.strip():
            raise self.error(f"the attribute {name} is {'missing' if value is None else 'empty'}.")
        return value

    def numbers(self, name: str, count: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Exactly ``count`` finite numbers of an attribute; ``default`` where it is absent, else an error."""
        text = self.attrib.get(name)
        if text is None:
            if default is None:
                raise self.error(f"the attribute {name} is missing.")
            return default
        # count first, then each word
        words = text.split()
        if len(words) != count:
            needed = "one number" if count == 1 else f"{count} numbers"
            raise self.error(f'{name}="{_shortened(text)}" must be {needed}, got {len(words)}.')
        return tuple(self._number(name, text, word) for word in words)

    def number(self, name: str, default: float | None = None) -> float:
        """One finite number of an attribute; ``default`` where it is absent, else an error."""
        return self.numbers(name, 1, None if default is None else (default,))[0]

    def _number(self, name: str, text: str, word: str) -> float:
        """One finite number; Python's underscores, hexadecimal and non-ASCII digits are refused."""
        try:
            value = float(word) if word.isascii() and "_" not in word else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f'{name}="{_shortened(text)}" must be finite numbers, got "{_shortened(word)}".')
        return value


def parse_file(path: Path, limit: int = MAX_MODEL_BYTES) -> Element:
    """Root element of an XML file."""
    return parse_bytes(read_file(path, "model file", limit), str(path))


def parse_bytes(data: bytes, file: str) -> Element:
    """Root element of an XML document; ``file`` is its name in errors."""
    builder = _Builder(file)
    parser = builder.parser
    # piece by piece, so that a callback that refuses something stops before the rest is looked at
    try:
        for start in range(0, len(data), _CHUNK):
            parser.Parse(data[start : start + _CHUNK], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, str(error))
        raise ModelError(f"{file}:{error.lineno}: not well-formed XML: {reason}.") from error
    except (LookupError, ValueError, TypeError) as error:
        # an encoding that Python does not know or that does not fit one byte per character
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{file}:{parser.CurrentLineNumber}: cannot decode the file: {error}.") from error
    assert builder.root is not None
    return builder.root


class _Builder:
    """Expat callbacks that build the elements and refuse the rest."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Element | None = None
        self.stack: list[Element] = []
        self.count = 0
        self.parser = expat.ParserCreate()
        # what is wanted
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        # what is refused: the document type stands before any entity could be declared
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.EntityDeclHandler = self._refuse_entity
        self.parser.ExternalEntityRefHandler = self._refuse_external

    def _start(self, tag: str, attrib: dict[str, str]) -> None:
        element = Element(tag, attrib, self.file, self.parser.CurrentLineNumber)
        # limits, while parsing
        self.count += 1
        if len(self.stack) >= MAX_DEPTH:
            raise element.error(f"elements are nested more than {MAX_DEPTH} deep.")
        if self.count > MAX_ELEMENTS:
            raise element.error(f"the file has more than {MAX_ELEMENTS} elements.")
        # its place in the tree
        if self.stack:
            element.parent = self.stack[-1]
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)

    def _end(self, tag: str) -> None:
        self.stack.pop()

    def _refuse_doctype(self, name: str, *rest: object) -> NoReturn:
        self._refuse(f"<!DOCTYPE {_shortened(name)}>: a document type is not allowed in a model file; remove it")

    def _refuse_entity(self, name: str, *rest: object) -> NoReturn:
        self._refuse(f"<!ENTITY {_shortened(name)}>: entities are not allowed in a model file")

    def _refuse_external(self, *rest: object) -> NoReturn:
        self._refuse("references to other documents are not allowed in a model file")

    def _refuse(self, reason: str) -> NoReturn:
        raise ModelError(f"{self.file}:{self.parser.CurrentLineNumber}: {reason}.")


def _shortened(text: str, length: int = 60) -> str:
    """Text for a message: one line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3] + "..."
