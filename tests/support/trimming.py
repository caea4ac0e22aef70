"""Trims a log in one step."""

from __future__ import annotations

from model.ids import LogPartition
from storage.log.trim import compute_plan, compute_rewrite, decode_old, read_old
from storage.log_store import LogStore


def trim_once(
    store: LogStore, partition: LogPartition, limit: int, bytes_max: int = 1 << 20
) -> bool:
    """Trim one step at once, whatever the batches' age; whether there was anything to trim."""
    old = read_old(store, partition, limit, bytes_max, lambda batch: True)
    if old:
        store.rewrite(compute_rewrite(compute_plan(store, partition, decode_old(old))))
    return bool(old)
