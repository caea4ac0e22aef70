"""How much of the machine's memory the process may use."""

from __future__ import annotations

from pathlib import Path

from coordinator.runtime.loop.machine import compute_answers_max, read_memory_bytes

MIB = 1024 * 1024


def test_the_memory_is_what_the_control_group_allows(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    machine = read_memory_bytes(())
    assert machine > 64 * MIB
    assert read_memory_bytes((limit,)) == machine, "there is no such file"
    for text, expected in (("max\n", machine), (f"{50 * MIB}\n", 50 * MIB), ("9" * 19, machine)):
        limit.write_text(text)
        assert read_memory_bytes((limit,)) == expected


def test_answers_have_a_share_of_the_memory_unless_it_is_set() -> None:
    assert compute_answers_max(5, 1024 * MIB) == 5
    assert compute_answers_max(0, 1024 * MIB) == 128 * MIB
    assert compute_answers_max(0, 100 * MIB) == 64 * MIB
