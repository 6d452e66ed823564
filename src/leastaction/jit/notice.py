"""What is said while something is compiled: half a minute without a word looks like a hang."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE = "compiling, once for this kind of mechanism: some 10 to 40 s; `leastaction warmup` does it ahead of time ..."

_log = logging.getLogger("leastaction")


def _to_the_user(text: str) -> None:
    """A line on the error stream where somebody looks at it: a terminal or a notebook."""
    if sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules):
        print(f"leastaction: {text}", file=sys.stderr, flush=True)


_said = False
_speak: Callable[[str], None] = _to_the_user


def compiling(name: str) -> None:
    """Say once in a process that compiling has begun; the log has every program."""
    global _said
    _log.info("compiling %s", name)
    if not _said:
        _said = True
        _speak(LINE)


@contextmanager
def spoken_by(speak: Callable[[str], None]) -> Iterator[None]:
    """Inside the block the line is given to ``speak``, once."""
    global _said, _speak
    before = _said, _speak
    _said, _speak = False, speak
    try:
        yield
    finally:
        _said, _speak = before[0] or _said, before[1]
