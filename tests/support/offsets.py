"""Committed offsets as stored."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.runtime.offsets.offset_reads import (
    StoredOffset,
    decode_stored_offsets,
    encode_offset_group_prefix,
)
from model.ids import GroupId, LogPartition
from storage.log_store import LogStore


def read_group_offsets(
    store: LogStore, partition: LogPartition, group_id: GroupId
) -> Iterator[StoredOffset]:
    """All offsets of one group, by topic and partition."""
    return decode_stored_offsets(store.latest(partition, encode_offset_group_prefix(group_id)))
