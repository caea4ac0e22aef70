"""What clients asked a real Kafka 4.3.0, asked again of a server on virtual time.

Each recorded request comes at its own time, in its own bytes, on a connection of its own client.
Idle heartbeats, which the recording left out, are put back between two of a member. Targets are
computed when Kafka computed them, which its log says: with the next heartbeat of a member, and
ours as soon as a group has changed. The assignor is asked, and its answer is held against Kafka's
to the same question; then Kafka's is installed, so that all that follows can be the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from coordinator.core.target.target_assignment import (
    InstallTarget,
    Slots,
    TargetProblem,
    compute_install,
)
from gateway.codec.decoding import decode
from gateway.codec.kio_schema import response_type
from gateway.settings import GatewaySettings
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.offsets import OffsetCommit, TopicOffsets
from model.commands.topics import CreateTopic, DeleteTopic, GrowTopic
from model.commands.transactions import WriteTxnMarkers
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicId, TopicName
from model.log.commit_records import make_offset_columns
from muster.assignors.problem import NOBODY
from tests.golden.kafka_log import PARTITIONS, decode_uuid
from tests.support.gateway.entity_json import entity_to_json
from tests.support.gateway.exchanges import load_exchanges
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.memory import MemoryLogStore
from tests.support.storage.golden import control_records, logged_records
from tests.support.virtual.scheduler import Timer, VirtualScheduler
from tests.support.virtual.server import VirtualServer
from tests.support.wire.fields import beat
from tests.support.wire.frames import frame, make_request

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
JOIN_GROUP: Final = 11
TXN_OFFSET_COMMIT: Final = 28
DELETE_GROUPS: Final = 42
OFFSET_DELETE: Final = 47
HEARTBEAT: Final = 68
DESCRIBE: Final = 69
REPLAYED: Final = (
    OFFSET_COMMIT,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
    DELETE_GROUPS,
    OFFSET_DELETE,
    HEARTBEAT,
    DESCRIBE,
)
TARGET_MEMBER: Final = "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER"
TARGET_METADATA: Final = "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA"
START_MS: Final = 1_795_214_646_990
"""When the recording began, in the time of its wall clock."""

UNRECORDED_COMMITS: Final = (
    "o18-offsets.wide",
    "o19-txn-classic.pending",
    "o20-txn-consumer.pending",
)
HEARTBEAT_INTERVAL_MS: Final = 500
IDLE_SLACK_MS: Final = 5
"""How well the times of heartbeats that were not recorded are known."""

SETTINGS: Final = CoordinatorSettings(
    group_consumer_session_timeout_ms=6_000,
    group_consumer_min_session_timeout_ms=6_000,
    group_consumer_heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    group_consumer_min_heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    group_consumer_assignment_interval_ms=1_000,
    group_consumer_regex_batch_refresh_min_interval_ms=10_000,
    group_consumer_migration_policy="bidirectional",
    group_min_session_timeout_ms=1_000,
    group_initial_rebalance_delay_ms=0,
    offsets_transactional_commits="all",
)

Exchange = dict[str, Any]
Place = tuple[bytes, int]
"""A partition by the id of its topic."""


class Topic(NamedTuple):
    """A topic of the recording; ``at_ms`` counts from its start."""

    name: str
    topic_id: str
    partitions: int
    at_ms: int = 0


TOPICS: Final = (
    Topic("t1", "ink7IHORQJ-GVOiV7DRY0w", 1),
    Topic("t2", "FQUucrkiSnal2zIniN5BGA", 2),
    Topic("t3", "g-Jf-Tr9SmK2wqnK0aM2zQ", 3),
    Topic("t5", "zU8MwGaxSFGYxzTcOibMDQ", 5),
    Topic("t8", "A66cMnBbTfKPFrlQMN3slg", 8),
    Topic("t50", "ZCBJdnXzQyCkTP3_gGaw5Q", 50),
    Topic("t600", "gWeKzB7ITeCqYJjKgBfSrw", 600),
    Topic("orders-eu", "nGPpDy5fTjG2-9NVpsNspQ", 3),
    Topic("orders-us", "1aVDnOhsRDeAWxng2XncoA", 3),
    Topic("xorders-no", "Y6q4-PimRh-OW0ZPOFsc4w", 2),
    Topic("orders-apac", "tkBUtpaURdOHGtVUdfFT1w", 4, 20_300),
    Topic("o22-grow-g", "5zXI2xlBQjeZZRNzMPVqog", 3),
    Topic("o21-deletes-topic", "sCEZLd2WSMStCIh3wk39bA", 4),
    Topic("o21-deletes-topic", "EAsHi98gQ7io91eDASZjxQ", 2, 46_500),
)
GROWTH: Final = (("o22-grow-g", 6, 37_300),)
DELETIONS: Final = (("o22-grow-g", 44_310), ("o21-deletes-topic", 43_200))
"""No client that was recorded made these; the broker's log has them at these times."""


class SchedulerClock:
    """The clock of the door over that of the server."""

    def __init__(self, scheduler: VirtualScheduler) -> None:
        self._scheduler = scheduler

    def time(self) -> float:
        return self._scheduler.now_ms / 1_000

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        def call() -> None:
            callback()

        return self._scheduler.call_later_ms(round(delay * 1_000), call)


