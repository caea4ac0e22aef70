"""Rows of Spark's Kafka source give the same records as segments."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.decoding.kafka_rows import KAFKA_COLUMNS, decode_kafka_rows
from pipeline.schema import RECORDS
from tests.pipeline.logged import golden_table

_OF_BATCHES = {
    *("base_offset", "partition_leader_epoch", "compression"),
    *("producer_id", "producer_epoch", "is_transactional"),
}
NAMES = {"partition": "partition", "timestampType": "timestamp_type"}


def read_rows() -> tuple[pa.Table, pa.RecordBatch]:
    """All records of Kafka's log that a consumer sees, and the same in Kafka source's rows."""
    table = golden_table().filter(pc.invert(golden_table().column("is_control")))
    columns = [table.column(NAMES.get(name, name)) for name in KAFKA_COLUMNS]
    (batch,) = pa.table(columns, list(KAFKA_COLUMNS)).combine_chunks().to_batches()
    return table, batch


@pytest.mark.parametrize("start", [0, 3])
def test_they_are_the_records_of_segments_but_for_what_batches_say(start: int) -> None:
    table, batch = read_rows()
    found = pa.Table.from_batches(decode_kafka_rows(batch.slice(start)), RECORDS)
    names = [name for name in RECORDS.names if name not in _OF_BATCHES]
    order = [("partition", "ascending"), ("offset", "ascending")]
    wanted = table.slice(start).select(names).sort_by(order)
    assert found.select(names).sort_by(order).equals(wanted)
    assert found.num_rows > 5_000
    assert set(found.column("producer_id").to_pylist()) == {-1}
    assert found.column("compression").null_count == found.num_rows


def test_what_is_wrong_is_told_of_them_too() -> None:
    arrays = [
        pa.array([b"\x00\x63", None, b"\x00\x02\x00\x01g"], pa.binary()),
        pa.array([b"", None, None], pa.binary()),
        pa.array([7, 7, 7], pa.int32()),
        pa.array([1, 2, 3], pa.int64()),
        pa.array([0, 0, 0], pa.timestamp("us", tz="UTC")),
        pa.array([0, 1, 0], pa.int32()),
    ]
    (found,) = decode_kafka_rows(pa.RecordBatch.from_arrays(arrays, list(KAFKA_COLUMNS)))
    rows = found.to_pylist()
    assert [row["problem"] for row in rows] == ["unknown_type", "bad_key", None]
    assert [(row["partition"], row["timestamp_type"]) for row in rows] == [(7, 0), (7, 1), (7, 0)]
    assert (rows[2]["group_id"], rows[2]["is_tombstone"]) == ("g", True)
