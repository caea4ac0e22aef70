"""Conversion of a ``PartitionRewrite``, and of changes to ``pending``, to a RocksDB write batch."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from storage.log_store import Change, PartitionRewrite, pack_pending_key, read_batch_range

_OFFSET = struct.Struct(">Q")


def put_rewrite(
    batch: Any, prefix: bytes, families: Mapping[str, Any], rewrite: PartitionRewrite
) -> None:
    """Add a rewrite of the partition with this key prefix to a RocksDB ``WriteBatch``."""
    log, kept = families["log"], families["kept"]
    for offset in rewrite.removed:
        batch.delete(prefix + _OFFSET.pack(offset), log)
    for data in rewrite.batches:
        base_offset, _ = read_batch_range(data)
        batch.put(prefix + _OFFSET.pack(base_offset), data, log)
    for key, value in rewrite.kept.items():
        if value is None:
            batch.delete(prefix + key, kept)
        else:
            batch.put(prefix + key, value, kept)


def put_changes(batch: Any, family: Any, changes: Sequence[Change]) -> None:
    """Add changes of keys of a family to a RocksDB ``WriteBatch``."""
    for key, value in changes:
        if value is None:
            batch.delete(key, family)
        else:
            batch.put(key, value, family)


def put_pending(
    batch: Any, prefix: bytes, family: Any, pending: Mapping[tuple[int, bytes], bytes | None]
) -> None:
    """Add changes to ``pending`` of the partition with this key prefix to a ``WriteBatch``."""
    for (producer_id, key), packed in pending.items():
        pending_key = prefix + pack_pending_key(producer_id, key)
        if packed is None:
            batch.delete(pending_key, family)
        else:
            batch.put(pending_key, packed, family)