class Replayed(NamedTuple):
    """An exchange, and the answer of our own as JSON of the same form."""

    exchange: Exchange
    answer: dict[str, Any]


class Target(NamedTuple):
    """A target of Kafka's: when it was written, for which epoch, and who has what."""

    written_ms: int
    epoch: int
    owners: dict[Place, str]


class Judged(NamedTuple):
    """An answer of our assignor beside Kafka's, to the same question."""

    problem: TargetProblem
    ours: Slots
    kafkas: Slots


class RecordedTargets:
    """Lets a runtime compute the target of a group when the recorded broker did."""

    def __init__(self, server: VirtualServer) -> None:
        self._server = server
        targets = server.runtime.parts.targets
        self._mark, self._run = targets.mark, targets._run
        targets.mark = self._note  # type: ignore[method-assign]
        targets._run = self._answer  # type: ignore[method-assign]
        self._coming = load_targets()
        self._held: set[str] = set()
        self._current: dict[str, Target] = {}
        self.judged: list[Judged] = []

    def begin(self, row: Exchange, *, is_idle: bool) -> None:
        """A request is about to come; did Kafka compute a target before it, or with it?"""
        until_ms = row["requestTs"] - 1
        if is_idle:
            until_ms = START_MS + self._server.scheduler.now_ms + IDLE_SLACK_MS
        elif row["apiKey"] in (HEARTBEAT, JOIN_GROUP):
            until_ms = row["responseTs"]
        group_id = row["requestJson"].get("groupId")
        coming = self._coming.get(group_id, [])
        while coming and coming[0].written_ms <= until_ms:
            target = self._current[group_id] = coming.pop(0)
            # The request itself may be what the target is for: a join, another subscription.
            if group_id in self._held and self._server.group(group_id).group_epoch == target.epoch:
                self._mark(GroupId(group_id))
                self._server.settle()

    def _note(self, group_id: GroupId, not_before_ms: int, interval_ms: int) -> None:
        self._held.add(group_id)
        if group_id in self._current:
            self._mark(group_id)

    def _answer(self, problem: TargetProblem) -> InstallTarget:
        install = self._run(problem)
        assert isinstance(install, InstallTarget)
        ours = install.target
        self._held.discard(problem.group_id)
        target = self._current.pop(problem.group_id)
        assert target.epoch == problem.group_epoch, problem.group_id
        numbers = {member_id: number for number, member_id in enumerate(problem.member_ids)}
        kafkas = np.full(len(ours), NOBODY, np.int32)
        for number, place in enumerate(list_places(problem)):
            owner = target.owners.pop(place, None)
            if owner is not None:
                kafkas[number] = numbers[MemberId(owner)]
        assert not target.owners, f"Kafka's target has more: {target.owners}"
        self.judged.append(Judged(problem, ours, kafkas))
        return compute_install(problem, kafkas)


def list_places(problem: TargetProblem) -> Iterator[Place]:
    """The partitions of a problem, in its order."""
    for topic in problem.topics:
        for partition in range(topic.partitions):
            yield topic.topic_id, partition


def load_targets() -> dict[str, list[Target]]:
    """All targets that Kafka's log has, by group."""
    members: dict[str, dict[str, list[Place]]] = {}
    found: dict[str, list[Target]] = {}
    for record in logged_records():
        if record["type"] not in (TARGET_MEMBER, TARGET_METADATA):
            continue
        key, value = record["keyJson"], record["valueJson"]
        of_group = members.setdefault(key["groupId"], {})
        if record["type"] == TARGET_MEMBER:
            of_group[key["memberId"]] = [
                (decode_uuid(topic["topicId"]), partition)
                for topic in (value or {"topicPartitions": ()})["topicPartitions"]
                for partition in topic["partitions"]
            ]
        elif value is not None:
            owners = {place: member for member, places in of_group.items() for place in places}
            target = Target(record["timestamp"], value["assignmentEpoch"], owners)
            found.setdefault(key["groupId"], []).append(target)
    return found


class Event(NamedTuple):
    at_ms: int
    exchange: Exchange | None
    command: Command | None
    is_idle: bool = False


