"""Topics with ``cleanup.policy=compact``: the last record of each key always stays."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cramjam
import crc32c
import pytest

from gateway.topics.log import rewriting
from gateway.topics.log.compaction import DELETE_RETENTION_MS, compact_in_steps
from gateway.topics.log.open_files import OpenFiles
from gateway.topics.log.partition_log import PartitionLog
from gateway.topics.log.produced import check_batch
from gateway.topics.settings import TopicSettings
from model.errors import ErrorCode
from storage.codec.batch_encoding import encode_batch, reencode_batch, replace_records
from storage.codec.batches import decode_batch, read_batch_header
from storage.log.compression import compress, decompress
from tests.support.batches import decode_batches
from tests.support.waiting import until
from tests.unit.gateway.topics.store_rig import KEY, NOW_MS, ORDERS, files, run_store

SEGMENT_BYTES = 1_000
SETTINGS = TopicSettings(
    gateway_topics_segment_bytes=SEGMENT_BYTES,
    gateway_topics_retention_bytes=4 * SEGMENT_BYTES,
    message_max_bytes=SEGMENT_BYTES,
    log_min_free_bytes=0,
)
KEYS = [f"key-{number}".encode() for number in range(7)]

Records = list[tuple[int, bytes | None, bytes | None]]


class Partition:
    """A partition that is reopened repeatedly, and all records ever appended to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = OpenFiles(4)
        self.appended: Records = []
        self.open()

    def open(self) -> None:
        """Reopen as after a crash, from the files alone."""
        self._files.close()
        self._files = OpenFiles(4)
        self.log = PartitionLog(self._folder, self._files, SETTINGS, 0)
        for _ in self.log.recover():
            pass

    def append(self, *records: tuple[bytes, bytes | None]) -> None:
        batch = check_batch(encode_batch(0, records, NOW_MS), SEGMENT_BYTES, NOW_MS)
        base_offset = self.log.append(batch).base_offset
        self.appended += [(base_offset + number, *record) for number, record in enumerate(records)]

    def fill(self, choice: random.Random, batches: int) -> None:
        for _ in range(batches):
            size = choice.randint(1, 4)
            self.append(*((choice.choice(KEYS), choice.randbytes(20)) for _ in range(size)))

    def compact(self) -> Iterator[Path | None]:
        return compact_in_steps(self.log, NOW_MS, SEGMENT_BYTES)

    def read(self, offset: int = 0) -> Records:
        """The records that a consumer reads from an offset on."""
        found: Records = []
        while offset < self.log.end_offset:
            for _ in self.log.load_for_read(offset):
                pass
            for batch in decode_batches(self.log.read(offset, 300, at_least_one=True)):
                found += [(r.offset, r.key, r.value) for r in batch.records if r.offset >= offset]
                offset = batch.last_offset + 1
        return found

    def check(self) -> None:
        """Every record found was appended, and the last record of each key is found."""
        found = self.read()
        assert self.log.start_offset == 0
        assert self.log.end_offset == len(self.appended)
        assert set(found) <= set(self.appended)
        assert [offset for offset, _, _ in found] == sorted(offset for offset, _, _ in found)
        last = {key: record for record in self.appended for key in [record[1]]}
        assert set(last.values()) <= set(found)
        for offset in (0, len(self.appended) // 2, len(self.appended) - 1):
            assert self.read(offset) == [record for record in found if record[0] >= offset]


def test_the_last_record_of_each_key_stays_where_it_was(tmp_path: Path) -> None:
    partition = Partition(tmp_path)
    choice = random.Random(1)
    partition.append((b"once", b"kept"))
    for _ in range(4):
        partition.fill(choice, 60)
        before = partition.log.size
        for _ in partition.compact():
            pass
        partition.check()
        assert partition.log.size < before / 4
        assert len(partition.log.segments) <= 3
        partition.open()
        partition.check()
    assert partition.read()[0] == (0, b"once", b"kept")


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_between_the_steps_is_kept(tmp_path: Path, seed: int) -> None:
    partition = Partition(tmp_path)
    choice = random.Random(seed)
    partition.fill(choice, 100)
    for _ in partition.compact():
        if choice.random() < 0.2:
            partition.fill(choice, 1)
        if choice.random() < 0.05:
            partition.check()
    partition.check()
    partition.open()
    partition.check()


def test_who_reads_at_any_step_after_a_start_sees_all(tmp_path: Path) -> None:
    """Also while a segment is loaded for the first time since the start."""
    for step in range(60):
        partition = Partition(tmp_path / str(step))
        partition.fill(random.Random(step), 40)
        partition.open()
        assert not partition.log.segments[0].is_loaded
        for _, _ in zip(range(step), partition.compact(), strict=False):
            pass
        partition.check()


def test_what_is_dropped_at_any_step_does_not_come_back(tmp_path: Path) -> None:
    """Bug: reading a segment that was deleted meanwhile recreated its file."""
    for step in range(0, 120, 3):
        folder = tmp_path / str(step)
        partition = Partition(folder)
        partition.fill(random.Random(step), 40)
        partition.open()
        steps = partition.compact()
        for _, _ in zip(range(step), steps, strict=False):
            pass
        for _ in partition.log.drop_until(partition.log.segments[-2].base_offset):
            pass
        for _ in steps:
            pass
        there = [segment.path for segment in partition.log.segments]
        assert sorted(folder.glob("*.log")) == there


def test_a_crash_at_any_step_loses_nothing(tmp_path: Path) -> None:
    steps = 0
    while True:
        partition = Partition(tmp_path / str(steps))
        partition.fill(random.Random(2), 40)
        compaction = partition.compact()
        done = [step for _, step in zip(range(steps), compaction, strict=False)]
        partition.open()
        partition.check()
        assert not list((tmp_path / str(steps)).glob("*.draft"))
        if len(done) < steps:
            return
        steps += 1


@pytest.mark.parametrize("failing", range(8))
def test_a_crash_while_a_file_takes_the_place_of_others_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    partition = Partition(tmp_path)
    partition.fill(random.Random(3), 40)
    calls = iter(range(100))

    def fail(call: object) -> object:
        def run(*arguments: object, **named: object) -> object:
            if next(calls) == failing:
                raise OSError("the process ends here")
            return call(*arguments, **named)  # type: ignore[operator]

        return run

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail(Path.rename))
        patch.setattr(Path, "unlink", fail(Path.unlink))
        with pytest.raises(OSError, match="ends here"):
            for _ in partition.compact():
                pass
    partition.open()
    partition.check()
    assert not list(tmp_path.glob("*.swap"))


