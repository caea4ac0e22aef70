"""The columns of the history tables, as Arrow schemas.

Every row has the ``log_partition`` and ``offset`` of its record, which identify it: every run gives
the same rows. ``ts`` is the record's timestamp.
"""

from __future__ import annotations

import pyarrow as pa

from pipeline.schema import TIMESTAMP

GROUP_EPOCHS = "group_epochs"
MEMBER_EPOCHS = "member_epochs"
TARGET_ASSIGNMENTS = "target_assignments"
PARTITION_OWNERSHIP = "partition_ownership"
REBALANCES = "rebalances"
CLASSIC_GENERATIONS = "classic_generations"
MIGRATIONS = "migrations"

_ASSIGNMENT = pa.list_(pa.struct([("topic_id", pa.string()), ("partitions", pa.list_(pa.int32()))]))
_HELD = pa.list_(
    pa.struct(
        [
            ("topic_id", pa.string()),
            ("partitions", pa.list_(pa.int32())),
            ("assignment_epochs", pa.list_(pa.int32())),
        ]
    )
)
_CLASSIC_MEMBERS = pa.list_(
    pa.struct(
        [
            ("member_id", pa.string()),
            ("instance_id", pa.string()),
            ("client_id", pa.string()),
            ("client_host", pa.string()),
            ("topics", pa.list_(pa.string())),
            (
                "assigned",
                pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))])),
            ),
        ]
    )
)


def _table(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    place = [("log_partition", pa.int32()), ("offset", pa.int64()), ("ts", TIMESTAMP)]
    return pa.schema([("group_id", pa.string()), *columns, *place])


HISTORY_TABLES: dict[str, pa.Schema] = {
    GROUP_EPOCHS: _table(
        ("group_epoch", pa.int32()),  # null if the group is deleted
        ("metadata_hash", pa.int64()),
    ),
    MEMBER_EPOCHS: _table(
        ("member_id", pa.string()),
        ("member_epoch", pa.int32()),  # null if the member is gone, like the rest
        ("previous_member_epoch", pa.int32()),
        ("state", pa.string()),
        ("assigned", _HELD),
        ("pending_revocation", _HELD),
    ),
    TARGET_ASSIGNMENTS: _table(
        ("member_id", pa.string()),
        ("assignment_epoch", pa.int32()),  # null if unknown
        ("assigned", _ASSIGNMENT),  # null if removed from the target
    ),
    PARTITION_OWNERSHIP: _table(
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("member_id", pa.string()),
        ("assignment_epoch", pa.int32()),  # or the generation of a classic group
        ("valid_from", TIMESTAMP),
        ("valid_to", TIMESTAMP),  # null while it lasts
        ("from_write", pa.int64()),  # base offsets of the first and last batch
        ("to_write", pa.int64()),
        ("to_offset", pa.int64()),
    ),
    REBALANCES: _table(
        ("protocol", pa.string()),  # consumer or classic
        ("from_epoch", pa.int32()),
        ("to_epoch", pa.int32()),
        ("started_at", TIMESTAMP),
        ("converged_at", TIMESTAMP),
        ("duration_ms", pa.int64()),
        ("members_moved", pa.int32()),
        ("partitions_moved", pa.int32()),
        ("cause", pa.string()),
        ("cause_member_id", pa.string()),
    ),
    CLASSIC_GENERATIONS: _table(
        ("generation", pa.int32()),  # null if the group is deleted, like the rest
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        ("leader", pa.string()),
        ("state_since", TIMESTAMP),
        ("members", _CLASSIC_MEMBERS),
    ),
    MIGRATIONS: _table(
        ("direction", pa.string()),  # upgrade or downgrade
        ("from_epoch", pa.int32()),
        ("to_epoch", pa.int32()),
        ("members", pa.int32()),
        ("is_online", pa.bool_()),
    ),
}
