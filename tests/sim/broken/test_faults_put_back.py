"""Faults that were mended are found by the seeds that are kept for them, and by nothing else."""

from __future__ import annotations

import re

import pytest

from tests.sim.broken.faults_put_back import PUT_BACK
from tests.sim.broken.put_back import check_seed
from tests.sim.kept import README, write_seed


@pytest.mark.parametrize("name", [name for name, row in PUT_BACK.items() if row.seed is not None])
def test_its_seed_finds_it(name: str) -> None:
    """Trigger: habits of members have changed; ``python -m tests.sim.kept`` finds another."""
    row = PUT_BACK[name]
    assert row.seed is not None
    why = check_seed(row, row.seed)
    assert why is None, f"seed {row.seed} is none to keep: {why}"


def test_the_table_for_readers_has_them_all() -> None:
    """Each with its world, its checkers and its seed."""
    text = README.read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]+\| `(\w+)` \| (\w+) \| ([\w, ]+) \| (\d*) ?\|$", text, re.M)
    told = {name: (kind, frozenset(names.split(", ")), seed) for name, kind, names, seed in rows}
    assert told == {
        name: (row.kind, row.names, "" if row.seed is None else str(row.seed))
        for name, row in PUT_BACK.items()
    }


def test_a_new_seed_is_written_into_its_row_alone() -> None:
    python = """
    PutBack(one, frozenset({"S2", "S15"}), 5, "wire"),
    PutBack(one_more, frozenset({"S2"}), None, "wire"),
    """
    assert write_seed(python, "one_more", 17) == python.replace("None", "17")
    assert write_seed(python, "one", 6) == python.replace("5, ", "6, ")
    markdown = "| what | `one` | wire | S2, S15 | 5 |\n| what | `one_more` | wire | S2 | |\n"
    assert write_seed(markdown, "one", 6) == markdown.replace("| 5 |", "| 6 |")
    assert write_seed(markdown, "one_more", 17) == markdown.replace("| |", "| 17 |")
