"""The rows of an audit's findings."""

from __future__ import annotations

import pyarrow as pa

from pipeline.schema import TIMESTAMP
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import LoggedRecord

VIOLATIONS = "violations"
DELETIONS = "deletions"

_PLACE = [
    ("group_id", pa.string()),
    ("log_partition", pa.int32()),
    ("offset", pa.int64()),
    ("ts", TIMESTAMP),
]

AUDIT_TABLES: dict[str, pa.Schema] = {
    VIOLATIONS: pa.schema([("rule", pa.string()), ("detail", pa.string()), *_PLACE]),
    DELETIONS: pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("explanation", pa.string()),
            *_PLACE,
        ]
    ),
}

EXPIRED = "expired"
"""The retention time had passed."""
GROUP_DELETED = "group_deleted"
TOPIC_GONE = "topic_gone"
"""All the group's offsets of the topic were deleted, as by a deletion of the topic."""
UNEXPLAINED = "unexplained"
"""Possibly by a request, which leaves no record."""


def add_violation(rows: Rows, rule: str, at: LoggedRecord, detail: str) -> None:
    """Add a record that violates an invariant of docs/pipeline.md."""
    rows.add(VIOLATIONS, at, rule=rule, detail=detail)
