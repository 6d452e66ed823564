"""What all tests share: a plotting backend without a screen, and Hypothesis with fixed seeds."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import hypothesis
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")

# compiling makes millions of objects that live on: looking through them again and again costs a seventh of its time
gc.set_threshold(100_000, 10, 10)

# a shell that starts the tests in the background lets them ignore Ctrl-C, and with them every process they start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# the first example of a test may compile a kernel, so no deadline; no database, so every run is the same
hypothesis.settings.register_profile("leastaction", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("leastaction")


def pytest_addoption(parser: pytest.Parser) -> None:
    # of tests/fuzz; options are known only if they stand here
    group = parser.getgroup("fuzz", "random mechanisms")
    group.addoption("--seed", type=int, default=None, help="check every property on the mechanism of this seed")
    group.addoption("--seeds", default=None, help="check every property on these seeds: 1000, or 500:600")


@pytest.fixture
def limited() -> Callable[[float], AbstractContextManager[None]]:
    """A context that fails a test which takes more than so many seconds, so that nothing hangs."""

    @contextmanager
    def within(seconds: float) -> Iterator[None]:
        def late(signum: int, frame: object) -> None:
            raise TimeoutError(f"the test took more than {seconds} s")

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    return within
