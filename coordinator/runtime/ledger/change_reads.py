"""Reads the changes of a group's offsets from the ledger, the last one first."""

from __future__ import annotations

from typing import Final

from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from model.commands.offset_changes import ListOffsetChanges
from model.past.offset_changes import OffsetChange
from model.responses.offset_changes import ListOffsetChangesResponse
from storage.log.trim import read_history_start
from storage.log_store import LogStore
from storage.offset_changes_codec import (
    decode_offset_change,
    encode_change_key,
    encode_changes_prefix,
)

SLICE: Final = 100
"""Changes per event-loop iteration, each in some 10 µs."""
_AFTER_ALL: Final = b"\xff" * 9
"""Behind the log offset of any change."""


def read_offset_changes(
    store: LogStore, shard: Shard, command: ListOffsetChanges
) -> Steps[ListOffsetChangesResponse]:
    """The answer; without changes whose past is gone. Raises ``StoreError`` and ``CodecError``."""
    prefix, before = encode_changes_prefix(command.group_id), command.before
    end = prefix + _AFTER_ALL if before is None else encode_change_key(command.group_id, before)
    start = read_history_start(store, shard.partition)
    found: list[OffsetChange] = []
    for number, (key, packed) in enumerate(store.causes_before(end, prefix), 1):
        change = decode_offset_change(key, packed)
        if change.first < start.offset:
            break
        if len(found) >= command.limit:
            return ListOffsetChangesResponse(tuple(found), True, start.before_ms)
        found.append(change)
        if number % SLICE == 0:
            yield
    return ListOffsetChangesResponse(tuple(found), since_ms=start.before_ms)
