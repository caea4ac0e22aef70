"""The columns that the pipeline reads and makes, as Arrow schemas; ``source`` gives them to Spark.

``RAW`` is the schema of Spark's Kafka source, so that what was written for it runs on a log. A row
of ``RECORDS`` is one record of the log with all that its bytes say.
"""

from __future__ import annotations

import pyarrow as pa

TOPIC = "__consumer_offsets"
TIMESTAMP = pa.timestamp("us", tz="UTC")
"""Kafka's milliseconds; null where they are outside the years 1 to 9999, which Spark can have."""

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
"""``RAW`` with the option ``includeHeaders``; null where a record has none."""

RECORDS = pa.schema(
    [
        # Where the record is. (partition, offset) is unique but for rows with a problem.
        pa.field("partition", pa.int32(), nullable=False),  # of the log, not of a topic
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestamp_type", pa.int32()),  # 0 when it was created, 1 when appended
        # What its batch says.
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
        # What it is. record_type is Kafka's name, control:COMMIT, control:ABORT, or null for a
        # type that is not known; type_id is null for markers.
        pa.field("type_id", pa.int32()),
        pa.field("record_type", pa.string()),
        pa.field("value_version", pa.int32()),  # null for tombstones and markers
        pa.field("is_tombstone", pa.bool_()),
        pa.field("group_id", pa.string()),
        pa.field("member_id", pa.string()),  # of the types that have one in their key
        # Offset commits (types 0 and 1), from the key; a tombstone has these three too.
        pa.field("topic", pa.string()),
        pa.field("topic_partition", pa.int32()),
        # Offset commits, from the value.
        pa.field("committed_offset", pa.int64()),
        pa.field("leader_epoch", pa.int32()),  # null for none
        pa.field("metadata", pa.string()),
        pa.field("commit_timestamp", TIMESTAMP),
        pa.field("expire_timestamp", TIMESTAMP),  # only version 1 has one
        pa.field("topic_id", pa.string()),  # Kafka's 22 characters; null where the value has none
        # Kafka's JSON of every other type, and of the few commits with fields that no column has.
        pa.field("key_json", pa.string()),
        pa.field("value_json", pa.string()),
        # What is wrong, one word and one line; null for nothing. See below.
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
"""The row stands for bytes of which no record can be read.

Its ``offset`` is the first that is missing, and ``value`` the bytes, cut at 64 KiB.
"""

STREAM_PROBLEMS = (DATA_LOSS,)
"""The row stands for what a stream can no longer read, or should not have read: its log was cut,
trimmed or replaced. Its ``offset`` is the one at which the stream goes on.
"""

RECORD_PROBLEMS = (UNKNOWN_TYPE, UNKNOWN_VERSION, BAD_KEY, BAD_VALUE)
"""The row is one record, whose key and value are there as bytes."""
