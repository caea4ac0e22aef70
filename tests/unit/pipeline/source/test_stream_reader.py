"""Micro-batches as Spark requests them, without Spark: offsets, limits, growing stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pipeline.schema import DATA_LOSS, RECORDS, TOPIC
from pipeline.source.errors import DataLoss, OptionError
from pipeline.source.offset_ranges import limit_offsets
from pipeline.source.options import parse_options
from pipeline.source.stream_reader import GroupLogStreamReader
from storage.rocks.rocks_opening import open_store
from tests.support.storage.appends import append, mark_all, offset_key, offset_value

ALL = ReadAllAvailable()
_readers: list[GroupLogStreamReader] = []


@pytest.fixture(autouse=True)
def stop_readers() -> Iterator[None]:
    yield
    while _readers:
        _readers.pop().stop()


def make_reader(path: Path, **options: str) -> GroupLogStreamReader:
    parsed = parse_options({"path": str(path), "decode": "records", **options})
    reader = GroupLogStreamReader(parsed, RECORDS)
    _readers.append(reader)
    return reader


def write(store: Any, partition: int, count: int) -> None:
    for number in range(count):
        append(store, {partition: [(offset_key("g", number), offset_value(number))]})
    mark_all(store)


def at(*offsets: int) -> dict[str, dict[str, int]]:
    return {TOPIC: {str(partition): offset for partition, offset in enumerate(offsets)}}


def where(offset: Any) -> Any:
    """The offsets alone."""
    return {TOPIC: offset[TOPIC]}


def read(reader: GroupLogStreamReader, start: Any, end: Any) -> list[tuple[int, int]]:
    return sorted(
        (row["partition"], row["offset"])
        for task in reader.partitions(start, end)
        for rows in reader.read(task)
        for row in rows.to_pylist()
    )


def test_a_store_that_grows(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=2)
    write(store, 0, 3)
    reader = make_reader(tmp_path)
    assert where(reader.initialOffset()) == at(3, 0)
    earliest = make_reader(tmp_path, startingOffsets="earliest")
    assert where(earliest.initialOffset()) == at(0, 0)
    write(store, 0, 2)
    write(store, 1, 4)
    append(store, {1: [(offset_key("g"), offset_value(9))]})
    end = reader.latestOffset(at(3, 0), ALL)
    assert where(end) == reader.reportLatestOffset() == at(5, 4)
    write(store, 0, 5)
    assert read(reader, at(3, 0), end) == [(0, 3), (0, 4), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert read(make_reader(tmp_path), at(3, 0), end) == read(reader, at(3, 0), end)
    assert list(reader.partitions(end, end)) == []
    store.close()


def test_available_now_goes_up_to_what_there_was(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=2)
    write(store, 0, 3)
    reader = make_reader(tmp_path)
    reader.prepareForTriggerAvailableNow()
    write(store, 0, 3)
    assert where(reader.latestOffset(at(0, 0), ALL)) == at(3, 0)
    assert where(reader.latestOffset(at(0, 0), ReadMaxRows(2))) == at(2, 0)
    assert where(reader.latestOffset(at(3, 0), ALL)) == at(3, 0)
    store.close()


def test_the_limit_is_an_option(tmp_path: Path) -> None:
    open_store(tmp_path, partitions=2).close()
    assert make_reader(tmp_path).getDefaultReadLimit() == ALL
    limited = make_reader(tmp_path, maxOffsetsPerTrigger="5")
    assert limited.getDefaultReadLimit() == ReadMaxRows(5)


def test_limits_are_shared_by_what_waits() -> None:
    starts = {1: 10, 2: 0, 3: 5}
    ends = {1: 110, 2: 10, 3: 5}
    assert limit_offsets(starts, ends, 200) == ends
    assert limit_offsets(starts, ends, 11) == {1: 20, 2: 1, 3: 5}
    # No partition starves: with a limit too small for all, each advances by one.
    assert limit_offsets(starts, ends, 1) == {1: 11, 2: 1, 3: 5}


def test_what_is_lost(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=2)
    write(store, 0, 3)
    store.close()
    with pytest.raises(DataLoss, match="partition 0 ends at offset 3, before 4"):
        make_reader(tmp_path).latestOffset(at(4, 0), ALL)
    with pytest.raises(DataLoss, match="partition 2 is gone"):
        make_reader(tmp_path).latestOffset(at(3, 0, 7), ALL)
    lenient = make_reader(tmp_path, failOnDataLoss="false")
    end = lenient.latestOffset(at(4, 0, 7), ALL)
    assert where(end) == at(3, 0)
    (task,) = lenient.partitions(at(4, 0, 7), end)
    rows = [row for batch in lenient.read(task) for row in batch.to_pylist()]
    assert [(row["partition"], row["offset"], row["problem"]) for row in rows] == [
        (0, 3, DATA_LOSS),
        (2, 0, DATA_LOSS),
    ]
    assert lenient.latestOffset(end, ALL) == end


def test_an_end_is_for_batch_queries(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="endingOffsets is only for batch queries"):
        make_reader(tmp_path, endingOffsets="latest")
