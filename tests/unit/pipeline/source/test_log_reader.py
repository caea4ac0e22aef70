"""Reading a log as Spark's tasks do, without Spark: offsets, filters, gaps and bad input."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringEndsWith,
)

from pipeline.schema import BAD_CRC, TOPIC, TRUNCATED
from pipeline.source.data_source import GroupLogReader, compute_schema
from pipeline.source.errors import DataLoss, NewerStore, NotALog, OptionError
from pipeline.source.options import parse_options
from pipeline.source.slice_reading import open_log
from storage.folder.watermark import FORMAT_VERSION, WatermarkHeader, create_watermark
from storage.log_store import FormatTooNew, read_batch_range
from storage.rocks.rocks_opening import open_store
from tests.support.pipeline.blocks import START_MS, make_log
from tests.support.storage.appends import append, mark_all, offset_key, offset_value
from tests.support.storage.golden import GOLDEN, golden_lines

SEGMENTS = GOLDEN / "segments"


def make_reader(path: Path, **options: str) -> GroupLogReader:
    parsed = parse_options({"path": str(path), **options})
    return GroupLogReader(parsed, compute_schema(parsed))


def read_rows(path: Path, *filters: Filter, **options: str) -> list[dict[str, Any]]:
    reader = make_reader(path, **options)
    list(reader.pushFilters(list(filters)))
    return [
        row
        for task in reader.partitions()
        for rows in reader.read(task)
        for row in rows.to_pylist()
    ]


def places(rows: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in rows)


def of_partition(partition: int, offsets: Sequence[int]) -> list[tuple[int, int]]:
    return [(partition, offset) for offset in offsets]


def write_segment(partition: Path, batches: Sequence[bytes]) -> None:
    partition.mkdir(exist_ok=True, parents=True)
    base = read_batch_range(batches[0])[0]
    (partition / f"{base:020}.log").write_bytes(b"".join(batches))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partition 3: offsets 0 to 29, three a second, in three segments; partition 5: 0 to 2."""
    folder = tmp_path_factory.mktemp("log")
    batches = make_log(10)
    for start, end in ((0, 4), (4, 7), (7, 10)):
        write_segment(folder / f"{TOPIC}-3", batches[start:end])
    write_segment(folder / f"{TOPIC}-5", batches[:1])
    return folder


def at(partition: int, offset: int) -> str:
    return json.dumps({TOPIC: {str(partition): offset}})


# --------------------------------------------------------------------- offsets and conditions


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, range(30)),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, range(30)),
        ({"startingOffsets": at(3, 13)}, range(13, 30)),
        ({"startingOffsets": at(3, 13), "endingOffsets": at(3, 14)}, [13]),
        ({"endingOffsets": at(3, -1)}, range(30)),
        ({"startingOffsets": at(3, -2), "endingOffsets": at(3, 2)}, range(2)),
        ({"startingOffsets": at(3, 30)}, []),
        ({"startingOffsets": at(3, 99), "failOnDataLoss": "false"}, []),
        ({"endingOffsets": at(3, 99), "failOnDataLoss": "false"}, range(30)),
        ({"minPartitions": "7"}, range(30)),
    ],
)
def test_offsets(log: Path, options: dict[str, str], wanted: Sequence[int]) -> None:
    found = places(read_rows(log, **options))
    assert found == of_partition(3, wanted) + of_partition(5, range(3))


def test_partitions_of_spark(log: Path) -> None:
    assert len(make_reader(log).partitions()) == 1
    assert len(make_reader(log, minPartitions="4").partitions()) >= 4
    tasks = make_reader(log, startingOffsets=at(3, 21)).partitions()
    files = [Path(part.file) for task in tasks for part in task.slices]
    assert [(file.parent.name[-1], int(file.stem)) for file in files] == [("3", 21), ("5", 0)]


def test_starting_timestamp(log: Path) -> None:
    options = {"startingTimestamp": str(START_MS + 3001)}
    found = read_rows(log, startingOffsetsByTimestampStrategy="latest", **options)
    assert places(found) == of_partition(3, range(12, 30))
    with pytest.raises(
        OptionError, match="partition 5 has no record at or after startingTimestamp"
    ):
        read_rows(log, **options)


def second(number: int, micros: int = 0) -> datetime:
    return datetime.fromtimestamp(START_MS // 1000, UTC) + timedelta(
        seconds=number, microseconds=micros
    )


