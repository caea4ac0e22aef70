"""Segment files: reading Kafka's files, telling damage from a torn tail, and writing them."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest

from model.ids import LogPartition
from storage.codec.batch_encoding import encode_batch
from storage.segments import segment_reader
from storage.segments.errors import (
    NotSegments,
    SegmentDamage,
    SegmentError,
    TargetInUse,
    TornTail,
    UnsupportedMessageFormat,
)
from storage.segments.folder import compute_segment_name, open_segments
from storage.segments.segment_reader import RawBatch
from storage.segments.segment_writer import create_segments
from tests.support.storage.golden import GOLDEN, golden_batches

SEGMENTS = GOLDEN / "segments"
P7 = LogPartition(7)


def make_batch(base_offset: int, *, count: int = 3, size: int = 40) -> bytes:
    """A batch whose values never end in zeros, so that trailing zeros are always damage."""
    value = b"v" * (size - 1) + b"\xff"
    return encode_batch(base_offset, [(b"k%010d" % base_offset, value)] * count, 1_700_000_000_000)


def make_folder(
    parent: Path, *files: tuple[int, bytes], name: str = "__consumer_offsets-7"
) -> Path:
    folder = parent / name
    folder.mkdir(parents=True)
    for base_offset, content in files:
        (folder / compute_segment_name(base_offset)).write_bytes(content)
    return folder


def read(path: Path, partition: LogPartition = P7) -> tuple[list[RawBatch], SegmentError | None]:
    """The batches of a partition, and the error that ended them, if any."""
    found: list[RawBatch] = []
    try:
        for batch in open_segments(path).read(partition):
            found.append(batch)
    except SegmentError as error:
        return found, error
    return found, None


def offsets(batches: list[RawBatch]) -> list[int]:
    return [batch.header.base_offset for batch in batches]


# ------------------------------------------------------------------------------------- reading


def test_every_golden_batch_is_found_where_kafka_says_it_is() -> None:
    folder = open_segments(SEGMENTS)
    found = {
        (int(partition), batch.position): batch
        for partition in folder.partitions
        for batch in folder.read(partition)
    }
    golden = golden_batches()
    assert len(found) == len(golden) == 2511
    for line in golden:
        batch = found[line["partition"], line["position"]]
        assert batch.file.name == line["file"]
        assert len(batch.data) == batch.header.size == line["sizeInBytes"]
        assert batch.header.base_offset == line["baseOffset"]
        assert batch.header.last_offset == line["lastOffset"]
        assert batch.header.crc == line["crc"]
    assert folder.partition_count == 50
    assert folder.notes == ()


@pytest.mark.parametrize("chunk", [61, 100, 1000, 4 << 20])
def test_what_is_read_does_not_depend_on_the_size_of_a_chunk(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (SEGMENTS / "__consumer_offsets-41" / compute_segment_name(0)).read_bytes()
    monkeypatch.setattr(segment_reader, "CHUNK_BYTES", chunk)
    batches, error = read(SEGMENTS / "__consumer_offsets-41", LogPartition(41))
    assert error is None
    assert b"".join(batch.data for batch in batches) == whole


def test_one_partition_folder_and_one_file_can_be_read_alone(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, (0, make_batch(0)), (10, make_batch(10)))
    assert offsets(read(folder)[0]) == [0, 10]
    assert offsets(read(folder / compute_segment_name(10))[0]) == [10]
    assert open_segments(folder).partition_count == 8


def test_a_file_of_no_partition_counts_as_the_first_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "copy.log"
    file.write_bytes(make_batch(5))
    folder = open_segments(file)
    assert folder.partitions == (0,)
    assert "does not name its partition" in folder.notes[0]
    assert offsets(list(folder.read(LogPartition(0)))) == [5]


def test_segments_come_in_offset_order_with_the_gaps_of_compaction(tmp_path: Path) -> None:
    folder = make_folder(
        tmp_path,
        (100, make_batch(120) + make_batch(190)),
        (0, make_batch(4) + make_batch(90)),
        (1000, b""),
    )
    batches, error = read(folder)
    assert (offsets(batches), error) == ([4, 90, 120, 190], None)
    assert [batch.position for batch in batches] == [0, len(make_batch(4)), 0, len(make_batch(4))]


def test_other_topics_and_files_of_a_broker_are_left_alone(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, (0, make_batch(0)))
    for name in (".index", ".timeindex", ".snapshot"):
        (folder / f"{0:020}{name}").write_bytes(b"x")
    (folder / f"{0:020}.log.deleted").write_bytes(b"x")
    (folder / "leader-epoch-checkpoint").write_text("0\n")
    (folder / f"{5:020}.snapshot").write_bytes(b"x")
    make_folder(tmp_path, (0, b"x"), name="orders-0")
    make_folder(tmp_path, (0, b"x"), name="__consumer_offsets-3.0123456789abcdef-delete")
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert open_segments(tmp_path).partitions == (7,)
    assert offsets(read(tmp_path)[0]) == [0]


def test_a_log_that_begins_late_says_so(tmp_path: Path) -> None:
    folder = open_segments(make_folder(tmp_path, (70, make_batch(70))))
    assert "begins at offset 70: segments before it are missing" in folder.notes[0]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    batch_count, size = 600, 100_000
    with create_segments(tmp_path / "out", segment_bytes=1 << 30) as writer:
        batches = (make_batch(offset, count=1, size=size) for offset in range(batch_count))
        writer.write_partition(P7, batches)
    tracemalloc.start()
    try:
        count = sum(1 for _ in open_segments(tmp_path / "out").read(P7))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == batch_count
    assert peak < 3 * segment_reader.CHUNK_BYTES < batch_count * size / 4


# ------------------------------------------------------------------------------------- torn ends


def test_a_last_batch_cut_at_any_byte_is_torn(tmp_path: Path) -> None:
    first, last = make_batch(0), make_batch(3)
    folder = make_folder(tmp_path, (0, first))
    file = folder / compute_segment_name(0)
    for length in range(1, len(last)):
        file.write_bytes(first + last[:length])
        batches, error = read(folder)
        assert offsets(batches) == [0], length
        if not any(last[:length]):
            assert error is None
            continue
        assert isinstance(error, TornTail), length
        assert (error.partition, error.file) == (7, file)
        assert (error.position, error.offset) == (len(first), 3)


@pytest.mark.parametrize("zeros", [1, 17, 61, 10_000])
def test_a_tail_of_zeros_is_the_end(tmp_path: Path, zeros: int) -> None:
    folder = make_folder(tmp_path, (0, make_batch(0) + bytes(zeros)))
    batches, error = read(folder)
    assert (offsets(batches), error) == ([0], None)


@pytest.mark.parametrize("written", [70, 120])
def test_a_batch_whose_end_was_left_zero_is_torn(tmp_path: Path, written: int) -> None:
    last = make_batch(3)
    torn = last[:written] + bytes(len(last) - written)
    for tail in (b"", bytes(5000)):
        folder = make_folder(tmp_path / str(len(tail)), (0, make_batch(0) + torn + tail))
        batches, error = read(folder)
        assert offsets(batches) == [0]
        assert isinstance(error, TornTail)


def test_a_length_that_was_damaged_is_not_taken_for_a_torn_end(tmp_path: Path) -> None:
    """Otherwise every batch after it would be dropped silently."""
    middle = bytearray(make_batch(3))
    struct.pack_into(">i", middle, 8, 1 << 20)
    folder = make_folder(tmp_path, (0, make_batch(0) + bytes(middle) + make_batch(6)))
    batches, error = read(folder)
    assert offsets(batches) == [0]
    assert type(error) is SegmentDamage
    assert "though whole batches follow" in str(error)


def test_a_torn_end_that_looks_like_many_batches_does_not_hang(tmp_path: Path) -> None:
    lie = struct.pack(">qiib", 9, 1 << 27, 2, 2) * 100_000
    header = struct.pack(">qiib", 3, 90 << 20, 0, 2)
    folder = make_folder(tmp_path, (0, make_batch(0) + header + lie))
    assert isinstance(read(folder)[1], SegmentDamage)


# ------------------------------------------------------------------------------------- damage


def test_any_changed_byte_behind_the_header_start_is_damage(tmp_path: Path) -> None:
    parts = [make_batch(0), make_batch(3), make_batch(6)]
    folder = make_folder(tmp_path, (0, b""))
    file = folder / compute_segment_name(0)
    start = len(parts[0])
    for position in range(start, start + len(parts[1])):
        content = bytearray(b"".join(parts))
        content[position] ^= 0x81
        file.write_bytes(content)
        batches, error = read(folder)
        if position in range(start + 12, start + 16) or error is None:
            # The leader epoch is outside the CRC, as in Kafka; so is a base offset that still fits.
            assert position < start + 16
            continue
        assert offsets(batches)[:1] == [0]
        assert isinstance(error, SegmentDamage), position
        assert not isinstance(error, TornTail), position
        assert error.position >= start


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (make_batch(3) + make_batch(0), "begins at offset 0, not at or after 6"),
        (make_batch(0) + make_batch(0), "begins at offset 0, not at or after 3"),
        (make_batch(0) + make_batch(2), "begins at offset 2, not at or after 3"),
        (make_batch(0) + b"\x01" * 80, "no batch begins here"),
        (make_batch(0) + bytes(100) + make_batch(3), "no batch begins here"),
        (make_batch(0) + struct.pack(">qiib", 3, -5, 0, 2) + bytes(80), "cannot have 7 bytes"),
    ],
)
def test_what_cannot_be_is_damage(tmp_path: Path, content: bytes, expected: str) -> None:
    folder = make_folder(tmp_path, (0, content))
    error = read(folder)[1]
    assert isinstance(error, SegmentDamage)
    assert expected in str(error)
    assert "\n" not in str(error)
    assert str(error).startswith(f"partition 7, {folder / compute_segment_name(0)}, byte ")


@pytest.mark.parametrize("tail", [make_batch(3)[:-1], bytes(50)])
def test_what_ends_a_log_is_damage_where_more_segments_follow(tmp_path: Path, tail: bytes) -> None:
    folder = make_folder(tmp_path, (0, make_batch(0) + tail), (6, make_batch(6)))
    batches, error = read(folder)
    assert offsets(batches) == [0]
    assert type(error) is SegmentDamage
    assert "though more segments follow" in str(error)


def test_a_batch_below_the_name_of_its_segment_is_damage(tmp_path: Path) -> None:
    error = read(make_folder(tmp_path, (0, make_batch(0)), (50, make_batch(40))))[1]
    assert isinstance(error, SegmentDamage)
    assert "begins at offset 40, not at or after 50" in str(error)


@pytest.mark.parametrize("magic", [0, 1])
def test_older_message_formats_are_refused(tmp_path: Path, magic: int) -> None:
    content = bytes((magic, 0)) + b"a message of long ago"
    message = struct.pack(">qiI", 0, 4 + len(content), zlib.crc32(content)) + content
    error = read(make_folder(tmp_path, (0, message * 3)))[1]
    assert isinstance(error, UnsupportedMessageFormat)
    assert f"message format v{magic}, only v2 can be read" in str(error)


@pytest.mark.parametrize(
    "content", [b"#!/bin/sh\necho this is no segment at all\n" * 5, b"\x89PNG" * 50]
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(NotSegments, match=r"notes\.txt is not a segment"):
        list(open_segments(file).read(LogPartition(0)))


def test_folders_without_segments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSegments, match="does not exist"):
        open_segments(tmp_path / "missing")
    with pytest.raises(NotSegments, match="holds no segments"):
        open_segments(tmp_path)
    folder = make_folder(tmp_path)
    with pytest.raises(NotSegments, match="holds no segment files"):
        open_segments(tmp_path)
    (folder / "1.log").write_bytes(make_batch(1))
    with pytest.raises(NotSegments, match=r"1\.log is not a segment"):
        open_segments(tmp_path)


def test_a_missing_segment_is_seen_by_its_index(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, (0, make_batch(0)))
    (folder / f"{3:020}.index").write_bytes(b"")
    with pytest.raises(SegmentError, match=rf"{3:020}\.log is missing"):
        open_segments(folder)


def test_a_half_cleaned_log_is_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, (0, make_batch(0)))
    (folder / f"{0:020}.log.swap").write_bytes(make_batch(0))
    with pytest.raises(SegmentError, match="was cleaning this log"):
        open_segments(folder)


# ------------------------------------------------------------------------------------- writing


def test_what_was_read_is_written_back_alike(tmp_path: Path) -> None:
    folder = open_segments(SEGMENTS)
    with create_segments(tmp_path / "out") as writer:
        for partition in folder.partitions:
            writer.write_partition(partition, (batch.data for batch in folder.read(partition)))
    written = {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.log")}
    assert written == {path.relative_to(SEGMENTS) for path in SEGMENTS.rglob("*.log")}
    for name in written:
        assert (tmp_path / "out" / name).read_bytes() == (SEGMENTS / name).read_bytes()


def test_segments_roll_at_their_size(tmp_path: Path) -> None:
    batches = [make_batch(offset) for offset in range(0, 30, 3)]
    size = len(batches[0])
    with create_segments(tmp_path / "out", segment_bytes=3 * size) as writer:
        files = writer.write_partition(P7, batches)
    assert [path.name for path in files] == [compute_segment_name(base) for base in (0, 9, 18, 27)]
    assert offsets(read(tmp_path / "out")[0]) == list(range(0, 30, 3))


def test_a_batch_above_the_size_has_a_segment_of_its_own(tmp_path: Path) -> None:
    with create_segments(tmp_path / "out", segment_bytes=10) as writer:
        files = writer.write_partition(P7, [make_batch(0), make_batch(3)])
    assert [int(path.stem) for path in files] == [0, 3]


def test_segments_roll_where_kafkas_indexes_could_not_count_on(tmp_path: Path) -> None:
    with create_segments(tmp_path / "out") as writer:
        files = writer.write_partition(P7, [make_batch(0), make_batch(1 << 31)])
    assert [int(path.stem) for path in files] == [0, 1 << 31]


def test_the_first_segment_can_be_named_by_the_start_of_the_log(tmp_path: Path) -> None:
    with create_segments(tmp_path / "out") as writer:
        (file,) = writer.write_partition(P7, [make_batch(40)], start_offset=0)
        (empty,) = writer.write_partition(LogPartition(8), [])
    assert file.name == empty.name == compute_segment_name(0)
    folder = open_segments(tmp_path / "out")
    assert offsets(list(folder.read(P7))) == [40]
    assert list(folder.read(LogPartition(8))) == []


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="cannot follow offset 5"),
        create_segments(tmp_path / "out") as writer,
    ):
        writer.write_partition(P7, [make_batch(3), make_batch(0)])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(TargetInUse, match="not empty"), create_segments(tmp_path):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with create_segments(tmp_path / "out") as writer:
        writer.write_partition(P7, [make_batch(0)])
    assert offsets(read(tmp_path / "out")[0]) == [0]
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
