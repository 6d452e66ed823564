"""The experiments of Sueda 2021 run in their quick form, and their statements hold."""

from __future__ import annotations

import pytest

from leastaction.papers.registry import Context, experiments, find

NAMES = [name for name in experiments() if name in ("redmax-orders", "redmax-adjoint", "redmax-cable", "redmax-reach")]


def test_all_are_there():
    assert len(NAMES) == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick_form_holds(name, tmp_path):
    said = []
    result = find(name).function(Context(True, tmp_path, said.append))
    assert said
    assert all(claim.holds is not False for claim in result.claims)
    assert sum(claim.holds is True for claim in result.claims) >= 2