PARTITION, OFFSET, TIME = ("partition",), ("offset",), ("timestamp",)
ONLY_3 = EqualTo(PARTITION, 3)


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([ONLY_3, GreaterThanOrEqual(OFFSET, 25)], range(25, 30)),
        ([ONLY_3, GreaterThan(OFFSET, 25), LessThan(OFFSET, 28)], [26, 27]),
        ([In(PARTITION, (3, 4)), EqualTo(OFFSET, 7), IsNotNull(OFFSET)], [7]),
        ([ONLY_3, LessThanOrEqual(OFFSET, 1)], range(2)),
        ([EqualNullSafe(PARTITION, 3), EqualNullSafe(OFFSET, 9)], [9]),
        ([ONLY_3, In(PARTITION, (4, 5))], []),
        ([GreaterThan(PARTITION, 2), LessThan(PARTITION, 5)], range(30)),
        ([LessThan(OFFSET, 0)], []),
        ([EqualTo(OFFSET, -4)], []),
        ([EqualTo(PARTITION, 9)], []),
        ([ONLY_3, GreaterThanOrEqual(TIME, second(3))], range(9, 30)),
        ([ONLY_3, GreaterThan(TIME, second(3))], range(12, 30)),
        ([ONLY_3, GreaterThanOrEqual(TIME, second(3, 1))], range(12, 30)),
        ([ONLY_3, GreaterThan(TIME, second(3, -1))], range(9, 30)),
        ([ONLY_3, LessThan(TIME, second(3))], range(9)),
        ([ONLY_3, LessThan(TIME, second(3, 1))], range(12)),
        ([ONLY_3, LessThanOrEqual(TIME, second(3))], range(12)),
        ([ONLY_3, LessThanOrEqual(TIME, second(3, -1))], range(9)),
        ([ONLY_3, EqualTo(TIME, second(3))], range(9, 12)),
        ([ONLY_3, EqualTo(TIME, second(3, 1))], []),
        ([ONLY_3, GreaterThan(TIME, second(3)), LessThan(TIME, second(3))], []),
    ],
)
@pytest.mark.parametrize("decode", ["raw", "records"])
def test_conditions(log: Path, filters: list[Filter], wanted: Sequence[int], decode: str) -> None:
    assert list(make_reader(log).pushFilters(filters)) == []
    assert places(read_rows(log, *filters, decode=decode)) == of_partition(3, wanted)


@pytest.mark.parametrize(
    "condition",
    [
        Not(EqualTo(PARTITION, 3)),
        EqualNullSafe(OFFSET, None),
        In(OFFSET, (2, 29)),
        StringEndsWith(("topic",), "s"),
        EqualTo(("group_id",), "g"),
        IsNotNull(TIME),
    ],
)
def test_conditions_that_are_left_to_spark(log: Path, condition: Filter) -> None:
    assert list(make_reader(log).pushFilters([condition])) == [condition]


def test_gaps_of_a_compacted_log_are_no_loss(tmp_path: Path) -> None:
    batches = make_log(10)
    write_segment(tmp_path / f"{TOPIC}-3", [batches[0], batches[4], batches[9]])
    whole = [0, 1, 2, 12, 13, 14, 27, 28, 29]
    assert places(read_rows(tmp_path)) == of_partition(3, whole)
    assert places(read_rows(tmp_path, startingOffsets=at(3, 5))) == of_partition(3, whole[3:])


def test_a_folder_of_one_partition_and_one_segment() -> None:
    folder = SEGMENTS / f"{TOPIC}-11"
    wanted = [(11, line["offset"]) for line in golden_lines() if line["partition"] == 11]
    assert places(read_rows(folder, decode="records")) == wanted
    assert [offset for _, offset in places(read_rows(next(folder.glob("*.log"))))] == [
        offset for _, offset in wanted
    ]


# ------------------------------------------------------------------------------ Muster's store


