"""Every kind of corruption planted in Kafka's segment files: found, or the state is the same.

A segment has no second copy of anything: what its CRCs do not cover, and what is made to fit them
again, can be found only where it breaks a rule of the format or of the groups.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from model.ids import LogPartition
from storage.segments.errors import NotSegments, UnsupportedMessageFormat
from storage.segments.folder import open_segments
from storage.verify.segments import verify_partition
from tests.durability.verify.places import PLACES
from tests.durability.verify.planted import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIME,
    COUNT,
    HEADER_SIZE,
    LAST_DELTA,
    LEADER_EPOCH,
    LENGTH,
    MAGIC,
    MAX_TIME,
    PRODUCER_ID,
    change_byte,
    compute_state,
    flip,
    get,
    golden_stores,
    make_right,
    put,
    read_meaning,
)
from tests.support.storage.plain_store import Entry

Plant = Callable[[list[bytes], random.Random], bytes]


def _place(batches: list[bytes], chance: random.Random) -> int:
    return chance.randrange(len(batches))


def _plain_place(batches: list[bytes], chance: random.Random) -> int:
    """Of a batch that belongs to no transaction."""
    plain = [i for i, data in enumerate(batches) if not get(data, ATTRIBUTES) & 0x10]
    return chance.choice(plain)


def _with(batches: list[bytes], index: int, *instead: bytes) -> bytes:
    return b"".join((*batches[:index], *instead, *batches[index + 1 :]))


def bit(batches: list[bytes], chance: random.Random) -> bytes:
    return flip(b"".join(batches), chance)


def byte(batches: list[bytes], chance: random.Random) -> bytes:
    data = b"".join(batches)
    position = chance.randrange(len(data))
    return change_byte(data, position, data[position] + chance.randrange(1, 256))


def bytes_lost(batches: list[bytes], chance: random.Random) -> bytes:
    """Some bytes, no whole batches, are not there."""
    index = _place(batches, chance)
    data = batches[index]
    start = chance.randrange(len(data))
    end = chance.randrange(start + 1, len(data) + 1)
    if (start, end) == (0, len(data)):
        start = 1
    return _with(batches, index, data[:start] + data[end:])


def bytes_added(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    data = batches[index]
    start = chance.randrange(1, len(data))
    return _with(
        batches, index, data[:start] + chance.randbytes(chance.randrange(1, 99)), data[start:]
    )


def cut(batches: list[bytes], chance: random.Random) -> bytes:
    """The file ends within a batch, of which more than zeros are left."""
    index = _place(batches, chance)
    end = chance.randrange(LENGTH.stop, len(batches[index]))
    return b"".join(batches[:index]) + batches[index][:end]


def zeros(batches: list[bytes], chance: random.Random) -> bytes:
    """A sector that was never written."""
    data = b"".join(batches)
    start = chance.randrange(0, len(data), 512)
    return data[:start] + bytes(len(data[start : start + 512])) + data[start + 512 :]


def swapped(batches: list[bytes], chance: random.Random) -> bytes:
    index = chance.randrange(len(batches) - 1)
    first, second = batches[index : index + 2]
    return b"".join((*batches[:index], second, first, *batches[index + 2 :]))


def doubled(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    return _with(batches, index, batches[index], batches[index])


def offset(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    data = batches[index]
    step = chance.choice((-1, 1)) * chance.choice((1, 2, 7, 1000))
    return _with(batches, index, put(data, BASE_OFFSET, get(data, BASE_OFFSET) + step))


def leader_epoch(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    return _with(batches, index, put(batches[index], LEADER_EPOCH, chance.randrange(-3, 9)))


def length(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    data = batches[index]
    step = chance.choice((-(1 << 30), -7, -1, 1, 7, 1 << 30))
    return _with(batches, index, put(data, LENGTH, get(data, LENGTH) + step))


def magic(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    return _with(batches, index, change_byte(batches[index], MAGIC, chance.choice((0, 1, 3, 255))))


def crc(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    position = chance.randrange(17, 21)
    return _with(
        batches, index, change_byte(batches[index], position, batches[index][position] + 1)
    )


def _with_right_crc(where: slice, *steps: int) -> Plant:
    def plant(batches: list[bytes], chance: random.Random) -> bytes:
        index = _plain_place(batches, chance)
        data = batches[index]
        changed = put(data, where, get(data, where) + chance.choice(steps))
        return _with(batches, index, make_right(changed))

    return plant


def attributes(batches: list[bytes], chance: random.Random) -> bytes:
    """A flag of a plain batch, which makes it compressed, a marker, or what does not exist."""
    index = _plain_place(batches, chance)
    data = batches[index]
    flag = chance.choice((0x01, 0x02, 0x04, 0x10, 0x20, 0x80, 0x100, 0x4000))
    return _with(batches, index, make_right(put(data, ATTRIBUTES, get(data, ATTRIBUTES) ^ flag)))


def record_length(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    data = batches[index]
    changed = change_byte(data, HEADER_SIZE, data[HEADER_SIZE] ^ 0x02)
    return _with(batches, index, make_right(changed))


def record_attributes(batches: list[bytes], chance: random.Random) -> bytes:
    index = _place(batches, chance)
    data = batches[index]
    position = HEADER_SIZE + (1 if data[HEADER_SIZE] < 0x80 else 2)
    return _with(batches, index, make_right(change_byte(data, position, chance.randrange(1, 256))))


def last_bytes(batches: list[bytes], chance: random.Random) -> bytes:
    """The last record is shorter, and the batch says so."""
    index = _place(batches, chance)
    return _with(batches, index, make_right(batches[index][: -chance.randrange(1, 8)]))


KINDS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        bit,
        byte,
        bytes_lost,
        bytes_added,
        cut,
        zeros,
        swapped,
        doubled,
        offset,
        leader_epoch,
        length,
        magic,
        crc,
        attributes,
        record_length,
        record_attributes,
        last_bytes,
    )
} | {
    "base_timestamp": _with_right_crc(BASE_TIME, -1, 1, 1 << 40),
    "max_timestamp": _with_right_crc(MAX_TIME, -1, 1, 1 << 40),
    "producer_id": _with_right_crc(PRODUCER_ID, -7, 1, 1000),
    "count": _with_right_crc(COUNT, -1, 1, 1000),
    "last_offset": _with_right_crc(LAST_DELTA, -1000, -1),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    return folder


def is_found(folder: Path, number: int, data: bytes) -> bool:
    """Whether verifying says that the file is wrong; a file that is no segment is refused."""
    path = folder.with_name(f"__consumer_offsets-{number}") / f"{0:020}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    try:
        report = verify_partition(open_segments(path), LogPartition(number))
    except (NotSegments, UnsupportedMessageFormat):
        return True
    return report.violation is not None


def split(entries: list[Entry]) -> list[bytes]:
    return [batch for _, batch in entries]


def split_file(data: bytes) -> list[bytes]:
    batches, position = [], 0
    while position < len(data):
        size = get(data[position:], LENGTH) + LENGTH.stop
        batches.append(data[position : position + size])
        position += size
    return batches


@pytest.mark.parametrize("name", KINDS)
def test_it_is_found_or_the_state_is_the_same(name: str, folder: Path) -> None:
    outcomes: Counter[str] = Counter()
    for place in range(PLACES):
        chance = random.Random(f"{name} {place}")
        plain = chance.choice([store for store in golden_stores() if len(store.log) > 1])
        batches = split(plain.log)
        data = KINDS[name](batches, chance)
        if is_found(folder, plain.number, data):
            outcomes["found"] += 1
        elif data != b"".join(batches):
            outcomes["harmless"] += 1
            before, after = read_meaning(batches), read_meaning(split_file(data))
            assert compute_state(after) == compute_state(before), f"place {place} is not found"
            # Offsets alone may differ: those of the last batch, behind which nothing comes.
            assert [(r[0], *r[2:]) for r in after.records] == [
                (r[0], *r[2:]) for r in before.records
            ], f"place {place} is not found"
    assert outcomes["found"] > outcomes["harmless"] or name == "leader_epoch", outcomes
