"""Records of a newer Kafka are kept in the store and do no harm."""

from __future__ import annotations

from model.commands.groups import ListGroups
from model.ids import LogOffset, LogPartition
from model.log.records import ConsumerGroupMetadataKey, OffsetCommitKey
from model.responses.groups import ListGroupsResponse
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key
from storage.log_store import PartitionAppend, pack_latest
from tests.support.memory import MemoryLogStore
from tests.support.virtual.server import CALLER, VirtualServer

NEWER = b"\x00\x09 a value of version 9"
PAIRS = [
    (b"\x00\x63 a key of type 99", NEWER),
    (b"\x00\x09 a key of type 9", NEWER),
    (encode_key(ConsumerGroupMetadataKey("g")), NEWER),  # type: ignore[arg-type]
    (encode_key(OffsetCommitKey("g", "t", 0)), NEWER),  # type: ignore[arg-type]
    (
        encode_key(OffsetCommitKey("g", "t", 1)),
        bytes.fromhex("0004 0000000000000005 ffffffff01 0000000000000001 01 07 03 6e6577"),
    ),
]


def make_store() -> MemoryLogStore:
    store = MemoryLogStore(1)
    batch = encode_batch(0, PAIRS, 1)
    latest = {key: pack_latest(offset, 1, value) for offset, (key, value) in enumerate(PAIRS)}
    store.write([PartitionAppend(LogPartition(0), LogOffset(0), batch, len(PAIRS), latest)])
    store.sync()
    return store


def test_a_store_with_unknown_records_is_loaded_listed_and_written_to() -> None:
    server = VirtualServer({"t": 2}, store=make_store())
    listed = server.ask(ListGroups(CALLER))
    assert isinstance(listed, ListGroupsResponse)
    assert [(group.group_id, group.group_type) for group in listed.groups] == [("g", "classic")]
    assert server.fetch("g", "t", 0) == -1, "an offset of a version that cannot be read is none"
    assert server.fetch("g", "t", 1) == 5
    assert server.join("new", "m", ("t",)).member_epoch == 2
    server.restart()
    kept = {entry.key: entry.value for entry in server.store.latest(LogPartition(0))}
    assert {key: kept[key] for key, _ in PAIRS} == dict(PAIRS)
    first = next(server.store.read_log(LogPartition(0)))
    assert first == encode_batch(0, PAIRS, 1)
