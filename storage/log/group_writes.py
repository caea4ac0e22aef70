"""The writes that changed a group itself, in the order of the log: no commits of offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from model.ids import GroupId
from model.log.records import RecordKey, RecordType, RecordValue
from storage.codec.batches import decode_batch
from storage.codec.record_codec import decode_key, decode_value
from storage.log.compression import decompress
from storage.log.group_history import COMPRESSION, CONTROL, GroupWalk
from storage.log.trim import HistoryStart

_TYPES: Final = (
    RecordType.GROUP_METADATA,
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
)


class GroupWrite(NamedTuple):
    """The records of one batch. ``timestamp_ms`` is the latest of the log so far."""

    last_offset: int
    timestamp_ms: int
    records: tuple[tuple[RecordKey, RecordValue | None], ...]


def read_group_writes(
    walk: GroupWalk, group_id: GroupId, start: HistoryStart
) -> Iterator[GroupWrite]:
    """The writes up to the position of the walk. Raises ``CodecError`` for damaged batches.

    What lies below the history start is the state there, record by record.
    """
    name = group_id.encode()
    name = len(name).to_bytes(2, "big") + name
    prefixes = tuple(int(kind).to_bytes(2, "big") + name for kind in _TYPES)
    latest_ms = start.before_ms
    for head, data in walk.until_position():
        if head.base_offset >= start.offset:
            latest_ms = max(latest_ms, head.max_timestamp)
        if head.attributes & CONTROL:
            continue
        if not head.attributes & COMPRESSION and not any(each in data for each in prefixes):
            continue
        batch = decode_batch(data, decompress=decompress)
        records = tuple(
            (
                decode_key(record.key),
                None
                if record.value is None
                else decode_value(int.from_bytes(record.key[:2]), record.value)[1],
            )
            for record in batch.records
            if record.key is not None and record.key.startswith(prefixes)
        )
        if records:
            yield GroupWrite(batch.last_offset, latest_ms, records)