def compact(data: bytes, last: dict[bytes, int], horizon_ms: int) -> bytes | None:
    """The batch, compacted, where the last records of keys are at these offsets."""
    known = rewriting.LastOffsets()
    for key, offset in last.items():
        known.note(rewriting.FoundRecord(offset, 0, key, False, 0, 0))
    steps = rewriting.compact_batch(data, known, horizon_ms)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


def test_what_marks_a_key_as_deleted_goes_after_a_day() -> None:
    marks = encode_batch(0, [(b"a", None), (b"b", b"v")], NOW_MS)
    last = {b"a": 0, b"b": 1}
    assert compact(marks, last, NOW_MS - DELETE_RETENTION_MS) == marks
    later = compact(marks, last, NOW_MS)
    assert later is not None
    assert [record.key for record in decode_batch(later).records] == [b"b"]
    alone = encode_batch(0, [(b"a", None)], NOW_MS)
    assert compact(alone, last, NOW_MS) is None


def test_compressed_batches_are_looked_into_and_damaged_ones_left_alone() -> None:
    plain = encode_batch(5, [(b"a", b"1"), (b"b", b"2")], NOW_MS)
    records = bytes(cramjam.gzip.compress(plain[61:]))
    packed = make_compressed(plain, records)
    left = compact(packed, {b"a": 9, b"b": 6}, 0)
    assert left is not None
    assert left[22] == 1
    assert len(left) <= len(packed)
    (kept,) = decode_batch(left, decompress=decompress).records
    assert (kept.offset, kept.key, kept.value) == (6, b"b", b"2")
    assert compact(packed, {b"a": 5, b"b": 6}, 0) == packed
    damaged = make_compressed(plain, records[:-9])
    assert compact(damaged, {b"a": 9, b"b": 9}, 0) == damaged


def make_compressed(plain: bytes, records: bytes) -> bytes:
    """The batch with these bytes as its records, said to be of gzip."""
    empty = reencode_batch(replace(decode_batch(plain), records=()))
    data = bytearray(empty + records)
    struct.pack_into(">i", data, 8, len(data) - 12)
    data[22] = 1
    struct.pack_into(">i", data, 57, 2)
    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    return bytes(data)


async def test_a_store_compacts_by_itself_what_is_to_be(tmp_path: Path) -> None:
    bounds: dict[str, Any] = {
        "message_max_bytes": SEGMENT_BYTES,
        "gateway_topics_segment_bytes": SEGMENT_BYTES,
        "gateway_topics_retention_bytes": 4 * SEGMENT_BYTES,
    }
    async with run_store(tmp_path, **bounds) as store:
        kept: list[ErrorCode] = []
        store.topics.keep_cleanup_policy(ORDERS, "compact", kept.append)
        await until(lambda: bool(kept))
        for number in range(200):
            store.append(encode_batch(0, [(KEYS[number % 7], b"x" * 50)], NOW_MS))
        await until(lambda: len(store.values()) < 40)
        assert store.end() == 200
        assert [offset for offset, _ in store.values()][-7:] == list(range(193, 200))
        store.coordinator.delete("orders")
        await until(lambda: not files(tmp_path, f"{ORDERS.hex()}*"))
        assert store.append(encode_batch(0, [(b"k", b"v")], NOW_MS), KEY).error != ErrorCode.NONE


