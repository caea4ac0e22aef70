"""The end of RocksDB's write-ahead log, torn at any byte, and damage before its end.

What was not acknowledged may go, a whole write at a time; what was is there, or the store is
refused with the partition and the watermark in the line.
"""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from model.ids import LogPartition
from storage.rocks.rocks_opening import open_store
from tests.durability.stores import (
    PARTITIONS,
    Content,
    Refusal,
    check_refused_or_whole,
    copy,
    cut,
    find,
    flip_bit,
    make_store,
    open_and_read,
    open_damaged,
    read_all,
)
from tests.support.storage.appends import Pair, make_append, mark_all, offset_key, offset_value

BLOCK_SIZE = 32 << 10
FLIPS_A_BLOCK = 6

# As a conversion has it: what there was goes, something else comes, all of it or nothing.
BEFORE: list[Pair] = [(offset_key("g", number), offset_value(7)) for number in range(2)]
LAST: list[Pair] = [
    *((key, None) for key, _ in BEFORE),
    (offset_key("g", 2), offset_value(8)),
]


class Torn:
    """A killed store, its last write the one to be torn; ``log_size`` is where that begins."""

    def __init__(self, folder: Path, *, is_marked: bool) -> None:
        self.folder = folder
        live = folder.with_name("live")
        store = open_store(live, partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            store.write([make_append(partition, 0, BEFORE)], [(b"side", b"before")])
        mark_all(store)
        self.before = read_all(store)
        self.log_size = find(live, "*.log")[-1].stat().st_size
        store.write(
            [make_append(partition, len(BEFORE), LAST) for partition in range(PARTITIONS)],
            [(b"side", b"after")],
        )
        store.sync()
        if is_marked:
            mark_all(store)
        self.after = read_all(store)
        shutil.copytree(live, folder)
        store.close()

    @property
    def last_size(self) -> int:
        """Bytes of the write that is to be torn."""
        return find(self.folder, "*.log")[-1].stat().st_size - self.log_size

    def tear(self, to: Path, keep: int, fill: bytes) -> Path:
        """A copy of which so many bytes of the last write are left; the rest is filled up."""
        folder = copy(self.folder, to)
        log = find(folder, "*.log")[-1]
        cut(log, self.log_size + keep)
        with log.open("ab") as file:
            file.write(fill * (self.last_size - keep))
        return folder


@pytest.fixture(scope="module")
def unmarked(tmp_path_factory: pytest.TempPathFactory) -> Torn:
    """Its last write is on disk, and nobody was told."""
    return Torn(tmp_path_factory.mktemp("unmarked") / "store", is_marked=False)


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Torn:
    """Its last write was acknowledged."""
    return Torn(tmp_path_factory.mktemp("marked") / "store", is_marked=True)


@pytest.mark.parametrize(
    ("fill", "step"), [(b"", 1), (b"\0", 11), (b"\xa5", 11)], ids=["cut", "zeros", "garbage"]
)
def test_a_tail_torn_at_any_byte_goes_whole(
    unmarked: Torn, scratch: Path, fill: bytes, step: int
) -> None:
    for keep in range(0, unmarked.last_size, step):
        folder = unmarked.tear(scratch / "store", keep, fill)
        assert open_and_read(folder) == unmarked.before, f"{keep} bytes were left"
    assert open_and_read(copy(unmarked.folder, scratch / "store")) == unmarked.after


@pytest.mark.parametrize(
    ("fill", "step"), [(b"", 7), (b"\0", 11), (b"\xa5", 11)], ids=["cut", "zeros", "garbage"]
)
def test_a_tail_that_was_acknowledged_is_missed(
    marked: Torn, scratch: Path, fill: bytes, step: int
) -> None:
    for keep in range(0, marked.last_size, step):
        refusal = open_damaged(marked.tear(scratch / "store", keep, fill))
        assert isinstance(refusal, Refusal), f"{keep} bytes were left"
        check_names_partitions(refusal.message, end=2, mark=5)


def check_names_partitions(message: str, *, end: int, mark: int) -> None:
    """What was lost, and how far it had been acknowledged, of each partition."""
    for partition in map(LogPartition, range(PARTITIONS)):
        assert (
            f"log partition {partition} ends at offset {end}, {mark - end} records below {mark}"
            in message
        ) or (
            f"log partition {partition} can be read up to offset {end} and was acknowledged up to "
            f"{mark}" in message
        ), message


def test_a_bit_flipped_in_any_block_of_the_log_is_refused(scratch: Path) -> None:
    """Later records are acknowledged: what stands behind the damage must not go silently."""
    folder = scratch / "whole"
    expected: Content = make_store(folder)
    size = find(folder, "*.log")[-1].stat().st_size
    blocks = range(0, size - BLOCK_SIZE, BLOCK_SIZE)
    assert len(blocks) >= 3
    chance = random.Random(7)
    for block in blocks:
        for number in range(FLIPS_A_BLOCK):
            spoilt = copy(folder, scratch / "store")
            # The first flip is within the head of the block's first record.
            position = block + (chance.randrange(7) if not number else chance.randrange(BLOCK_SIZE))
            flip_bit(find(spoilt, "*.log")[-1], position, chance.randrange(8))
            refusal = check_refused_or_whole(spoilt, expected)
            assert refusal is not None, f"a bit of byte {position} is flipped"
            assert refusal.is_at_open
            assert re.search(
                r"log partition \d (can be read up to offset \d+ and was acknowledged up to \d+"
                r"|ends at offset \d+, \d+ records below \d+)",
                refusal.message,
            ), refusal.message
