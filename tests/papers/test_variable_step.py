"""The experiment on variable steps: the quick version carries all its claims."""

from __future__ import annotations

import pytest

from leastaction.papers.registry import Context, find


@pytest.mark.slow
def test_claims_hold(tmp_path):
    result = find("variable-step").function(Context(True, tmp_path, lambda words: None))
    assert len(result.claims) == 12
    assert [claim.text for claim in result.claims if not claim.holds] == []
    assert len(result.tables[""]) == 12
    # nothing but the frame writes
    assert list(tmp_path.iterdir()) == []
