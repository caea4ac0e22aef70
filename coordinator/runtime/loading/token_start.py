"""The time that the fencing tokens of a start begin at. See ``coordinator.core.state.tokens``."""

from __future__ import annotations

from coordinator.runtime.clock import SteadyClock
from model.log.side_records import SideRecord, TokenStartKey, TokenStartValue
from storage.log_store import LogStore
from storage.side_codec import encode_side


def write_token_start(store: LogStore, clock: SteadyClock, last_ms: int) -> int:
    """Make the wall time (ms) that tokens begin at durable, and return it.

    ``last_ms`` is that of the start before. Members that own partitions get the first token without
    a record in the log, so the log does not show this time: a clock set back before the next start
    would give them a lower token, and guarded stores would refuse them. Raises ``StoreStalled`` if
    nothing was written.
    """
    wall_ms = max(clock.now().wall_ms, last_ms)
    store.write((), [encode_side(SideRecord(TokenStartKey(), TokenStartValue(wall_ms)))])
    store.sync()
    return wall_ms