# ------------------------------------------------------------------------ what strangers may send


def pack(plain: bytes, codec: int) -> bytes:
    """The batch, compressed."""
    header = read_batch_header(plain)
    header = replace(header, attributes=header.attributes | codec)
    records = compress(codec, plain[61:])
    return replace_records(header, records, header.count, header.max_timestamp)


def count_steps(steps: Iterator[None]) -> int:
    return sum(1 for _ in steps)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_is_compressed_stays_so_and_nothing_grows(tmp_path: Path, codec: int) -> None:
    """Bug: an 8 MiB segment grew to 211 GB, as batches were rewritten uncompressed."""
    choice = random.Random(codec)
    partition = Partition(tmp_path)
    for number in range(60):
        size = 10_000 if number % 3 else 20
        records = [(choice.choice(KEYS), b"\0" * size), (choice.randbytes(3), b"")]
        batch = check_batch(pack(encode_batch(0, records, NOW_MS), codec), SEGMENT_BYTES, NOW_MS)
        partition.log.append(batch)
    before = partition.log.size
    for _ in partition.compact():
        assert sum(path.stat().st_size for path in tmp_path.glob("*.draft")) <= before
    assert partition.log.size < before
    found = decode_batches(
        b"".join(path.read_bytes() for path in sorted(tmp_path.glob("*.log"))),
        decompress=decompress,
    )
    assert {batch.compression for batch in found if batch.records} == {codec}


def test_what_would_be_more_than_it_was_is_left_as_it_was() -> None:
    """Compressed with more effort than there is time for here."""
    records = [(b"key-%d" % number, b"v" * (number % 50)) for number in range(5_000)]
    plain = encode_batch(0, records, NOW_MS)
    header = replace(read_batch_header(plain), attributes=1)
    best = bytes(cramjam.gzip.compress(plain[61:], level=9))
    packed = replace_records(header, best, header.count, header.max_timestamp)
    assert compact(packed, {b"key-0": 9_999}, 0) == packed


def test_a_batch_is_looked_into_a_little_at_a_time() -> None:
    """Bug: a batch of 1.2 million records stopped the loop for 4 to 16 s."""
    many = encode_batch(0, [(b"%d" % number, b"") for number in range(20_000)], NOW_MS)
    assert count_steps(rewriting.look_into(many)) >= 20_000 // rewriting.STEP
    more = encode_batch(0, [(b"%d" % number, b"") for number in range(20_001)], NOW_MS)
    assert count_steps(rewriting.look_into(more)) == 0
    assert compact(more, {b"1": 99_999}, 0) == more


def test_a_bomb_is_not_unpacked() -> None:
    bomb = pack(encode_batch(0, [(b"a", b"x"), (b"b", b"\0" * (15 << 20))], NOW_MS), 4)
    assert len(bomb) < 2_000
    assert compact(bomb, {b"a": 99}, 0) == bomb


def test_keys_that_are_not_known_keep_all_they_have() -> None:
    known = rewriting.LastOffsets(keys_max=2)
    keys = [b"a", b"b", b"c" * 30, b"a", b"c" * 30]
    records = [
        rewriting.FoundRecord(offset, NOW_MS, key, offset == 4, 0, 0)
        for offset, key in enumerate(keys)
    ]
    for record in records:
        known.note(record)
    kept = [record.offset for record in records if known.keeps(record, NOW_MS + 1)]
    assert kept == [1, 2, 3, 4]


async def test_a_compacted_topic_takes_no_bombs(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        kept: list[ErrorCode] = []
        store.topics.keep_cleanup_policy(ORDERS, "compact", kept.append)
        await until(lambda: bool(kept))
        large = pack(encode_batch(0, [(b"a", b"\0" * (5 << 20))], NOW_MS), 4)
        assert store.append(large).error == ErrorCode.MESSAGE_TOO_LARGE
        plain = encode_batch(0, [(b"a", b"x"), (b"b", b"y")], NOW_MS)
        damaged = make_compressed(plain, b"no gzip")
        assert store.append(damaged).error == ErrorCode.INVALID_RECORD
        wrong = pack(plain, 4)
        header = replace(read_batch_header(wrong), last_offset=2)
        wrong = replace_records(header, wrong[61:], 3, NOW_MS)
        assert store.append(wrong).error == ErrorCode.INVALID_RECORD
        assert store.append(pack(plain, 4)).error == ErrorCode.NONE


async def test_a_batch_of_very_many_records_is_to_be_cut(tmp_path: Path) -> None:
    """All records are checked in the iteration that answers."""
    many = encode_batch(0, [(b"k", b"")] * 20_001, NOW_MS)
    async with run_store(tmp_path) as store:
        assert store.append(many).error == ErrorCode.MESSAGE_TOO_LARGE
        assert store.append(pack(many, 4)).error == ErrorCode.MESSAGE_TOO_LARGE
