"""Options of a bulk; imports no Spark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """``is_compacted``: write only current records. The other options are those of an import."""

    is_compacted: bool
    partitions: int | None = None
    aborts_open: bool = False
    cuts_torn_tail: bool = False
