"""Watches that let a Fetch wait until enough records are appended (Kafka's fetch purgatory).

Many fetches may wait for one partition, and one fetch for many partitions. So callbacks run in
later event-loop iterations, a few in each, and a watch of many partitions is not indexed under each
of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

from gateway.topics.topic_catalogue import PartitionKey

WIDE_KEYS: Final = 200
"""A watch of more partitions is not indexed by partition, but checked on every append."""
WAKE_KEYS: Final = 500
"""One iteration calls due watches of this many partitions in all."""


class _Watch:
    __slots__ = ("_watches", "is_due", "is_over", "keys", "missing_bytes", "on_data")

    def __init__(
        self,
        watches: DataWatches,
        keys: Collection[PartitionKey],
        min_bytes: int,
        on_data: Callable[[], None],
    ) -> None:
        self._watches = watches
        self.keys = keys
        self.missing_bytes = min_bytes
        self.on_data = on_data
        self.is_due = False
        self.is_over = False

    @property
    def is_wide(self) -> bool:
        return len(self.keys) > WIDE_KEYS

    def end(self) -> None:
        self._watches.end(self)

    def cancel(self) -> None:
        self._watches.remove(self)


class DataWatches:
    """The watches by partition; each is called once. ``call_soon`` defers to a later iteration."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._by_key: dict[PartitionKey, dict[_Watch, None]] = {}
        self._wide: dict[_Watch, None] = {}
        self._due: deque[_Watch] = deque()

    def __len__(self) -> int:
        narrow = {watch for watches in self._by_key.values() for watch in watches}
        return len(narrow) + len(self._wide)

    def add(
        self, keys: Collection[PartitionKey], min_bytes: int, on_data: Callable[[], None]
    ) -> _Watch:
        """Call ``on_data`` once ``min_bytes`` are appended or a partition is deleted.

        ``keys`` needs fast membership tests: a set, or the keys of a ``dict``.
        """
        watch = _Watch(self, keys, min_bytes, on_data)
        if watch.is_wide:
            self._wide[watch] = None
        else:
            for key in keys:
                self._by_key.setdefault(key, {})[watch] = None
        return watch

    def on_append(self, key: PartitionKey, size: int) -> None:
        """Count bytes appended to a partition; schedule the watches that now have enough."""
        for watch in self._by_key.get(key, ()):
            self._count(watch, size)
        for watch in self._wide:
            if key in watch.keys:
                self._count(watch, size)

    def on_gone(self, keys: Iterable[PartitionKey]) -> None:
        """Schedule the watches of deleted partitions.

        All wide watches are scheduled, whatever they watch: they just read again.
        """
        for key in keys:
            for watch in self._by_key.get(key, ()):
                self.end(watch)
        for watch in self._wide:
            self.end(watch)

    def watched(self) -> list[PartitionKey]:
        """The watched partitions, except those of wide watches."""
        return list(self._by_key)

    def end(self, watch: _Watch) -> None:
        """Schedule a watch's callback, unless it is scheduled already or over."""
        if watch.is_due or watch.is_over:
            return
        watch.is_due = True
        self._due.append(watch)
        if len(self._due) == 1:
            self._call_soon(self._wake)

    def remove(self, watch: _Watch) -> None:
        """Remove a watch; no effect after its callback ran."""
        if watch.is_over:
            return
        watch.is_over = True
        if watch.is_wide:
            del self._wide[watch]
            return
        for key in watch.keys:
            watches = self._by_key[key]
            del watches[watch]
            if not watches:
                del self._by_key[key]

    def _count(self, watch: _Watch, size: int) -> None:
        watch.missing_bytes -= size
        if watch.missing_bytes <= 0:
            self.end(watch)

    def _wake(self) -> None:
        """Call the due watches, as many as one iteration may."""
        left = WAKE_KEYS
        while self._due and left > 0:
            watch = self._due.popleft()
            if watch.is_over:
                left -= 1
                continue
            left -= min(len(watch.keys), WIDE_KEYS)
            self.remove(watch)
            watch.on_data()
        if self._due:
            self._call_soon(self._wake)
