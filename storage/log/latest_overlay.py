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
from itertools import chain, compress, islice
from operator import methodcaller
from typing import Final, TypeAlias

from model.ids import LogPartition
from storage.log.latest_rows import LatestRows

Entries: TypeAlias = dict[bytes, bytes]
"""Record keys (``compute_latest_key``) to entries (``pack_latest``)."""

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
            entries = changes  # type: ignore[assignment]
        self.count += layer.note(entries)

    def forget(self, partition: LogPartition, keys: Iterable[bytes]) -> None:
        """Forget keys that were written or deleted past the overlay.

        The checkpoint in progress would otherwise replace what is newer.
        """
        found = [layer.entries for layer in self._unpacked(partition)]
        if found:
            for key in keys:
                for entries in found:
                    if key in entries:
                        del entries[key]
                        self.count -= 1

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
    ) -> list[bytes | None]:
        """The entries of keys; ``read_stored`` reads those that are not here."""
        found: dict[bytes, bytes | None] = {}
        for layer in self._unpacked(partition):
            entries = layer.entries
            found.update((key, entries[key]) for key in keys if key in entries)
        missing = [key for key in keys if key not in found]
        if missing:
            found.update(zip(missing, read_stored(missing), strict=True))
        return [found[key] for key in keys]

    def find(self, partition: LogPartition, prefix: bytes) -> Entries:
        """A copy of the entries of keys with this prefix."""
        found: Entries = {}
        for layer in self._unpacked(partition):
            found.update(layer.find(prefix))
        return found

    def find_offset_groups(self, partition: LogPartition) -> list[bytes]:
        """The key prefixes of the groups that have offsets here, in key order."""
        found: set[bytes] = set()
        for layer in self._unpacked(partition):
            found.update(layer.find_groups(_OFFSET_TYPE))
        return sorted(found)

    # ------------------------------------------------------------------------------ checkpoints

    def freeze(self) -> None:
        """Begin a checkpoint: everything noted so far is frozen."""
        assert not self.is_frozen, "a checkpoint is in progress"
        self.is_frozen = True
        self._frozen, self._noted = self._noted, {}

    def frozen_slices(self, keys_max: int) -> Iterator[Slice]:
        """The frozen entries in slices."""
        for partition, layer in self._frozen.items():
            self.count += layer.pack_rows()
            keys = list(layer.entries)
            for start in range(0, len(keys), keys_max):
                yield Slice(partition, layer.entries, keys[start : start + keys_max])

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
    """Entries of one partition, indexed by group.

    ``groups`` maps the part of a record key up to its group id to the keys that begin with it. Keys
    that were forgotten stay in it. Commits of many partitions are packed when somebody reads, or
    notes anything else: of one that is repeated only the last is.
    """

    __slots__ = ("_rows", "entries", "groups")

    def __init__(self) -> None:
        self.entries: Entries = {}
        self.groups: dict[bytes, list[bytes]] = {}
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
        """Bring all entries into ``entries``; returns by how many keys there are more."""
        if not self._rows:
            return 0
        noted, self._rows = self._rows, {}
        known, groups, before = self.entries, self.groups, len(self.entries)
        for rows in noted.values():
            count = len(known)
            known.update(rows.entries)
            new_keys = islice(reversed(known), len(known) - count)
            # All are of one group, so that very many take no loop in Python.
            groups.setdefault(_read_group(rows.keys_of_rows[0]), []).extend(new_keys)
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
            groups = self.groups
            for key in islice(reversed(known), added):
                groups.setdefault(_read_group(key), []).append(key)
        return added

    def find(self, prefix: bytes) -> Entries:
        if not prefix:
            return self.entries
        end = _TYPE_AND_LENGTH + int.from_bytes(prefix[2:_TYPE_AND_LENGTH], "big")
        if len(prefix) < max(end, _TYPE_AND_LENGTH):
            keys: Sequence[bytes] = list(
                chain.from_iterable(
                    keys for group, keys in self.groups.items() if group.startswith(prefix)
                )
            )
        else:
            keys = self.groups.get(prefix[:end], ())
            if len(prefix) > end:
                keys = list(filter(methodcaller("startswith", prefix), keys))
        # No loop in Python: a group may have very many offsets here. No entry is empty.
        found = list(map(self.entries.get, keys))
        return dict(zip(compress(keys, found), filter(None, found), strict=True))

    def find_groups(self, prefix: bytes) -> list[bytes]:
        has = self.entries.__contains__
        return [
            group
            for group, keys in self.groups.items()
            if group.startswith(prefix) and any(map(has, keys))
        ]


def _read_group(key: bytes) -> bytes:
    """The part of a record key up to its group id."""
    return key[: _TYPE_AND_LENGTH + int.from_bytes(key[2:_TYPE_AND_LENGTH], "big")]


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
