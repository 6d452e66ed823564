"""Strict reading of plain JSON values: every error names the path, such as ``joints[3].axis``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray

_REQUIRED: Any = object()


class Reader:
    """One JSON object. Keys are taken one by one; ``finish`` refuses those that nobody took."""

    def __init__(self, data: Any, path: str) -> None:
        if not isinstance(data, dict):
            raise ModelError(f"{path}: expected an object, got {type(data).__name__}.")
        for key in data:
            if not isinstance(key, str):
                raise ModelError(f"{path}: keys must be strings, got {key!r}.")
        self.data = dict(data)
        self.path = path

    def where(self, key: str) -> str:
        """Path of an entry."""
        return f"{self.path}.{key}" if self.path else key

    def fail(self, key: str, expected: str, value: Any) -> ModelError:
        """The error for an entry of the wrong type."""
        shown = repr(value)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        return ModelError(f"{self.where(key)}: expected {expected}, got {shown}.")

    def take(self, key: str, default: Any = _REQUIRED) -> Any:
        """An entry as it is; without a default it must be there."""
        if key in self.data:
            return self.data.pop(key)
        if default is _REQUIRED:
            raise ModelError(f"{self.where(key)}: missing.")
        return default

    def number(self, key: str, default: Any = _REQUIRED) -> Any:
        """A finite number; or the default, which may be None."""
        value = self.take(key, default)
        if value is default:
            return value
        if not is_number(value):
            raise self.fail(key, "a finite number", value)
        return float(value)

    def integer(self, key: str, default: Any = _REQUIRED) -> Any:
        """A whole number."""
        value = self.take(key, default)
        if value is not default and (isinstance(value, bool) or not isinstance(value, int)):
            raise self.fail(key, "a whole number", value)
        return value

    def text(self, key: str, default: Any = _REQUIRED) -> Any:
        """A string."""
        value = self.take(key, default)
        if value is not default and not isinstance(value, str):
            raise self.fail(key, "a string", value)
        return value

    def flag(self, key: str, default: Any = _REQUIRED) -> Any:
        """true or false."""
        value = self.take(key, default)
        if value is not default and not isinstance(value, bool):
            raise self.fail(key, "true or false", value)
        return value

    def array(self, key: str, shape: tuple[int, ...], default: Any = _REQUIRED) -> Any:
        """Nested lists of finite numbers; -1 in the shape is any length."""
        value = self.take(key, default)
        if value is default:
            return value
        expected = " x ".join("n" if n < 0 else str(n) for n in shape) + " finite numbers"
        if not _is_nested(value, shape):
            raise self.fail(key, expected, value)
        # an empty list keeps its inner shape
        return np.array(value, dtype=float).reshape([len(value), *shape[1:]])

    def items(self, key: str, default: Any = _REQUIRED) -> list[Any]:
        """A list of anything."""
        value = self.take(key, default)
        if not isinstance(value, list):
            raise self.fail(key, "a list", value)
        return value

    def objects(self, key: str) -> list[Reader]:
        """A list of objects, none if absent."""
        return [Reader(value, f"{self.where(key)}[{i}]") for i, value in enumerate(self.items(key, []))]

    def object(self, key: str) -> Reader | None:
        """One object, None if absent or null."""
        value = self.take(key, None)
        return None if value is None else Reader(value, self.where(key))

    def finish(self) -> None:
        """Refuse unknown keys."""
        for key in self.data:
            raise ModelError(f"{self.where(key)}: unknown key.")

    @contextmanager
    def here(self) -> Iterator[None]:
        """Put this object's path before the message of a ModelError raised inside."""
        try:
            yield
        except ModelError as error:
            if str(error).startswith(self.path):
                raise
            raise ModelError(f"{self.path}: {error}") from error


def plain(array: FloatArray | None) -> Any:
    """An array as nested lists of Python numbers; None stays None."""
    return None if array is None else array.tolist()


def is_number(value: Any) -> bool:
    """A finite int or float that is no bool."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max


def _is_nested(value: Any, shape: tuple[int, ...]) -> bool:
    """Lists of numbers of the given shape."""
    if not shape:
        return is_number(value)
    if not isinstance(value, list) or (shape[0] >= 0 and len(value) != shape[0]):
        return False
    return all(_is_nested(item, shape[1:]) for item in value)
