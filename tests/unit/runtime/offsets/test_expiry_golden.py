"""What a real Kafka 4.3.0 expired, and when: its log is replayed in virtual time.

``tests/golden/expiry`` was recorded with a retention of one minute and a check every five seconds.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import Any

from model.commands.classic import ClassicHeartbeat
from model.commands.groups import ListGroups
from model.commands.offsets import OffsetFetch
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, TopicId, TopicName
from model.log.records import OffsetCommitKey, Record
from model.log.side_records import SideRecord, TopicSideKey, TopicSideValue
from model.responses.groups import ListGroupsResponse
from model.responses.offsets import OffsetFetchResponse
from storage.codec.batches import Batch
from storage.codec.record_codec import decode_key, decode_value
from storage.side_codec import encode_side
from tests.groups import TESTS
from tests.support.batches import decode_batches
from tests.support.memory import MemoryLogStore
from tests.support.storage.raw_log import RawLog
from tests.support.virtual.server import CALLER, VirtualServer

GOLDEN = TESTS / "golden" / "expiry"
INTERVAL_MS = 5_000
FIRST_CHECK_MS = 1_795_214_940_420
"""When Kafka's coordinator is first seen to look for what expires."""
APART_MS = 100
"""Both walk for some milliseconds."""
HEARTBEAT_MS = 3_000
SETTINGS = CoordinatorSettings(
    offsets_retention_minutes=1,
    offsets_retention_check_interval_ms=INTERVAL_MS,
    # The members' heartbeats are not replayed.
    group_consumer_session_timeout_ms=3_600_000,
)
TOPICS = (("t3", "_-YmDRwSTHyOtrltjcmKcw", 3), ("t8", "3BwmE6syQzS9f7Ziwhj2bQ", 8))


class ServerThen(VirtualServer):
    """A server at the time of the recording, some ms before Kafka's check."""

    def __init__(self, log: RawLog, wall_ms: int) -> None:
        self._wall_ms = wall_ms
        super().__init__(store=log.store, settings=SETTINGS)  # type: ignore[arg-type]

    def start(self) -> None:
        self.scheduler.wall_offset_ms = self._wall_ms - self.scheduler.now_ms
        super().start()

    def advance_to(self, wall_ms: int) -> None:
        """Advance; members of classic groups, which have their own session timeouts, heartbeat."""
        while (left_ms := wall_ms - self.scheduler.wall_ms()) > 0:
            self.advance(min(left_ms, HEARTBEAT_MS))
            for shard in self.runtime.shards:
                for group in list(shard.classic_groups.values()):
                    for member_id in group.members:
                        beat = ClassicHeartbeat(CALLER, group.group_id, member_id, group.generation)
                        self.ask(beat)


def make_topic(name: str, topic_id: str, partitions: int) -> tuple[bytes, bytes | None]:
    decoded = TopicId(urlsafe_b64decode(topic_id + "=="))
    value = TopicSideValue(decoded, partitions)
    return encode_side(SideRecord(TopicSideKey(TopicName(name)), value))


def read_batches() -> dict[int, list[tuple[Batch, bytes]]]:
    """Each partition's batches, decoded and as bytes."""
    found = {}
    for file in sorted((GOLDEN / "segments").glob("*/*.log")):
        data, position, batches = file.read_bytes(), 0, []
        for batch in decode_batches(data):
            batches.append((batch, data[position : position + batch.size]))
            position += batch.size
        found[int(file.parent.name.rpartition("-")[2])] = batches
    return found


def is_expiry(batch: Batch) -> bool:
    """Whether Kafka's coordinator wrote the batch by itself."""
    first = batch.records[0]
    assert first.key is not None
    return first.value is None and first.key[:2] == b"\x00\x01"


def read_steps() -> dict[str, dict[str, Any]]:
    truth = json.loads((GOLDEN / "truth" / "x01-expiry.json").read_text())
    return {step["step"]: step for step in truth["steps"] if "step" in step}


def records_of(batch: Batch) -> list[Record]:
    found = []
    for _, _, key, value, _ in batch.records:
        assert key is not None
        kind = int.from_bytes(key[:2], "big")
        decoded = None if value is None else decode_value(kind, value)[1]
        found.append(Record(decode_key(key), decoded))
    return found


