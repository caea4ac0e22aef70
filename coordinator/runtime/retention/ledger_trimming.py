"""Drops entries of the ledger once the history of their time is gone.

The last rebalances of a group are kept as long as the group is: a group that is quiet for a week
can still say why it last rebalanced. A change of offsets goes with the history that undoes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from model.ids import GroupId, LogOffset, LogPartition, compute_log_partition
from storage.causes_codec import decode_causes_key
from storage.codec.errors import CodecError
from storage.log.trim import read_history_start
from storage.log_store import Change, LogStore
from storage.offset_changes_codec import CHANGES_PREFIX, decode_change_key

KEPT_MIN: Final = 100
"""So many of a group stay, however old they are."""
KEPT_MAX: Final = 10_000
"""No group has more: one whose members come and go all the time has an entry in each write."""
CHANGES_MAX: Final = 1_000
"""No group has more changes of offsets."""
SLICE: Final = 500
"""Entries per event-loop iteration."""
LOOKS_MIN: Final = 1_000
"""Entries looked at in one go, if there are so many: a large ledger is gone round in many."""
LOOKS_PER_WRITE: Final = 4
"""More for each entry written since: in a round a ledger thus grows by a quarter at most."""


class LedgerTrimming:
    """Enforces the limits. ``oldest_ms`` is since when the log partition has its history.

    ``written`` counts the entries written so far.
    """

    def __init__(
        self,
        store: LogStore,
        history_ms: int,
        *,
        oldest_ms: Callable[[LogPartition], int | None],
        exists: Callable[[GroupId], bool],
        written: Callable[[], int],
    ) -> None:
        self._store = store
        self._history_ms = history_ms
        self._oldest_ms = oldest_ms
        self._exists = exists
        self._written = written
        self._counted = 0
        self._now_ms = 0
        self._round: Iterator[int] | None = None

    def trim(self, now_ms: int) -> Iterator[int]:
        """Go on with the round, to its end at most. Yields how many entries were looked at.

        Raises ``StoreError``; the next round then begins anew.
        """
        self._now_ms = now_ms
        written, before = self._written(), self._counted
        self._counted = written
        left = max(LOOKS_MIN, LOOKS_PER_WRITE * (written - before))
        going, self._round = self._round or self._go_round(), None
        for looked in going:
            yield looked
            left -= looked
            if left <= 0:
                self._round = going
                return

    def _go_round(self) -> Iterator[int]:
        start = b""
        group_id: GroupId | None = None
        kept: deque[tuple[bytes, int]] = deque()
        changes = _KeptChanges(self._store)
        while keys := [key for key, _ in islice(self._store.causes(start), SLICE)]:
            gone: list[Change] = []
            for key in keys:
                if key.startswith(CHANGES_PREFIX):
                    gone += changes.look(key)
                    continue
                try:
                    of_group, at_ms, _ = decode_causes_key(key)
                except CodecError:
                    continue  # `muster log verify` tells of it.
                if of_group != group_id:
                    gone += self._end_group(group_id, kept)
                    group_id = of_group
                kept.append((key, at_ms))
                if len(kept) > KEPT_MAX:
                    gone.append((kept.popleft()[0], None))
            self._drop(gone)
            start = keys[-1] + b"\0"
            yield len(keys)
        self._drop(self._end_group(group_id, kept))

    def _end_group(self, group_id: GroupId | None, kept: deque[tuple[bytes, int]]) -> list[Change]:
        """The entries of the group that go; ``kept`` is emptied."""
        if group_id is None:
            return []
        partition = compute_log_partition(group_id, self._store.partitions)
        horizon_ms = max(self._now_ms - self._history_ms, self._oldest_ms(partition) or 0)
        least = KEPT_MIN if self._exists(group_id) else 0
        gone: list[Change] = []
        while len(kept) > least and kept[0][1] < horizon_ms:
            gone.append((kept.popleft()[0], None))
        kept.clear()
        return gone

    def _drop(self, gone: list[Change]) -> None:
        if gone:
            self._store.write([], (), gone)


class _KeptChanges:
    """The changes of offsets that stay of the group that is looked at."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._group_id: GroupId | None = None
        self._start = LogOffset(0)
        self._kept: deque[bytes] = deque()

    def look(self, key: bytes) -> list[Change]:
        """The changes that go; keys are looked at in their order."""
        try:
            group_id, first = decode_change_key(key)
        except CodecError:
            return []  # `muster log verify` tells of it.
        if group_id != self._group_id:
            self._group_id, self._kept = group_id, deque()
            partition = compute_log_partition(group_id, self._store.partitions)
            self._start = read_history_start(self._store, partition).offset
        if first < self._start:
            return [(key, None)]
        self._kept.append(key)
        return [(self._kept.popleft(), None)] if len(self._kept) > CHANGES_MAX else []
