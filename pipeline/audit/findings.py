"""What an audit finds, as rows."""

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
"""The retention time was over."""
GROUP_DELETED = "group_deleted"
TOPIC_GONE = "topic_gone"
"""With all the group's offsets of its topic, as when the topic is deleted."""
UNEXPLAINED = "unexplained"
"""A request may have deleted it, of which no record tells."""


def add_violation(rows: Rows, rule: str, at: LoggedRecord, detail: str) -> None:
    """A record that breaks an invariant of docs/pipeline.md."""
    rows.add(VIOLATIONS, at, rule=rule, detail=detail)
