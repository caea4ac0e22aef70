"""Waiting for records: what a Fetch that found too little does until more is appended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gateway.topics.topic_catalogue import PartitionKey


class _Watch:
    __slots__ = ("_watches", "keys", "missing_bytes", "on_data")

    def __init__(
        self,
        watches: DataWatches,
        keys: Sequence[PartitionKey],
        min_bytes: int,
        on_data: Callable[[], None],
    ) -> None:
        self._watches = watches
        self.keys = keys
        self.missing_bytes = min_bytes
        self.on_data = on_data

    def cancel(self) -> None:
        self._watches.remove(self)


class DataWatches:
    """Watches by partition; each is called once."""

    def __init__(self) -> None:
        self._by_key: dict[PartitionKey, dict[_Watch, None]] = {}

    def __len__(self) -> int:
        return len({watch for watches in self._by_key.values() for watch in watches})

    def add(
        self, keys: Sequence[PartitionKey], min_bytes: int, on_data: Callable[[], None]
    ) -> _Watch:
        """Call ``on_data`` once ``min_bytes`` were appended, or a partition is gone."""
        watch = _Watch(self, keys, min_bytes, on_data)
        for key in keys:
            self._by_key.setdefault(key, {})[watch] = None
        return watch

    def on_append(self, key: PartitionKey, size: int) -> None:
        """Bytes were appended to a partition: call those that have enough."""
        watches = self._by_key.get(key)
        if watches is None:
            return
        for watch in tuple(watches):
            watch.missing_bytes -= size
            if watch.missing_bytes <= 0:
                self._call(watch)

    def on_gone(self, keys: Iterable[PartitionKey]) -> None:
        """Partitions are gone: call all that wait for one of them."""
        for key in keys:
            for watch in tuple(self._by_key.get(key, ())):
                self._call(watch)

    def watched(self) -> list[PartitionKey]:
        """The partitions that something waits for."""
        return list(self._by_key)

    def remove(self, watch: _Watch) -> None:
        """Forget a watch; nothing happens where it was called."""
        for key in watch.keys:
            watches = self._by_key.get(key)
            if watches is not None:
                watches.pop(watch, None)
                if not watches:
                    del self._by_key[key]

    def _call(self, watch: _Watch) -> None:
        """A watch that another one's callback removed is not called any more."""
        if watch not in self._by_key.get(watch.keys[0], ()):
            return
        self.remove(watch)
        watch.on_data()
