"""Side records of an import: topics, producer ids, the import grace, and exported side records."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from model.client_assignors import ClientAssignorsKey, InstalledMetadataKey
from model.ids import LogPartition, TopicId, TopicName, compute_log_partition
from model.log.side_records import (
    OFFSETS_OF_A_MS,
    AclSideKey,
    FakeSaltSecretKey,
    GroupConfigsSideKey,
    GroupFreezeKey,
    GroupPlaceKey,
    GroupResetKey,
    ImportGraceKey,
    ImportGraceValue,
    ProducerGroupKey,
    ProducerGroupValue,
    ProducerIdBlockKey,
    ProducerIdBlockValue,
    ProducerStateKey,
    ProducerStateValue,
    QuotaSideKey,
    ScramCredentialKey,
    SideRecord,
    TokenStartKey,
    TokenStartValue,
    TopicDeletionKey,
    TopicDeletionValue,
    TopicSideKey,
    TopicSideValue,
)
from storage.side_codec import decode_side, encode_side, encode_side_key, encode_side_value
from storage.transfer.import_refused import ImportRefused

Pair = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class SideImport:
    """The side data of an import. ``topics`` are those of the cluster that wrote the log.

    ``imported_at_ms`` (wall clock) is the start of the import grace, ``None`` for no grace.
    ``records`` and ``cluster_id`` come from the side file of an export.
    """

    topics: Mapping[TopicName, TopicSideValue] = field(default_factory=dict)
    imported_at_ms: int | None = None
    records: Sequence[Pair] = ()
    cluster_id: str | None = None


def compute_side(old: Sequence[Pair], given: SideImport, highest_producer_id: int) -> list[Pair]:
    """Merge the side records of the store, the export and the import.

    Records of the store take precedence over exported ones; a user of the store gets no further
    password. New producer ids start above those in the log. Raises ``ImportRefused`` if topics
    conflict.
    """
    side = dict(_leave_out_known_users(given.records, old)) | dict(old)
    side.update(_merge_producers([*given.records, *old]))
    topics: dict[TopicName, TopicSideValue] = {}
    next_producer_id = highest_producer_id + 1
    token_start_ms = 0
    for key, value in [*given.records, *side.items()]:
        match decode_side(key, value):
            case SideRecord(TopicSideKey(name), TopicSideValue() as topic):
                _add_topic(topics, name, topic)
            case SideRecord(ProducerIdBlockKey(), ProducerIdBlockValue(end)):
                next_producer_id = max(next_producer_id, end)
            case SideRecord(TokenStartKey(), TokenStartValue(wall_ms)):
                token_start_ms = max(token_start_ms, wall_ms)
            case _:
                pass
    for name, topic in given.topics.items():
        _add_topic(topics, name, topic)
    added = [SideRecord(TopicSideKey(name), topic) for name, topic in topics.items()]
    if next_producer_id:
        added.append(SideRecord(ProducerIdBlockKey(), ProducerIdBlockValue(next_producer_id)))
    if token_start_ms:
        added.append(SideRecord(TokenStartKey(), TokenStartValue(token_start_ms)))
    if given.imported_at_ms is not None:
        added.append(SideRecord(ImportGraceKey(), ImportGraceValue(given.imported_at_ms)))
    for record in added:
        key, encoded = encode_side(record)
        assert encoded is not None
        side[key] = encoded
    return list(side.items())


def _leave_out_known_users(given: Sequence[Pair], old: Sequence[Pair]) -> list[Pair]:
    """A credential for another mechanism would be a password beside the one that the user has."""
    known = {key.user for key in _find_credentials(old).values()}
    of_known = {encoded for encoded, key in _find_credentials(given).items() if key.user in known}
    return [pair for pair in given if pair[0] not in of_known]


def _find_credentials(records: Sequence[Pair]) -> dict[bytes, ScramCredentialKey]:
    return {
        encoded: key
        for encoded, value in records
        if isinstance(key := decode_side(encoded, value).key, ScramCredentialKey)
    }


def _merge_producers(records: Sequence[Pair]) -> dict[bytes, bytes]:
    """Merge producer states, taking the highest epochs: a producer fenced anywhere stays fenced."""
    merged: dict[bytes, ProducerStateValue | ProducerGroupValue] = {}
    for key, value in records:
        state = decode_side(key, value).value
        match state, merged.get(key, state):
            case ProducerStateValue() as one, ProducerStateValue() as other:
                merged[key] = _merge_states(one, other)
            case ProducerGroupValue() as one, ProducerGroupValue() as other:
                merged[key] = ProducerGroupValue(
                    max(one.producer_epoch, other.producer_epoch),
                    max(one.timed_out_epoch, other.timed_out_epoch),
                )
            case _:
                pass
    return {key: encode_side_value(state) for key, state in merged.items()}


def _merge_states(one: ProducerStateValue, other: ProducerStateValue) -> ProducerStateValue:
    since_ms = (one.transaction_since_ms, other.transaction_since_ms)
    return ProducerStateValue(
        max(one.producer_epoch, other.producer_epoch),
        max(one.coordinator_epoch, other.coordinator_epoch),
        max(one.last_timestamp, other.last_timestamp),
        min((ms for ms in since_ms if ms >= 0), default=-1),
    )


def move_side(
    records: Sequence[Pair], partitions: int, filled: Sequence[LogPartition], log_end: int
) -> list[Pair]:
    """Move side records to the partitions that their groups hash to, out of ``partitions``.

    Records of a member, of a producer in a group, or of a place, move with the group. The state of
    a producer is copied to all ``filled`` partitions, as any of them may hold groups that it writes
    for. ``log_end`` is the highest of the imported log: fencing tokens may have been as high.
    """
    moved: list[Pair] = []
    for key, value in records:
        record = decode_side(key, value)
        match record.key:
            case (
                ClientAssignorsKey()
                | InstalledMetadataKey()
                | ProducerGroupKey()
                | GroupPlaceKey()
                | GroupResetKey()
                | GroupFreezeKey() as of_group
            ):
                partition = compute_log_partition(of_group.group_id, partitions)
                moved.append((encode_side_key(replace(of_group, partition=partition)), value))
            case ProducerStateKey() as of_producer:
                moved += (
                    (encode_side_key(replace(of_producer, partition=partition)), value)
                    for partition in filled
                )
            case TopicDeletionKey() as of_topic:
                # The log ends refer to the source log; only the time applies here.
                assert isinstance(record.value, TopicDeletionValue)
                deletion = replace(record.value, log_ends=())
                moved.append((key, encode_side(SideRecord(of_topic, deletion))[1] or b""))
            case TokenStartKey() as start:
                # The log may end lower here, and the clock may be behind.
                assert isinstance(record.value, TokenStartValue)
                above = TokenStartValue(record.value.wall_ms + log_end // OFFSETS_OF_A_MS + 1)
                moved.append((key, encode_side(SideRecord(start, above))[1] or b""))
            case (
                TopicSideKey()
                | ProducerIdBlockKey()
                | ImportGraceKey()
                | GroupConfigsSideKey()
                | AclSideKey()
                | QuotaSideKey()
                | ScramCredentialKey()
                | FakeSaltSecretKey()
            ):
                moved.append((key, value))
            case _:
                assert_never(record.key)
    return moved


def _add_topic(
    topics: dict[TopicName, TopicSideValue], name: TopicName, topic: TopicSideValue
) -> None:
    known = topics.get(name)
    if known is None:
        for other, value in topics.items():
            if value.topic_id == topic.topic_id:
                raise ImportRefused(
                    f"topic {name} has the same id as topic {other}: {_show(topic.topic_id)}"
                )
    elif known.topic_id != topic.topic_id:
        raise ImportRefused(
            f"topic {name} has id {_show(known.topic_id)} in the store, "
            f"not {_show(topic.topic_id)}: delete it there first"
        )
    elif known.partitions > topic.partitions:
        raise ImportRefused(
            f"topic {name} has {known.partitions} partitions in the store, "
            f"not {topic.partitions}: topics cannot shrink"
        )
    if known is not None and not topic.racks:
        topic = replace(topic, racks=known.racks)
    topics[name] = topic


def _show(topic_id: TopicId) -> str:
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()
