"""Entries of ``latest`` that are in the log, but not yet in the store's own ``latest``.

A commit writes its batch to ``log`` alone. Its entries are noted here, and a *checkpoint* writes
each changed key once. What deletes an entry is no part of it: the store deletes at once, and the
overlay forgets the key.

There are two layers. While a checkpoint writes the *frozen* one, new entries go to the other, which
takes precedence. A restart notes again what follows the checkpoint in the log
(``storage.log.latest_replay``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop
from itertools import chain, islice
from operator import methodcaller
from typing import Final, TypeAlias

from model.ids import LogPartition
from storage.log.latest_rows import LatestRows
from storage.log_store import LatestEntry, StoreCorrupt, compute_latest_key, unpack_latest

Entries: TypeAlias = dict[bytes, bytes]
"""Record keys (``compute_latest_key``) to entries (``pack_latest``)."""

SLICE_BYTES: Final = 1 << 20
"""The size of entries written at once; a large group has entries of megabytes each."""

_OFFSET_TYPE: Final = b"\x00\x01"
_TYPE_AND_LENGTH: Final = 4


class LatestOverlay:
    """The entries of all partitions. Not thread-safe."""

    __slots__ = ("_frozen", "_noted", "count", "is_frozen")

    def __init__(self) -> None:
        self._noted: dict[LogPartition, _Layer] = {}
        self._frozen: dict[LogPartition, _Layer] = {}
        self.count = 0
        """How many keys the layers hold; a key of both layers counts twice."""
        self.is_frozen = False
        """Whether a checkpoint is in progress."""

    def note(self, partition: LogPartition, changes: Mapping[bytes, bytes | None]) -> None:
        """Add what was written later than everything before; ``None`` forgets a key."""
        layer = self._noted.get(partition)
        if layer is None:
            layer = self._noted[partition] = _Layer()
        if isinstance(changes, LatestRows):
            self.count += layer.note_rows(changes)
            return
        if None in changes.values():
            self.forget(partition, (key for key, packed in changes.items() if packed is None))
            entries = {key: packed for key, packed in changes.items() if packed is not None}
        else:
            entries = changes  # type: ignore[assignment]  # no value is None
        self.count += layer.note(entries)

    def forget(self, partition: LogPartition, keys: Iterable[bytes]) -> None:
        """Forget keys that were written or deleted past the overlay.

        The checkpoint in progress would otherwise replace what is newer.
        """
        layers = self._unpacked(partition)
        if layers:
            for key in keys:
                for layer in layers:
                    self.count -= layer.forget(key)

    def _unpacked(self, partition: LogPartition) -> list[_Layer]:
        """The layers of a partition, with all entries packed; later ones take precedence."""
        found = []
        for layers in (self._frozen, self._noted):
            layer = layers.get(partition)
            if layer is not None:
                self.count += layer.pack_rows()
                found.append(layer)
        return found

    # -------------------------------------------------------------------------------- reading

    def get_many(
        self,
        partition: LogPartition,
        keys: Sequence[bytes],
        read_stored: Callable[[Sequence[bytes]], Sequence[bytes | None]],
    ) -> list[LatestEntry | None]:
        """The entries of record keys, in their order; ``read_stored`` reads what is not here."""
        keys = [compute_latest_key(key) for key in keys]
        found: dict[bytes, bytes | None] = {}
        for layer in self._unpacked(partition):
            entries = layer.entries
            found.update((key, entries[key]) for key in keys if key in entries)
        missing = [key for key in keys if key not in found]
        if missing:
            found.update(zip(missing, read_stored(missing), strict=True))
        return [
            None if (packed := found[key]) is None else unpack_latest(key, packed) for key in keys
        ]

    def find(self, partition: LogPartition, prefix: bytes) -> Entries:
        """A copy of the entries of keys with this prefix."""
        found: Entries = {}
        for layer in self._unpacked(partition):
            found.update(layer.find(prefix))
        return found

    def has_any(self, partition: LogPartition, prefix: bytes) -> bool:
        """Whether there are entries of keys with this prefix, which costs less than ``find``."""
        return any(layer.has_any(prefix) for layer in self._unpacked(partition))

    def find_offset_groups(self, partition: LogPartition) -> list[bytes]:
        """The key prefixes of the groups that have offsets here, in key order.

        Raises ``StoreCorrupt`` for an offset key that ends within its group id.
        """
        found: set[bytes] = set()
        for layer in self._unpacked(partition):
            found.update(layer.find_offset_groups())
        return sorted(found)

    # ------------------------------------------------------------------------------ checkpoints

    def freeze(self) -> None:
        """Begin a checkpoint: everything noted so far is frozen."""
        assert not self.is_frozen, "a checkpoint is in progress"
        self.is_frozen = True
        self._frozen, self._noted = self._noted, {}

    def frozen_slices(self, keys_max: int) -> Iterator[Slice]:
        """The frozen entries in slices of some ``SLICE_BYTES`` at most."""
        for partition, layer in self._frozen.items():
            self.count += layer.pack_rows()
            keys: list[bytes] = []
            size = 0
            for key, packed in list(layer.entries.items()):
                keys.append(key)
                size += len(packed)
                if len(keys) >= keys_max or size >= SLICE_BYTES:
                    yield Slice(partition, layer.entries, keys)
                    keys, size = [], 0
            if keys:
                yield Slice(partition, layer.entries, keys)

    def drop_frozen(self) -> None:
        """End a checkpoint: the store has what was frozen."""
        self.count -= sum(layer.count for layer in self._frozen.values())
        self._frozen = {}
        self.is_frozen = False

    def thaw(self) -> None:
        """Abandon a checkpoint: what was frozen counts as noted."""
        thawed, noted = self._frozen, self._noted
        self._frozen, self._noted = {}, thawed
        self.is_frozen = False
        self.count = sum(layer.count for layer in thawed.values())
        for partition, layer in noted.items():
            layer.pack_rows()
            self.note(partition, layer.entries)


class Slice:
    """Some frozen keys of a partition."""

    __slots__ = ("_entries", "_keys", "partition")

    def __init__(self, partition: LogPartition, entries: Entries, keys: list[bytes]) -> None:
        self.partition = partition
        self._entries = entries
        self._keys = keys

    def find(self) -> Entries:
        """The entries that were not forgotten meanwhile."""
        entries = self._entries
        return {key: entries[key] for key in self._keys if key in entries}


class _Layer:
    """Entries of one partition, indexed by group and topic.

    ``groups`` maps the part of a record key up to its group id to the topics of the group: the part
    of an offset key up to its topic, to the keys that begin with it. Keys of other types have no
    topic; that of their group stands for it. Commits of many partitions are packed when somebody
    reads, or notes anything else: of one that is repeated only the last is.
    """

    __slots__ = ("_rows", "entries", "groups")

    def __init__(self) -> None:
        self.entries: Entries = {}
        self.groups: dict[bytes, _Topics] = {}
        self._rows: dict[int, LatestRows] = {}
        """By the identity of their keys, the last noted ones last. Later than all ``entries``."""

    @property
    def count(self) -> int:
        """How many keys there are; those that several rows have are counted several times."""
        return len(self.entries) + sum(map(len, self._rows.values()))

    def note_rows(self, rows: LatestRows) -> int:
        """Add entries; returns how many keys are new."""
        known, number = self._rows, id(rows.keys_of_rows)
        is_known = known.pop(number, None) is not None
        known[number] = rows
        return 0 if is_known else len(rows)

    def pack_rows(self) -> int:
        """Move all rows into ``entries``; returns how many keys that adds."""
        if not self._rows:
            return 0
        noted, self._rows = self._rows, {}
        known, before = self.entries, len(self.entries)
        for rows in noted.values():
            count = len(known)
            known.update(rows.entries)
            if len(known) > count:
                # All are of one topic, so that very many take no loop in Python.
                topic = self._open_topic(rows.keys_of_rows[0])
                topic.update(dict.fromkeys(islice(reversed(known), len(known) - count)))
        return len(known) - before - sum(map(len, noted.values()))

    def note(self, entries: Mapping[bytes, bytes]) -> int:
        """Add entries; returns by how many keys there are more."""
        return self.pack_rows() + self._note(entries)

    def _note(self, entries: Mapping[bytes, bytes]) -> int:
        known = self.entries
        before = len(known)
        known.update(entries)
        added = len(known) - before
        if added:
            # New keys are the last ones of the dict: repeated commits need no loop in Python.
            for key in islice(reversed(known), added):
                self._open_topic(key)[key] = None
        return added

    def _open_topic(self, key: bytes) -> _Keys:
        topics = self.groups.setdefault(_read_group(key), {})
        return topics.setdefault(_read_topic(key), {})

    def forget(self, key: bytes) -> int:
        """Remove a key; returns how many there are less. All rows are packed."""
        if self.entries.pop(key, None) is None:
            return 0
        group, topic = _read_group(key), _read_topic(key)
        keys = self.groups[group][topic]
        del keys[key]
        if not keys:
            del self.groups[group][topic]
            if not self.groups[group]:
                del self.groups[group]
        return 1

    def find(self, prefix: bytes) -> Entries:
        if not prefix:
            return self.entries
        keys = list(chain.from_iterable(self._find_keys(prefix)))
        # No loop in Python: a group may have very many offsets here.
        return dict(zip(keys, map(self.entries.__getitem__, keys), strict=True))

    def has_any(self, prefix: bytes) -> bool:
        return next(chain.from_iterable(self._find_keys(prefix)), None) is not None

    def _find_keys(self, prefix: bytes) -> Iterator[Iterable[bytes]]:
        """The keys with this prefix, topic by topic."""
        group, topic = _read_group(prefix), _read_topic(prefix)
        if len(prefix) < _compute_group_end(prefix):
            for name, topics in self.groups.items():
                if name.startswith(prefix):
                    yield from topics.values()
        elif prefix[:2] == _OFFSET_TYPE and len(prefix) >= _compute_topic_end(prefix):
            # A key that begins with a whole topic is of that topic.
            keys = self.groups.get(group, {}).get(topic, {})
            is_more = len(prefix) > len(topic)
            yield filter(methodcaller("startswith", prefix), keys) if is_more else keys
        else:
            for keys in self.groups.get(group, {}).values():
                is_more = len(prefix) > len(group)
                yield filter(methodcaller("startswith", prefix), keys) if is_more else keys

    def find_offset_groups(self) -> list[bytes]:
        found = []
        for group, topics in self.groups.items():
            if group[:2] == _OFFSET_TYPE:
                if any(len(topic) < len(group) + 2 for topic in topics):
                    raise StoreCorrupt(f"offset key {min(topics).hex()} ends within its group id")
                found.append(group)
        return found


_Keys: TypeAlias = dict[bytes, None]
_Topics: TypeAlias = dict[bytes, _Keys]


def _compute_group_end(key: bytes) -> int:
    return _TYPE_AND_LENGTH + int.from_bytes(key[2:_TYPE_AND_LENGTH], "big")


def _compute_topic_end(key: bytes) -> int:
    start = _compute_group_end(key)
    return start + 2 + int.from_bytes(key[start : start + 2], "big")


def _read_group(key: bytes) -> bytes:
    """The part of a record key up to its group id."""
    return key[: _compute_group_end(key)]


def _read_topic(key: bytes) -> bytes:
    """The part of an offset key up to its topic, of others up to their group id."""
    return key[: _compute_topic_end(key)] if key[:2] == _OFFSET_TYPE else _read_group(key)


def merge_latest(
    entries: Entries, stored: Iterable[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a scan in key order; the scan's own ``entries`` replace stored ones."""
    # A heap: very many keys are sorted while they are read, not all before the first.
    keys = list(entries)
    heapify(keys)
    for key, packed in stored:
        while keys and keys[0] < key:
            first = heappop(keys)
            yield first, entries[first]
        if keys and keys[0] == key:
            heappop(keys)
            yield key, entries[key]
        else:
            yield key, packed
    while keys:
        first = heappop(keys)
        yield first, entries[first]
