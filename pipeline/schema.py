"""The columns that the pipeline reads and creates, as Arrow schemas; ``source`` converts them.

``RAW`` is the schema of Spark's Kafka source, so that code written for it also runs on a log. A row
of ``RECORDS`` is one record of the log with all its fields.
"""

from __future__ import annotations

import pyarrow as pa

TOPIC = "__consumer_offsets"
TIMESTAMP = pa.timestamp("us", tz="UTC")
"""Kafka's milliseconds; null outside the years 1 to 9999, which are Spark's limits."""

HEADERS = pa.list_(
    pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
)

RAW = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32()),
    ]
)

RAW_WITH_HEADERS = RAW.append(pa.field("headers", HEADERS))
"""``RAW`` with the option ``includeHeaders``; null if a record has none."""

RECORDS = pa.schema(
    [
        # The record's position. (partition, offset) is unique except for rows with a problem.
        pa.field("partition", pa.int32(), nullable=False),  # of the log, not of a topic
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestamp_type", pa.int32()),  # 0: create time, 1: log append time
        # Fields of its batch.
        pa.field("base_offset", pa.int64()),
        pa.field("partition_leader_epoch", pa.int32()),
        pa.field("compression", pa.string()),  # none, gzip, snappy, lz4, zstd
        pa.field("producer_id", pa.int64()),  # -1 for none
        pa.field("producer_epoch", pa.int32()),
        pa.field("is_transactional", pa.bool_()),
        pa.field("is_control", pa.bool_()),
        # Its bytes.
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        # Its type. record_type is Kafka's name, control:COMMIT, control:ABORT, or null for an
        # unknown type; type_id is null for markers.
        pa.field("type_id", pa.int32()),
        pa.field("record_type", pa.string()),
        pa.field("value_version", pa.int32()),  # null for tombstones and markers
        pa.field("is_tombstone", pa.bool_()),
        pa.field("group_id", pa.string()),
        pa.field("member_id", pa.string()),  # for types with a member in the key
        # Fields of offset commits (types 0 and 1) from the key, also of tombstones.
        pa.field("topic", pa.string()),
        pa.field("topic_partition", pa.int32()),
        # Fields of offset commits from the value.
        pa.field("committed_offset", pa.int64()),
        pa.field("leader_epoch", pa.int32()),  # null for none
        pa.field("metadata", pa.string()),
        pa.field("commit_timestamp", TIMESTAMP),
        pa.field("expire_timestamp", TIMESTAMP),  # only version 1 has one
        pa.field("topic_id", pa.string()),  # Kafka's 22 characters; null where the value has none
        # Kafka's JSON of every other type, and of the few commits with fields without a column.
        pa.field("key_json", pa.string()),
        pa.field("value_json", pa.string()),
        # What is wrong, as a word and as a line; null if nothing is. See below.
        pa.field("problem", pa.string()),
        pa.field("problem_detail", pa.string()),
    ]
)

UNREADABLE_BATCH = "unreadable_batch"
BAD_CRC = "bad_crc"
TRUNCATED = "truncated"
DATA_LOSS = "data_loss"
UNKNOWN_TYPE = "unknown_type"
UNKNOWN_VERSION = "unknown_version"
BAD_KEY = "bad_key"
BAD_VALUE = "bad_value"

BATCH_PROBLEMS = (BAD_CRC, TRUNCATED, UNREADABLE_BATCH)
"""The row stands for unreadable bytes.

Its ``offset`` is the first missing one, and ``value`` has the bytes, cut at 64 KiB.
"""

STREAM_PROBLEMS = (DATA_LOSS,)
"""The row stands for records that a stream can no longer read, or should not have read, because
the log was cut, trimmed or replaced. Its ``offset`` is where the stream continues."""

RECORD_PROBLEMS = (UNKNOWN_TYPE, UNKNOWN_VERSION, BAD_KEY, BAD_VALUE)
"""The row is one record, with its key and value as bytes."""