@pytest.fixture
def store_folder(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose store a writer has open: 40 durable records in partition 1, then one."""
    store = open_store(tmp_path / "store", partitions=3)
    for number in range(40):
        append(store, {1: [(offset_key("g", number), offset_value(number))]})
    mark_all(store)
    append(store, {1: [(offset_key("g"), offset_value(1))]})
    yield tmp_path
    store.close()


def test_a_store_beside_its_writer(store_folder: Path) -> None:
    for path in (store_folder, store_folder / "store"):
        for options in ({}, {"minPartitions": "3"}):
            rows = read_rows(path, decode="records", **options)
            assert places(rows) == of_partition(1, range(40))
            assert [row["topic_partition"] for row in rows] == list(range(40))
    for least in (1, 3, 27, 40, 41):
        tasks = make_reader(store_folder, minPartitions=str(least)).partitions()
        assert len(tasks) == min(least, 40)
    condition = GreaterThanOrEqual(OFFSET, 35)
    assert places(read_rows(store_folder, condition)) == of_partition(1, range(35, 40))
    log = open_log(str(store_folder))
    assert log.find_time(1, 0) == 0
    assert log.find_time(1, 1 << 60) is None
    log.close()


def test_a_closed_store_is_read_to_its_end(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=3)
    append(store, {2: [(offset_key("g"), offset_value(1))]})
    mark_all(store)
    store.close()
    assert places(read_rows(tmp_path)) == [(2, 0)]


# ------------------------------------------------------------------------------------ bad input


def test_bad_batches_are_rows(tmp_path: Path) -> None:
    first, second, third, fourth = make_log(4)
    broken = second[:-1] + bytes([second[-1] ^ 1])
    write_segment(tmp_path / f"{TOPIC}-3", [first, broken, third, fourth[:-1]])
    rows = read_rows(tmp_path, decode="records")
    assert [(row["offset"], row["problem"]) for row in rows if row["problem"]] == [
        (3, BAD_CRC),
        (9, TRUNCATED),
    ]
    readable = of_partition(3, [0, 1, 2, 6, 7, 8])
    assert places([row for row in rows if not row["problem"]]) == readable
    assert all(str(tmp_path) in row["problem_detail"] for row in rows if row["problem"])
    with pytest.raises(DataLoss, match=r"offset 3: .*failOnDataLoss=false"):
        read_rows(tmp_path)
    assert places(read_rows(tmp_path, failOnDataLoss="false")) == readable


def test_a_foreign_file_is_one_row(tmp_path: Path) -> None:
    folder = tmp_path / f"{TOPIC}-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"not a log at all " * 100)
    rows = read_rows(tmp_path, decode="records")
    assert [(row["partition"], row["offset"], row["problem"]) for row in rows] == [
        (0, 0, TRUNCATED)
    ]


def test_a_file_that_is_gone(log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(log, copy)
    reader = make_reader(copy)
    tasks = reader.partitions()
    shutil.rmtree(copy)
    with pytest.raises(Exception, match="the file no longer exists"):
        list(reader.read(tasks[0]))


@pytest.mark.parametrize("name", ["missing", "empty", "named"])
def test_what_is_no_log_is_said_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "odd.log").touch()
    with pytest.raises(NotALog) as raised:
        read_rows(tmp_path / name)
    assert "\n" not in str(raised.value)
    assert str(tmp_path / name) in str(raised.value)


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatTooNew):
        create_watermark(tmp_path / "watermark", WatermarkHeader(3, "A" * 22, FORMAT_VERSION + 1))
    with pytest.raises(NewerStore) as raised:
        read_rows(tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffset": "earliest"}, "option startingoffset is unknown"),
        ({"startingOffsets": "first"}, "startingOffsets must be earliest, latest or JSON"),
        ({"startingOffsets": "[]"}, "startingOffsets must be earliest, latest or JSON"),
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest"),
        ({"startingOffsets": at(3, -3)}, "startingOffsets must be earliest, latest or JSON"),
        ({"startingOffsets": at(4, 0)}, "partition 4 does not exist"),
        ({"startingOffsets": at(3, 31)}, "partition 3 ends at offset 30, before 31"),
        ({"endingOffsets": at(3, 31)}, "partition 3 ends at offset 30, before 31"),
        ({"endingOffsets": "earliest"}, "endingOffsets must be latest or JSON"),
        ({"endingOffsets": at(3, -2)}, "endingOffsets cannot be earliest"),
        (
            {"startingTimestamp": "yesterday"},
            "startingTimestamp must be a whole number of at least 0",
        ),
        (
            {"maxOffsetsPerTrigger": "0"},
            "maxOffsetsPerTrigger must be a whole number of at least 1",
        ),
        ({"minPartitions": "-1"}, "minPartitions must be a whole number of at least 1"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false"),
        ({"includeHeaders": "1"}, "includeHeaders must be true or false"),
        ({"decode": "json"}, "decode must be raw or records"),
        ({"startingOffsetsByTimestampStrategy": "x"}, "Strategy must be error or latest"),
    ],
)
def test_an_option_that_cannot_be_is_one_line(
    log: Path, options: dict[str, str], says: str
) -> None:
    with pytest.raises((OptionError, DataLoss), match=says) as raised:
        read_rows(log, **options)
    assert "\n" not in str(raised.value)


def test_options_of_the_kafka_source_that_have_no_meaning_here(log: Path) -> None:
    options = {"path": str(log), "kafka.bootstrap.servers": "b:9092", "subscribe": TOPIC}
    assert parse_options(options).path == str(log)
    with pytest.raises(OptionError, match="option path is missing"):
        parse_options({})
