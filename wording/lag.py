"""What an answer with committed offsets says of lag."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.v1 import types_pb2


def compute_lag(row: types_pb2.CommittedOffset) -> int | None:
    """How many records are left to read; ``None`` without a commit or a known end.

    It is never negative, though the end may be an older one.
    """
    if not row.HasField("offset") or not row.HasField("end_offset"):
        return None
    return max(row.end_offset - row.offset, 0)
