"""Summarises the store that an import built: its groups, and the topics that are unknown.

The import loads the groups as the server does before it installs the store, so a log that cannot
be loaded is not imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cli.output import Listing
from coordinator.core.groups.topic_records import Catalogue
from coordinator.core.state.shard import Shard
from coordinator.runtime.loading.shard_loader import load_catalogue, load_shard
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import LogPartition
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    OffsetCommitKey,
    RecordType,
)
from storage.codec.record_codec import decode_key, decode_value
from storage.log_store import LogStore
from storage.transfer.import_log import ImportCount

_SHOWN = 20


@dataclass(slots=True)
class StoreSummary:
    """Groups by type, groups of unsupported types, and topics missing from the catalogue.

    ``missing_ids`` are topic ids of assignments, rendered as in Kafka.
    """

    groups: Counter[str] = field(default_factory=Counter)
    foreign: list[tuple[str, str, str]] = field(default_factory=list)
    missing_topics: list[str] = field(default_factory=list)
    missing_ids: list[str] = field(default_factory=list)


def summarize_store(store: LogStore) -> StoreSummary:
    """Load everything once. Raises ``CodecError`` or ``StoreError`` if that is impossible."""
    from cli.messages import render_topic_id

    summary = StoreSummary()
    catalogue = Catalogue()
    load_catalogue(store, catalogue)
    names: set[str] = set()
    ids: set[bytes] = set()
    for number in range(store.partitions):
        partition = LogPartition(number)
        shard = Shard(partition, CoordinatorSettings(), catalogue.image)
        load_shard(store, shard)
        _add_groups(summary, shard)
        names.update(_find_topic_names(store, partition))
        ids.update(_find_topic_ids(store, partition))
    summary.foreign.sort()
    summary.missing_topics = sorted(names - catalogue.image.by_name.keys())
    summary.missing_ids = sorted(map(render_topic_id, ids - catalogue.image.by_id.keys()))
    return summary


def _add_groups(summary: StoreSummary, shard: Shard) -> None:
    with_state = shard.consumer_groups.keys() | shard.classic_groups.keys()
    with_state |= shard.foreign_groups.keys()
    summary.groups["consumer"] += len(shard.consumer_groups)
    # A group that only has offsets counts as a classic group, as in Kafka.
    summary.groups["classic"] += len(shard.classic_groups) + len(shard.offset_groups - with_state)
    for group_id, group in shard.foreign_groups.items():
        summary.groups[group.group_type] += 1
        summary.foreign.append((group_id, group.group_type, group.state()))


def _find_topic_names(store: LogStore, partition: LogPartition) -> Iterator[str]:
    kind = RecordType.OFFSET_COMMIT
    last = b""
    for entry in store.latest(partition, int(kind).to_bytes(2, "big")):
        # Keys end with the topic's partition; skip the other partitions of the same topic.
        if entry.key[:-4] != last:
            last = entry.key[:-4]
            key = decode_key(entry.key)
            if isinstance(key, OffsetCommitKey):
                yield key.topic
    kind = RecordType.CONSUMER_GROUP_MEMBER_METADATA
    for entry in store.latest(partition, int(kind).to_bytes(2, "big")):
        _, value = decode_value(kind, entry.value)
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            yield from value.subscribed_topic_names


def _find_topic_ids(store: LogStore, partition: LogPartition) -> Iterator[bytes]:
    kind = RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
    for entry in store.latest(partition, int(kind).to_bytes(2, "big")):
        _, value = decode_value(kind, entry.value)
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            yield from (each.topic_id for each in value.assigned_partitions)


def compute_import_listing(count: ImportCount, summary: StoreSummary) -> Listing:
    """A row for each kind of thing that was imported or is missing."""
    rows: list[list[object]] = [
        ["partitions", count.partitions, "groups were rehashed" if count.is_rehashed else None],
        ["batches", count.batches, None],
        ["records", count.records, "read; the store keeps the last one of each key"],
    ]
    for kind in ("consumer", "classic", "share", "streams"):
        kept = [f"{group} ({state})" for group, other, state in summary.foreign if other == kind]
        text = f"kept, not served: {_shorten(kept)}" if kept else None
        rows.append([f"{kind} groups", summary.groups[kind], text])
    rows += [
        _compute_row("open transactions", count.open_producers, "producer ids "),
        _compute_row("aborted transactions", count.aborted_producers, "producer ids "),
        _compute_row("unknown topics", summary.missing_topics, ""),
        _compute_row("unknown topic ids", summary.missing_ids, ""),
    ]
    content: dict[str, Any] = {
        "partitions": count.partitions,
        "batches": count.batches,
        "records": count.records,
        "bytes": count.bytes,
        "rehashed": count.is_rehashed,
        "groups": dict(sorted(summary.groups.items())),
        "unserved_groups": [
            {"group": group, "type": kind, "state": state} for group, kind, state in summary.foreign
        ],
        "open_producer_ids": sorted(count.open_producers),
        "aborted_producer_ids": sorted(count.aborted_producers),
        "unknown_topics": summary.missing_topics,
        "unknown_topic_ids": summary.missing_ids,
        "notes": count.notes,
    }
    return Listing("log.import", ("WHAT", "COUNT", "WHICH"), rows, content, "unserved_groups")


def _compute_row(what: str, found: set[int] | list[str], before: str) -> list[object]:
    names = [str(each) for each in sorted(found)]
    return [what, len(names), before + _shorten(names) if names else None]


def _shorten(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