def check_against(server: VirtualServer, step: dict[str, Any]) -> None:
    """Groups and offsets equal the live Kafka's responses at that step."""
    listed = server.ask(ListGroups(CALLER))
    assert isinstance(listed, ListGroupsResponse)
    shown = {group.group_id: (group.group_type, group.state) for group in listed.groups}
    for group in step["groups"]:
        said = group["listed"]
        expected = None if said is None else (said["type"], said["state"])
        assert shown.get(group["groupId"]) == expected, group["groupId"]
        answer = server.ask(OffsetFetch(CALLER, GroupId(group["groupId"]), None))
        assert isinstance(answer, OffsetFetchResponse)
        assert {
            (topic.name, partition.partition): partition.offset
            for topic in answer.topics
            for partition in topic.partitions
        } == {
            (topic["name"], partition["partitionIndex"]): partition["committedOffset"]
            for topic in group["offsetFetch.v9"]["topics"]
            for partition in topic["partitions"]
        }, group["groupId"]


def written_since(server: VirtualServer, ends: dict[int, int]) -> Iterator[tuple[int, Batch]]:
    for partition, end in ends.items():
        for data in server.store.read_log(LogPartition(partition)):
            (batch,) = decode_batches(data)
            if batch.base_offset >= end:
                yield partition, batch


def check_same(ours: Batch, golden: Batch) -> None:
    """The same records at the same offsets; offsets in any order, since Kafka's is a hash map's."""
    assert (ours.base_offset, ours.last_offset) == (golden.base_offset, golden.last_offset)
    mine, theirs = records_of(ours), records_of(golden)
    offsets = sum(isinstance(record.key, OffsetCommitKey) for record in theirs)
    assert set(mine[:offsets]) == set(theirs[:offsets])
    assert mine[offsets:] == theirs[offsets:]
    assert abs(ours.max_timestamp - golden.max_timestamp) <= APART_MS


def append_what_clients_did(
    log: RawLog, golden: dict[int, list[tuple[Batch, bytes]]], until_ms: int
) -> dict[int, int]:
    """Append the log up to then, without Kafka's expiries; returns the next positions."""
    ends = {}
    for number, batches in golden.items():
        partition = LogPartition(number)
        end = log.store.next_offset(partition)
        missing = [
            data
            for batch, data in batches
            if batch.base_offset >= end and batch.max_timestamp <= until_ms and not is_expiry(batch)
        ]
        log.append(number, missing)
        ends[number] = int(log.store.next_offset(partition))
    log.make_durable()
    return ends


def check_written(
    written: list[tuple[int, Batch]], golden: dict[int, list[tuple[Batch, bytes]]]
) -> None:
    """The server wrote what Kafka wrote by itself, in the same checks."""
    expected = [
        (partition, batch)
        for partition, batches in sorted(golden.items())
        for batch, _ in batches
        if is_expiry(batch)
    ]
    written = sorted(written, key=lambda entry: (entry[0], entry[1].base_offset))
    assert len(expected) == 8
    assert [(partition, batch.base_offset) for partition, batch in written] == [
        (partition, batch.base_offset) for partition, batch in expected
    ]
    for (_, ours), (_, kafkas) in zip(written, expected, strict=True):
        check_same(ours, kafkas)


def test_the_same_offsets_and_groups_go_at_the_same_checks_as_in_kafka() -> None:
    golden, steps = read_batches(), read_steps()
    log = RawLog(MemoryLogStore(50))
    log.store.write([], [make_topic(*topic) for topic in TOPICS])
    ends = append_what_clients_did(log, golden, steps["committed"]["ts"])
    server = ServerThen(log, FIRST_CHECK_MS - INTERVAL_MS)
    for name in ("after 15 s", "after 90 s"):
        server.advance_to(steps[name]["ts"])
        check_against(server, steps[name])
    written = list(written_since(server, ends))

    # Now the members of the last two groups leave.
    server.crash()
    log.store = server.store
    for partition, batch in written:
        log.folds[partition].apply_batch(batch)
    left = steps["live groups left"]
    ends = append_what_clients_did(log, golden, left["ts"])
    server = ServerThen(log, FIRST_CHECK_MS + 16 * INTERVAL_MS)
    server.advance_to(left["ts"])
    check_against(server, left)
    server.advance_to(steps["after 72 s more"]["ts"])
    check_against(server, steps["after 72 s more"])
    check_written([*written, *written_since(server, ends)], golden)
