"""Faults that were mended are found by the seeds that are kept for them, and by nothing else."""

from __future__ import annotations

import pytest

from tests.sim.faults_put_back import PUT_BACK
from tests.sim.kept import write_seed
from tests.sim.put_back import check_seed


@pytest.mark.parametrize("name", [name for name, row in PUT_BACK.items() if row.seed is not None])
def test_its_seed_finds_it(name: str) -> None:
    """Trigger: habits of members have changed; ``python -m tests.sim.kept`` finds another."""
    row = PUT_BACK[name]
    assert row.seed is not None
    why = check_seed(row, row.seed)
    assert why is None, f"seed {row.seed} is none to keep: {why}"


def test_a_new_seed_is_written_into_its_row_alone() -> None:
    table = """
    PutBack(one, frozenset({"S2", "S15"}), 5, "wire"),
    PutBack(one_more, frozenset({"S2"}), None, "wire"),
    """
    written = write_seed(table, "one_more", 17)
    assert written == table.replace("None", "17")
    assert write_seed(table, "one", 6) == table.replace("5, ", "6, ")
