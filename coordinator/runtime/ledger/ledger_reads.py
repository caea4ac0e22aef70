"""Reads the rebalances of a group from the ledger, the last one first."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import structlog

from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import Steps
from coordinator.runtime.ledger.rebalance_ledger import RebalanceLedger
from model.commands.explain import ExplainRebalances
from model.errors import GroupIdNotFound
from model.ids import GroupId
from model.past.rebalances import EndedRebalance, Ending, Rebalance, UnreadableRebalance
from model.responses.explain import ExplainGroupResponse
from storage.causes_codec import (
    decode_causes_key,
    decode_rebalance,
    encode_causes_key,
    encode_causes_prefix,
)
from storage.codec.errors import CodecError
from storage.log_store import LogStore, StoreError

log = structlog.get_logger()

SLICE: Final = 100
"""Rebalances per event-loop iteration, each in some 20 µs."""
_AFTER_ALL: Final = b"\xff" * 13
"""Behind the time and the epoch of any rebalance."""


def read_rebalances(
    store: LogStore, ledger: RebalanceLedger, shard: Shard, command: ExplainRebalances
) -> Steps[ExplainGroupResponse | GroupIdNotFound]:
    """The answer. Raises ``StoreError``, and ``CodecError`` for a key that cannot be read."""
    group_id, before = command.group_id, command.before
    prefix = encode_causes_prefix(group_id)
    end = prefix + _AFTER_ALL if before is None else encode_causes_key(group_id, *before)
    if not _has_any(store, prefix) and not shard.holds_group(group_id):
        return GroupIdNotFound(f"Group {group_id} not found.")
    current = ledger.find_current(shard, group_id)
    later_ms = _find_later_ms(store, end, prefix)
    found: list[EndedRebalance | UnreadableRebalance] = []
    if current is not None and current.is_classic and later_ms is None:
        # Its entry is made at its end.
        later_ms = current.at_ms
        if before is None or (current.at_ms, current.epoch) < before:
            found.append(EndedRebalance(current, Ending.GOES_ON))
    for number, (key, packed) in enumerate(store.causes_before(end, prefix), 1):
        _, at_ms, epoch = decode_causes_key(key)
        if at_ms < command.since_ms:
            break
        if len(found) >= command.limit:
            return ExplainGroupResponse(group_id, tuple(found), has_more=True)
        try:
            found.append(_compute_ending(decode_rebalance(key, packed), later_ms, current))
        except CodecError as error:
            # The others can be told all the same.
            log.warning("rebalance_unreadable", group_id=group_id, cause=str(error))
            found.append(UnreadableRebalance(at_ms, epoch))
        later_ms = at_ms
        if number % SLICE == 0:
            yield
    return ExplainGroupResponse(group_id, tuple(found))


def _compute_ending(
    rebalance: Rebalance, later_ms: int | None, current: Rebalance | None
) -> EndedRebalance:
    if rebalance.converged_ms is not None:
        return EndedRebalance(rebalance, Ending.CONVERGED, rebalance.converged_ms)
    if later_ms is not None:
        return EndedRebalance(rebalance, Ending.OVERTAKEN, later_ms)
    if current is not None and current.epoch == rebalance.epoch:
        return EndedRebalance(replace(rebalance, held_up=current.held_up), Ending.GOES_ON)
    return EndedRebalance(rebalance, Ending.UNKNOWN)


def _find_later_ms(store: LogStore, start: bytes, prefix: bytes) -> int | None:
    """When the first rebalance from the key on began."""
    key, _ = next(store.causes(start), (b"", b""))
    return decode_causes_key(key)[1] if key.startswith(prefix) else None


def find_last_ms(store: LogStore, group_id: GroupId) -> int | None:
    """When the last rebalance of the group in the store began; ``None`` if none can be read."""
    prefix = encode_causes_prefix(group_id)
    try:
        key, _ = next(store.causes_before(prefix + _AFTER_ALL, prefix), (b"", b""))
        return decode_causes_key(key)[1] if key else None
    except (StoreError, CodecError):
        # Whoever asks for the ledger is told.
        return None


def _has_any(store: LogStore, prefix: bytes) -> bool:
    key, _ = next(store.causes(prefix), (b"", b""))
    return key.startswith(prefix)