class WireReplay:
    """A server, the connections of the recorded clients, and what is to happen."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self.server = VirtualServer(settings=SETTINGS, store=MemoryLogStore(PARTITIONS))
        self.server.scheduler.wall_offset_ms = START_MS
        settings = replace(GatewaySettings(), gateway_park_ms=0)
        self._gateway = Gateway(
            settings,
            coordinator=self.server.runtime,
            clock=SchedulerClock(self.server.scheduler),
        )
        self.targets = RecordedTargets(self.server)
        self._doors: dict[int, Door] = {}
        self._epochs: dict[tuple[str, str], int] = {}
        self._exchanges = sorted(exchanges, key=lambda row: row["requestTs"])

    def run(self) -> Iterator[Replayed]:
        """Each exchange, in the order of the requests."""
        for event in sorted(self._list_events(), key=lambda event: event.at_ms):
            self.server.scheduler.run_until(event.at_ms)
            if event.command is not None:
                self.server.ask(event.command)
            if event.exchange is not None:
                answer = self._send(event.exchange, is_idle=event.is_idle)
                if not event.is_idle:
                    yield Replayed(event.exchange, answer)

    def _list_events(self) -> Iterator[Event]:
        yield from list_topic_changes()
        yield from list_markers()
        yield from list_unrecorded_commits()
        last: dict[tuple[str, str], Exchange] = {}
        for row in self._exchanges:
            at_ms = row["requestTs"] - START_MS
            yield Event(at_ms, row, None)
            if row["apiKey"] != HEARTBEAT:
                continue
            if member_of(row) in last:
                yield from list_idle_heartbeats(last[member_of(row)], at_ms)
            last[member_of(row)] = row

    def _send(self, row: Exchange, *, is_idle: bool) -> dict[str, Any]:
        number = row["connection"]
        if number not in self._doors:
            self._doors[number] = self._gateway.connect()
        door = self._doors[number]
        self.targets.begin(row, is_idle=is_idle)
        door.send(self._make_request(row, is_idle=is_idle))
        self.server.settle()
        assert not self.server.failures, self.server.failures
        (data,) = door.frames()
        answer = decode_answer(row, data)
        if row["apiKey"] == HEARTBEAT:
            assert not (is_idle and answer["errorCode"]), f"{member_of(row)}: {answer}"
            self._epochs[member_of(row)] = answer["memberEpoch"]
        return answer

    def _make_request(self, row: Exchange, *, is_idle: bool) -> bytes:
        if not is_idle:
            data = bytes.fromhex(row["request"])
            return struct.pack(">i", len(data)) + data
        group_id, member_id = member_of(row)
        idle = make_request(
            HEARTBEAT,
            row["version"],
            **beat(group_id, member_id, self._epochs[group_id, member_id]),
        )
        return frame(HEARTBEAT, row["version"], row["correlationId"], idle, row["clientId"])


def member_of(heartbeat: Exchange) -> tuple[str, str]:
    request = heartbeat["requestJson"]
    return request["groupId"], request["memberId"]


def list_topic_changes() -> Iterator[Event]:
    for topic in TOPICS:
        command: Command = CreateTopic(
            INTERNAL,
            TopicName(topic.name),
            TopicId(decode_uuid(topic.topic_id)),
            topic.partitions,
        )
        yield Event(topic.at_ms, None, command)
    for name, partitions, at_ms in GROWTH:
        yield Event(at_ms, None, GrowTopic(INTERNAL, TopicName(name), partitions))
    for name, at_ms in DELETIONS:
        yield Event(at_ms, None, DeleteTopic(INTERNAL, TopicName(name), None))


def list_markers() -> Iterator[Event]:
    """The ends of transactions, which the transaction coordinator wrote and no client sent."""
    for record in control_records():
        command = WriteTxnMarkers(
            INTERNAL,
            LogPartition(record["partition"]),
            ProducerId(record["producerId"]),
            record["producerEpoch"],
            record["coordinatorEpoch"],
            record["type"] == "control:COMMIT",
        )
        yield Event(record["timestamp"] - START_MS, None, command)


def list_unrecorded_commits(groups: Collection[str] = UNRECORDED_COMMITS) -> Iterator[Event]:
    """Commits of clients that spoke to the broker past the recorder, but not those of members."""
    for record in logged_records():
        key, value = record["keyJson"], record["valueJson"]
        if record["type"] != "OFFSET_COMMIT" or key["group"] not in groups:
            continue
        if value is None or record["isTransactional"]:
            continue
        row = key["partition"], value["offset"], value["leaderEpoch"], value["metadata"]
        topics = (TopicOffsets(TopicName(key["topic"]), None, make_offset_columns([row])),)
        command = OffsetCommit(INTERNAL, GroupId(key["group"]), MemberId(""), None, topics)
        yield Event(record["timestamp"] - START_MS, None, command)


def list_idle_heartbeats(last: Exchange, until_ms: int) -> Iterator[Event]:
    """Those that the recording left out: nothing was said, and nothing answered."""
    answer = last["responseJson"]
    if answer["errorCode"] or answer["memberEpoch"] < 0:
        return
    earliest_ms = last["requestTs"] - START_MS + HEARTBEAT_INTERVAL_MS // 2
    # A client goes on one interval after its last heartbeat: the next one tells when those were.
    for at_ms in range(until_ms - HEARTBEAT_INTERVAL_MS, earliest_ms, -HEARTBEAT_INTERVAL_MS):
        yield Event(at_ms, last, None, is_idle=True)


def decode_answer(row: Exchange, data: bytes) -> dict[str, Any]:
    target = response_type(row["apiKey"], row["version"])
    start = 5 if target.__header_schema__.__flexible__ else 4
    return entity_to_json(decode(target, data, start, len(data), 100_000))


def load_replayed() -> list[Exchange]:
    """All exchanges of the APIs that are replayed."""
    return [row for row in load_exchanges() if row["apiKey"] in REPLAYED]
