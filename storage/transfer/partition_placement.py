"""The partition of a record's group, and the check that a log's groups are in their partitions."""

from __future__ import annotations

from collections.abc import Iterator

from model.ids import GroupId, LogPartition, compute_java_hash, compute_log_partition
from model.log.records import RecordType
from storage.log_store import LogStore
from storage.transfer.import_refused import ImportRefused

MAX_GUESS = 1_000
"""Partition counts up to here are tried, to suggest one that fits."""

_GROUP_TYPES = frozenset(int(kind).to_bytes(2, "big") for kind in RecordType)
_OFFSET_TYPES = (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)


def read_group_id(key: bytes) -> GroupId | None:
    """Read the group id of a record key; ``None`` for keys of unknown types."""
    if key[:2] not in _GROUP_TYPES:
        return None
    length = int.from_bytes(key[2:4], "big")
    if len(key) < 4 + length:
        return None
    return GroupId(key[4 : 4 + length].decode("utf-8", "replace"))


def find_group_ids(store: LogStore, partition: LogPartition) -> set[GroupId]:
    """Find the groups that have any record in the partition."""
    found = set(store.offset_group_ids(partition))
    for kind in RecordType:
        if kind not in _OFFSET_TYPES:
            entries = store.latest(partition, int(kind).to_bytes(2, "big"))
            found.update(group for entry in entries if (group := read_group_id(entry.key)))
    return found


def check_placement(store: LogStore) -> None:
    """Raise ``ImportRefused`` unless every group is in the partition that its id hashes to."""
    misplaced: tuple[GroupId, LogPartition] | None = None
    homes: list[tuple[GroupId, LogPartition]] = []
    for number in range(store.partitions):
        partition = LogPartition(number)
        for group in find_group_ids(store, partition):
            if compute_log_partition(group, store.partitions) != partition:
                misplaced = misplaced or (group, partition)
            if len(homes) < MAX_GUESS:
                homes.append((group, partition))
    if misplaced is not None:
        group, partition = misplaced
        fits = next(_find_fits(homes), None)
        advice = (
            "the files belong to several topics, or were renamed"
            if fits is None
            else f"use --partitions {fits} if the imported topic has that many"
        )
        raise ImportRefused(
            f"partition count mismatch: group {group!r} is in partition {partition}, but with "
            f"{store.partitions} partitions it belongs in "
            f"{compute_log_partition(group, store.partitions)}: {advice}"
        )


def _find_fits(homes: list[tuple[GroupId, LogPartition]]) -> Iterator[int]:
    """Iterate over the partition counts with which every group is in its partition."""
    hashes = [(abs(compute_java_hash(group)), partition) for group, partition in homes]
    least = max(partition for _, partition in homes) + 1
    for count in range(least, MAX_GUESS + 1):
        if all(number % count == partition for number, partition in hashes):
            yield count
