"""A whole cluster in one thread from one seed: clients, network, server, disk."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH
from coordinator.runtime.api import Answer
from coordinator.runtime.offsets.offset_reads import decode_stored_offsets
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat, ExpireMember
from model.commands.offsets import ExpireOffsets
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.configs.migration_policy import BIDIRECTIONAL, MIGRATION_POLICIES
from model.ids import (
    GroupId,
    LogPartition,
    MemberId,
    TopicId,
    TopicName,
    compute_log_partition,
)
from model.log.records import OffsetCommitKey, Record
from storage.codec.record_codec import encode_key
from tests.sim.checkers.classic_checkers import ClassicChecker
from tests.sim.checkers.command_checkers import check_live_group
from tests.sim.checkers.guarded_stores import GuardedStores
from tests.sim.checkers.liveliness import Liveliness
from tests.sim.checkers.log_checkers import DurableFacts, LogChecker
from tests.sim.checkers.observed import ObservedRuntime
from tests.sim.checkers.offset_model import LOG_PARTITIONS, NO_OFFSET, OffsetModel
from tests.sim.checkers.violations import Violation, check
from tests.sim.clients.classic_client import ClassicClient
from tests.sim.clients.client import Client
from tests.sim.clients.session_client import Connection, SessionClient
from tests.sim.clients.transactions import TransactionCoordinator
from tests.sim.cluster.door import AnswerChecker, WireDoor
from tests.sim.cluster.network import Network
from tests.sim.cluster.process import ServerProcess
from tests.sim.cluster.session_door import Action, Sessions, Stream, Update
from tests.sim.conversions import STAGES, Conversion, Kind
from tests.sim.faults import Faults
from tests.sim.tables import Pair
from tests.support.memory import MemoryLogStore
from tests.support.shadow import Place
from tests.support.virtual.disk import SimDisk, Write
from tests.support.virtual.scheduler import VirtualScheduler
from tests.support.virtual.server import make_topic_id

GROUPS = ("alpha", "beta")
SIMPLE_GROUP = "simple"
TOPICS = {"foo": 5, "bar": 3, "baz": 4}
TURNS_MAX = 20_000
CLASSIC_SIZES = (3, 4, 100, 100)
"""How many members a classic group may have."""


def choose_settings(rng: random.Random, faults: Faults) -> CoordinatorSettings:
    """Timeouts, and how targets are computed."""
    is_slow = "slow assignor" in faults.on
    session_ms = rng.choice((6_000, 10_000, 20_000))
    return CoordinatorSettings(
        group_consumer_session_timeout_ms=session_ms,
        group_consumer_min_session_timeout_ms=session_ms,
        group_consumer_max_session_timeout_ms=2 * session_ms,
        group_consumer_heartbeat_interval_ms=rng.choice((1_000, 2_000)),
        group_consumer_min_heartbeat_interval_ms=500,
        group_consumer_max_heartbeat_interval_ms=3_000,
        # A clock that leaps makes offsets old.
        offsets_retention_minutes=rng.choice((10_080, 50)),
        offsets_retention_check_interval_ms=3_000,
        group_consumer_assignment_interval_ms=rng.choice((0, 0, 1_000)),
        assignor_inline_budget_ms=0 if is_slow else 5,
        flush_records_max=rng.choice((3, 5_000, 5_000)),
        group_consumer_regex_batch_refresh_min_interval_ms=rng.choice((0, 300)),
        group_consumer_regex_refresh_interval_ms=12_000,
        # The log is trimmed all the time: what it loses must not be missed.
        log_history_bytes=4_000,
        log_history_check_interval_ms=1_500,
        # By time and by keys, so that they fall anywhere between writes and crashes.
        log_checkpoint_interval_ms=700,
        log_checkpoint_keys=40,
        group_consumer_migration_policy=rng.choice((*MIGRATION_POLICIES, BIDIRECTIONAL)),
        group_initial_rebalance_delay_ms=rng.choice((0, 500, 2_000)),
        group_max_size=rng.choice(CLASSIC_SIZES),
        offsets_transactional_commits=rng.choice(("all", "all", "members")),
        transaction_max_timeout_ms=rng.choice((900_000, 8_000)),
    )


def _shorten(what: object) -> str:
    """A command or an answer in few words: its repr takes longer than handling it."""
    if isinstance(what, int | tuple | None):
        return str(what)
    member_id, epoch = getattr(what, "member_id", ""), getattr(what, "member_epoch", "")
    return f"{type(what).__name__} {member_id} {epoch}"


class World:
    """Everything there is in one seed. It ends with ``Violation`` where an invariant is broken."""

    def __init__(self, seed: int, verbose: bool = False) -> None:
        self.seed = seed
        self.verbose = verbose
        self.random = rng = random.Random(seed)
        self.faults = self._choose_faults(rng)
        self.settings = self._choose_settings(rng)
        self.time = VirtualScheduler()
        self.network = Network(self.time, rng, self.faults)
        self.trace = hashlib.blake2b(digest_size=8)
        self.reached: Counter[Pair] = Counter()
        self.delivered = 0
        self.answered = 0
        self.parks = rng.random() < 0.5
        self.clients: list[Client] = []
        self.by_member: dict[tuple[GroupId, MemberId], Client] = {}
        self.owners: dict[tuple[GroupId, Place], Client] = {}
        self.topic_names: dict[TopicId, TopicName] = {}
        self._incarnations: Counter[str] = Counter()
        self._offset = 0
        self._turns = 0
        self.log = LogChecker()
        self.facts = DurableFacts()
        self.offsets = OffsetModel()
        self.coordinator = TransactionCoordinator(self)
        self.checker = AnswerChecker(self.facts, self.offsets, self.coordinator, self.topic_names)
        self.lively = Liveliness()
        self.stores = GuardedStores()
        self.classic = ClassicChecker(
            self.lively, lambda: self.time.now_ms, self._on_gone, self._on_in
        )
        self.on_died: Callable[[Client], None] = lambda client: client.crash()
        self.conversion: Conversion | None = None
        self.conversion_crashes_left = 5
        self._member_ids = 0
        self.disk = SimDisk(
            MemoryLogStore(LOG_PARTITIONS),
            on_write=self._on_write,
            on_sync=self._on_sync,
            is_stalled=lambda: self.faults.strikes("store stall"),
        )
        self.is_up = False
        self.start_server()
        for name, partitions in self._choose_topics(rng).items():
            self.create_topic(name, partitions)
        self.run_for(5)

    def _choose_faults(self, rng: random.Random) -> Faults:
        return Faults.choose(rng)

    def _choose_settings(self, rng: random.Random) -> CoordinatorSettings:
        return choose_settings(rng, self.faults)

    def _choose_topics(self, _: random.Random) -> Mapping[str, int]:
        return TOPICS

    # --------------------------------------------------------------------------------- tracing

    def note(self, *what: object) -> None:
        """One event of the trace: the same seed gives the same hash."""
        if self.verbose:
            print(self.time.now_ms, *what)
        words = " ".join([word if isinstance(word, str) else _shorten(word) for word in what])
        self.trace.update(f"{self.time.now_ms} {words}\n".encode())

    # --------------------------------------------------------------------------------- process

    def start_server(self) -> None:
        """A process begins on what the disk has."""
        self.note("start")
        self.process = self._make_process()
        self.runtime = ObservedRuntime(
            self.disk,
            self.settings,
            clock=self.process,
            scheduler=self.process,
            on_failure=self._on_failure,
            keep_evidence=self._on_evidence,
            reached=self.reached,
            clock_ms=lambda: self.time.now_ms,
            on_expired=self._on_expired,
            on_removed=self._on_removed,
            on_joined=self._on_joined,
            lively=self.lively,
            stores=self.stores,
            log_offsets=lambda: self.log.offsets,
            on_expiring=self._on_expiring,
            on_converted=self._on_converted,
            on_timed_out=self.coordinator.note_timed_out,
            classic=self.classic,
        )
        self.runtime.load()
        self.log.rebuild(self.disk.writes)
        self.runtime.note_loaded()
        self._open_doors()
        self.is_up = True

    def _open_doors(self) -> None:
        """The doors of a process that begins."""
        self.door = WireDoor(self.process, self.runtime, self.checker, self.parks)
        self.sessions = Sessions(self.process, self.runtime, self.door)

    def _make_process(self) -> ServerProcess:
        return ServerProcess(self.time, self._blocking_ms, self._computing_ms)

    def crash_server(self) -> None:
        """The process dies; what was not synced may be lost, from the end."""
        self.faults.note("server crash")
        self.process.is_dead = True
        self.is_up = False
        self.conversion = None
        survivors = self.disk.unsynced
        if "writes lost" in self.faults.on:
            survivors = self.random.randint(0, survivors)
        lost = self.disk.crash(survivors)
        if lost:
            self.faults.happened["writes lost"] += lost
        self.note("crash", survivors, lost)
        self.time.call_later_ms(self.random.choice((1, 200, 3_000)), self.restart_server)

    def _on_converted(self, kind: Kind, group_id: str, records: tuple[Record, ...]) -> None:
        """A group becomes one of another type; the server may die of it."""
        self.note("converted", group_id, kind)
        self.reached["conversion", "made", kind] += 1
        crash_at = None
        if self.conversion_crashes_left and self.faults.is_on("server crash"):
            crash_at = self.random.choice(STAGES)
        self.conversion = Conversion(kind, group_id, records, crash_at)

    def crash_in_conversion(self) -> None:
        """Between two turns, where this conversion is to end so."""
        conversion = self.conversion
        if conversion is None or not self.is_up:
            return
        conversion.turns += conversion.is_durable
        if conversion.is_due:
            self.conversion_crashes_left -= 1
            self.reached["conversion", conversion.stage, conversion.kind] += 1
            self.crash_server()

    def _follow_conversion(self, write: Write) -> None:
        """S21: all its records are in one write."""
        conversion = self.conversion
        if conversion is None or conversion.is_written:
            return
        found = [record in write.records for record in conversion.records]
        conversion.is_written = any(found)
        what = f"the {conversion.kind} of {conversion.group_id} is written in parts"
        check(all(found) or not any(found), "S21", what)

    def restart_server(self) -> None:
        """After a crash: nothing that was acknowledged is missing. Groups may be too large now."""
        if self.random.random() < 0.3:
            size = self.random.choice(CLASSIC_SIZES)
            self.settings = replace(self.settings, group_max_size=size)
        self.start_server()
        self.check_acknowledged()
        self.check_live("after a restart")

    def stall_server(self, duration_ms: int) -> None:
        """The process stands still (its disk goes on)."""
        self.faults.note("process stall")
        self.note("stall", duration_ms)
        self.process.stall(duration_ms)
        self.lively.stalls.append((self.time.now_ms, self.time.now_ms + duration_ms))

    def _blocking_ms(self) -> int:
        if self.faults.strikes("slow fsync"):
            return self.random.choice((20, 300, 2_000))
        return self.random.randint(0, 3)

    def _computing_ms(self) -> int:
        if self.faults.strikes("slow assignor"):
            return self.random.choice((10, 500, 4_000))
        return self.random.randint(0, 3)

    def _on_failure(self, failure: BaseException) -> None:
        if isinstance(failure, Violation):
            raise failure
        raise Violation("S12", f"the runtime gave up: {failure!r}") from failure

    def _on_evidence(self, partition: LogPartition, evidence: str) -> None:
        raise Violation("S1", f"log partition {partition} is stopped: {evidence}")

    def make_member_id(self, name: str) -> MemberId:
        """An id that no member had, as a door makes them."""
        self._member_ids += 1
        return MemberId(f"{name}~{self._member_ids}")

    def _on_gone(self, group_id: GroupId, member_id: MemberId, is_member: bool) -> None:
        client = self.by_member.get((group_id, member_id))
        # It may have another id by now.
        if isinstance(client, ClassicClient) and client.member_id == member_id:
            client.is_removed |= not is_member
            client.is_passed_over |= is_member

    def _on_in(self, group_id: GroupId, member_id: MemberId) -> None:
        client = self.by_member.get((group_id, member_id))
        if isinstance(client, ClassicClient) and client.member_id == member_id:
            client.is_removed = client.is_passed_over = False

    @property
    def longest_session_ms(self) -> int:
        """What a member may be promised by anybody."""
        if self.faults.happened["settings changed"]:
            return self.settings.group_consumer_max_session_timeout_ms
        return self.settings.group_consumer_session_timeout_ms

    def _on_expired(self, command: ExpireMember) -> None:
        self.note("expired", command.group_id, command.member_id, command.deadline)
        client = self._client_of(command)
        if client is not None:
            client.is_removed = True

    def _on_removed(self, group_id: GroupId, member_id: MemberId) -> None:
        """It does not know yet, and goes on until it is told."""
        client = self.by_member.get((group_id, member_id))
        if client is not None:
            client.is_removed = True

    def _on_joined(self, command: ConsumerGroupHeartbeat) -> None:
        client = self._client_of(command)
        if client is not None:
            client.is_removed = False

    def _on_expiring(self, command: ExpireOffsets) -> None:
        self.note("offsets expire", command.group_id, len(command.offsets))
        self.faults.note("offsets expired")
        places = [(command.group_id, topic, number) for topic, number in command.offsets]
        self.offsets.note_deleting(places)

    def rename(self, client: Client, member_id: MemberId) -> None:
        """A client goes on with another member id."""
        client.member_id = member_id
        client.is_removed = False
        self.by_member[client.group_id, member_id] = client

    def _client_of(self, command: ExpireMember | ConsumerGroupHeartbeat) -> Client | None:
        return self.by_member.get((command.group_id, command.member_id))

    def _on_write(self, write: Write) -> None:
        self._follow_conversion(write)
        for name in self.log.note_write(write):
            group_id = GroupId(name)
            group = self.runtime._shard_of(group_id).consumer_groups.get(group_id)
            if group is not None:
                check_live_group(group)

    def _on_sync(self, writes: Sequence[Write]) -> None:
        self.facts.note_sync(writes)
        conversion = self.conversion
        if conversion is not None and conversion.is_written and not conversion.is_durable:
            first = conversion.records[0]
            conversion.is_durable = any(first in write.records for write in writes)

    # ------------------------------------------------------------------------------- delivering

    def deliver(
        self, client: object, command: Command, send: Callable[[Answer], None], times: int = 1
    ) -> None:
        """A request reaches the machine of the server, and may do so twice."""
        if not self.is_up:
            return
        self.delivered += times
        self.note("request", command)
        process, door = self.process, self.door

        def answer(answer: Answer) -> None:
            self.note("answer", answer)
            send(answer)

        def receive() -> None:
            for _ in range(times):
                door.receive(client, command, answer)

        process.call_soon(receive)

    def deliver_to(self, client: Client, receive: Callable[[], None], answer: Any) -> None:
        """An answer or an update reaches the machine of the client."""
        self.answered += 1
        client.run(receive)

    def deliver_action(
        self,
        client: SessionClient,
        connection: Connection,
        sequence: int,
        action: Action,
        send: Callable[[Update], None],
    ) -> None:
        """A message of a stream reaches the machine of the server."""
        if not self.is_up or connection.process not in (None, self.process):
            connection.is_broken = True
            return
        self.delivered += 1
        self.note("action", sequence, action)
        if connection.server is None:
            key = (client.group_id, client.member_id)
            connection.server = Stream(self.sessions, key, send)
            connection.process = self.process
        server = connection.server
        self.process.call_soon(lambda: server.receive(sequence, action))

    # ---------------------------------------------------------------------------- transactions

    def partition_of(self, group: str) -> LogPartition:
        """The log partition of a group."""
        return compute_log_partition(GroupId(group), LOG_PARTITIONS)

    def choose_committer(self, rng: random.Random) -> tuple[str, str, int | None]:
        """A group, and for whom is committed: a member as it believes, or nobody in particular."""
        group = rng.choice((*GROUPS, SIMPLE_GROUP))
        members = [
            client
            for client in self.clients
            if client.group_id == group and client.believes and not client.is_out
        ]
        if members and rng.random() < 0.5:
            member = rng.choice(members)
            return group, member.member_id, member.epoch
        return group, "", None

    # ---------------------------------------------------------------------------------- topics

    def next_offset(self) -> int:
        """An offset that no other commit has."""
        self._offset += 1
        return self._offset

    def create_topic(self, name: str, partitions: int) -> None:
        """Ask for a topic, which gets an id that no topic had."""
        topic_id = make_topic_id(name, self._incarnations[name])
        self._incarnations[name] += 1
        self.topic_names[topic_id] = TopicName(name)
        self.admin(CreateTopic(INTERNAL, TopicName(name), topic_id, partitions))

    def admin(self, command: Command) -> None:
        """A request of a tool, which is not lost."""
        self.deliver(None, command, lambda _: None)

    # --------------------------------------------------------------------------------- running

    def step(self) -> None:
        """One turn of anybody. Time must pass sooner or later."""
        before_ms = self.time.now_ms
        self.time.step()
        if self.time.now_ms > before_ms:
            self._turns = 0
            return
        self._turns += 1
        check(self._turns < TURNS_MAX, "L2", "turns follow each other and no time passes")

    def run_for(self, duration_ms: int) -> None:
        """All turns of the next so many milliseconds, without faults between them."""
        end_ms = self.time.now_ms + duration_ms
        while (at_ms := self.time.next_event_ms()) is not None and at_ms <= end_ms:
            self.step()
        self.time.now_ms = end_ms

    # -------------------------------------------------------------------------------- checking

    def check_live(self, when: str) -> None:
        """S13, at a moment at which everything is written."""
        if self.is_up and not self.runtime.parts.writer.gathering.entries:
            self.log.check_live(self.runtime.shards, when)
        self.check_deadlines()

    def check_deadlines(self) -> None:
        """L3, L6: nobody is there for too long, and no phase lasts too long."""
        if self.is_up and not self.process.is_stalled:
            self.runtime.check_deadlines(self.longest_session_ms)

    def check_acknowledged(self) -> None:
        """S11 and S5 after a crash: what was acknowledged is there, by asking for it."""
        for place in self.offsets.places():
            group, topic, partition = place
            bounds = self.offsets.bounds(place)
            self.offsets.check(place, bounds, self.stored(group, topic, partition), "after a crash")
        live: dict[tuple[str, str], int] = {
            (group.group_id, member.member_id): member.member_epoch
            for group in self.runtime.groups()
            for member in group.members()
        }
        recorded = {
            (group.group_id, member_id)
            for shard in self.runtime.shards
            for group in shard.classic_groups.values()
            for member_id in group.members
        }
        for (group_id, member_id), highest in self.facts.highest.items():
            known = live.get((group_id, member_id))
            if known is not None and not self.facts.removals[group_id, member_id]:
                # One that has left for a while, not durably, may be as it was, and the reverse.
                check(
                    known >= highest or known == STATIC_LEAVE_EPOCH,
                    "S5",
                    f"{member_id} is at {known} after {highest}",
                )
        for client in self.clients:
            key = (client.group_id, client.member_id)
            # A removal that was not durable is undone.
            client.is_removed &= key not in live and key not in recorded
            if isinstance(client, ClassicClient):
                check_synced = client.is_settled and not client.is_removed
                is_there = key in live or key in recorded or self.facts.removals[key] > 0
                check(not check_synced or is_there, "S11", f"{key} has synced, and is no member")
            elif client.epoch > 0 and not client.is_removed and not self.facts.removals[key]:
                check(key in live, "S11", f"{key} joined, and is no member after a crash")

    def stored(self, group: str, topic: str, partition: int) -> int:
        """The offset that the store has."""
        group_id = GroupId(group)
        number = compute_log_partition(group_id, LOG_PARTITIONS)
        key = encode_key(OffsetCommitKey(group_id, TopicName(topic), partition))
        entry = self.disk.get_latest(number, key)
        found = () if entry is None else decode_stored_offsets((entry,))
        return next((stored.value.offset for stored in found), NO_OFFSET)
