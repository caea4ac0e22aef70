"""What leaks on purpose is found."""

from __future__ import annotations

import pytest

from tests.soak.report import compute_grown
from tests.soak.run import run_soak


@pytest.mark.timeout(300)
async def test_leaks_are_found() -> None:
    soak = await run_soak(40.0, 3.0, is_collecting=False, leak="bytes,cycles", with_others=False)
    grown = compute_grown(soak.points)
    assert "gateway.connection.connection.Connection in cycles" in grown
    assert "builtins.bytes" in grown
