"""The time that the fencing tokens of a start begin at. See ``coordinator.core.state.tokens``."""

from __future__ import annotations

from coordinator.runtime.clock import SteadyClock
from model.log.side_records import SideRecord, TokenStartKey, TokenStartValue
from storage.log_store import LogStore
from storage.side_codec import encode_side


class TokenStart:
    """The wall time (ms) that tokens begin at; ``last_ms`` is that of the start before.

    It is stored before the first token is given. Members that own partitions get that one without a
    record in the log, so the log does not show its time: a clock set back before the next start
    would give them a lower token, and guarded stores would refuse them.
    """

    def __init__(self, store: LogStore, clock: SteadyClock, last_ms: int) -> None:
        self._store = store
        self._clock = clock
        self._last_ms = last_ms
        self._wall_ms: int | None = None

    @property
    def wall_ms(self) -> int:
        """The time; ``write`` must have returned."""
        assert self._wall_ms is not None
        return self._wall_ms

    @property
    def is_written(self) -> bool:
        """Whether the time is durable."""
        return self._wall_ms is not None

    def write(self) -> None:
        """Make the time durable, if it is not. Raises ``StoreStalled`` if nothing was written."""
        if self._wall_ms is None:
            wall_ms = max(self._clock.now().wall_ms, self._last_ms)
            record = SideRecord(TokenStartKey(), TokenStartValue(wall_ms))
            self._store.write((), [encode_side(record)])
            self._store.sync()
            self._wall_ms = wall_ms
