"""The three errors a user can meet. Each message names the file, joint or body and says what to do."""

from __future__ import annotations

from typing import Any


class LeastActionError(Exception):
    """Base of every error raised on purpose by this package."""


class ModelError(LeastActionError, ValueError):
    """A mechanism, an option or a state is wrong; the message says where and why.

    Where only the checkpoint of a finished run could not be written, ``run`` is that run.
    """

    run: Any = None


class UnsupportedError(LeastActionError):
    """A method cannot honour something in the mechanism; the message names it and the methods that can."""


class ConvergenceError(LeastActionError, RuntimeError):
    """A step failed. Carries what was reached: ``report``, the last good ``state`` and the partial ``run``."""

    def __init__(self, message: str, *, report: Any = None, state: Any = None, run: Any = None) -> None:
        super().__init__(message)
        self.report = report
        self.state = state
        self.run = run
