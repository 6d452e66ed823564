"""Records that a user may edit: a name that a record does not have is refused, not kept beside the others."""

from __future__ import annotations

import difflib
import inspect
from functools import cache
from typing import Any


class Record:
    """Base of editable records: only the attributes that their classes declare can be set."""

    def __setattr__(self, name: str, value: Any) -> None:
        kind: Any = type(self)
        known = _declared(kind)
        if name not in known and not isinstance(getattr(type(self), name, None), property):
            own = self.__dict__.get("name")
            who = type(self).__name__ + (f" '{own}'" if isinstance(own, str) else "")
            close = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"it has {', '.join(sorted(known))}."
            raise AttributeError(f"{who} has no attribute {name!r}; {hint}", name=name, obj=self)
        super().__setattr__(name, value)


@cache
def _declared(kind: type) -> frozenset[str]:
    """Names with an annotation in a class or in one that it is made from."""
    return frozenset(name for each in kind.__mro__ for name in inspect.get_annotations(each))
