"""A crash of the process at every point at which the writer lets go of the thread, and in every
call that it makes of the store: before it, and after it.

Some clients are at work: members join, leave and acknowledge, offsets are committed in and out of
transactions, a topic grows. Whatever stays of what was not synced, a restart has everything that
was answered (S11), is the replay of its log (S13), and goes on (L1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.runtime.api import Answer
from coordinator.runtime.commit.syncs import WATERMARK_SYNC_MS
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.offsets import TopicOffsets
from model.commands.topics import GrowTopic
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import Record
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from storage.codec.batches import decode_batch
from storage.codec.record_codec import decode_key, decode_value
from storage.log.fold import PartitionFold
from storage.log_store import LogStore
from tests.support.members import Member
from tests.support.memory import MemoryLogStore
from tests.support.shadow import Shadow, describe_shadow, describe_shards
from tests.support.virtual.server import CALLER, VirtualServer

SETTINGS = CoordinatorSettings(assignor_inline_budget_ms=0)
SYNC_MS, COMPUTE_MS = 7, 3
END_MS = 200
CALLS = ("write", "sync", "mark_durable", "sync_watermark")


class Killed(BaseException):
    """The process is gone: nothing of ours may catch it."""


class Clients:
    """What they ask at which time, and what they were told. Members own it at once."""

    def __init__(self, server: VirtualServer) -> None:
        self.server = server
        self.committed = -1
        self.asked = -1
        self.members: dict[str, Member] = {}
        self.gone: set[str] = set()
        self.partitions = 4
        self.transacted = False
        self._plan()

    def _plan(self) -> None:
        for at_ms, name in ((0, "a"), (1, "b"), (20, "c")):
            self._at(at_ms, lambda name=name: self._join(name))
        for at_ms in range(0, 110, 5):
            self._at(at_ms, self._commit)
        for at_ms in range(15, 110, 11):
            self._at(at_ms, self._acknowledge)
        self._at(33, self._transact)
        self._at(48, self._end_transaction)
        self._at(60, self._grow)
        self._at(75, lambda: self._leave("b"))

    def _at(self, at_ms: int, action: Callable[[], object]) -> None:
        self.server.scheduler.call_later_ms(at_ms, lambda: action() and None)

    def _ask(self, command: Command, told: Callable[[Any], None]) -> None:
        def reply(answer: Answer) -> None:
            assert not isinstance(answer, GroupError), answer
            told(answer)

        self.server.runtime.submit(command, reply)

    def _join(self, name: str) -> None:
        member = self.members[name] = Member(GroupId("g"), MemberId(name))
        self._beat(member, member.compose_full(["foo"]))

    def _beat(self, member: Member, command: ConsumerGroupHeartbeat) -> None:
        def reply(answer: Answer) -> None:
            # One that has left meanwhile is refused.
            if isinstance(answer, ConsumerGroupHeartbeatResponse):
                member.hear(answer)
                member.adopt()

        self.server.runtime.submit(command, reply)

    def _acknowledge(self) -> None:
        for member in self.members.values():
            if member.epoch:
                self._beat(member, member.compose_partial(says_owned=True))

    def _commit(self) -> None:
        self.asked += 1
        offset = self.asked

        def told(_: Answer) -> None:
            self.committed = max(self.committed, offset)

        self._ask(self.server.commit_command("simple", "", None, "foo", {0: offset}), told)

    def _transact(self) -> None:
        topics = (TopicOffsets(TopicName("foo"), None, make_offset_columns([(1, 5, -1, "")])),)
        self._ask(TxnOffsetCommit(CALLER, GroupId("txn"), ProducerId(7), 0, topics), lambda _: None)

    def _end_transaction(self) -> None:
        partition = self.server.runtime.partition_of(GroupId("txn"))

        def told(_: Answer) -> None:
            self.transacted = True

        self._ask(WriteTxnMarkers(CALLER, partition, ProducerId(7), 0, 0, True), told)

    def _grow(self) -> None:
        def told(_: Answer) -> None:
            self.partitions = 5

        self._ask(GrowTopic(INTERNAL, TopicName("foo"), 5), told)

    def _leave(self, name: str) -> None:
        leave = self.members.pop(name).compose_leave()
        self._ask(leave, lambda _: self.gone.add(name))

    # -------------------------------------------------------------------------------- checking

    def check(self) -> None:
        """After a restart: what they were told holds."""
        server = self.server
        stored = server.fetch("simple", "foo", 0)
        assert self.committed <= stored <= self.asked, "S11: a commit"
        assert server.runtime.image.by_name[TopicName("foo")].partitions >= self.partitions
        if self.transacted:
            assert server.fetch("txn", "foo", 1) == 5, "S11: a transaction"
        group = next((g for g in server.runtime.groups() if g.group_id == "g"), None)
        for name, told in self.members.items():
            member = None if group is None else group.member(told.member_id)
            if told.epoch:
                assert member is not None, f"S11: {name} had joined"
                assert member.member_epoch >= told.epoch, f"S5: {name} was told of {told.epoch}"
        for name in self.gone:
            assert group is not None
            assert group.member(MemberId(name)) is None, f"S11: {name} had left"


def check_replay(store: LogStore, server: VirtualServer) -> None:
    """S13, and that ``latest`` and ``pending`` are what the log comes to."""
    shadow = Shadow()
    for partition in map(LogPartition, range(store.partitions)):
        fold = PartitionFold()
        for data in store.read_log(partition):
            fold.apply(data)
            batch = decode_batch(data)
            for record in () if batch.is_control or batch.is_transactional else batch.records:
                assert record.key is not None
                kind = int.from_bytes(record.key[:2], "big")
                value = None if record.value is None else decode_value(kind, record.value)[1]
                shadow.apply(Record(decode_key(record.key), value))
        assert {entry.key: entry for entry in store.latest(partition)} == fold.latest
        pending = {(producer, entry.key): entry for producer, entry in store.pending(partition)}
        assert pending == {
            (producer, key): entry
            for producer, entries in fold.pending.items()
            for key, entry in entries.items()
        }
    assert describe_shards(server.runtime.shards) == describe_shadow(shadow)


def settle(server: VirtualServer) -> None:
    """L1: everybody comes, says what it owns, and does as told."""
    for _ in range(10):
        server.scheduler.run_for(SYNC_MS * 4)
        for member in list(server.group("g").members()):
            server.submit(server.acknowledge_command("g", member.member_id))
    server.scheduler.run_for(SYNC_MS * 4)
    group = server.group("g")
    assert group.state().value == "Stable"
    assert sorted(n for m in group.members() for n in m.assigned) == list(range(len(group.target)))


def begin() -> tuple[VirtualServer, Clients]:
    server = VirtualServer({"foo": 4}, settings=SETTINGS)
    server.advance(WATERMARK_SYNC_MS)
    server.scheduler.blocking_ms = lambda: SYNC_MS
    server.scheduler.computing_ms = lambda: COMPUTE_MS
    return server, Clients(server)


def restart_and_check(server: VirtualServer, clients: Clients, survivors: int) -> None:
    server.crash(survivors)
    server.scheduler.blocking_ms = server.scheduler.computing_ms = lambda: 0
    server.start()
    clients.check()
    check_replay(server.store, server)
    if any(group.group_id == "g" for group in server.runtime.groups()):
        settle(server)
        clients.check()
    check_replay(server.store, server)
    assert server.failures == []


def count_turns() -> int:
    server, _ = begin()
    turns = 0
    while (
        at_ms := server.scheduler.next_event_ms()
    ) is not None and at_ms <= WATERMARK_SYNC_MS + END_MS:
        server.scheduler.step()
        turns += 1
    return turns


def test_killed_between_any_two_turns() -> None:
    turns = count_turns()
    assert turns > 60
    lost = 0
    for turn in range(turns):
        survivors = 0
        while True:
            server, clients = begin()
            for _ in range(turn):
                server.scheduler.step()
            unsynced = server.store.unsynced_writes
            lost += unsynced - survivors
            restart_and_check(server, clients, survivors)
            survivors += 1
            if survivors > unsynced:
                break
    assert lost > 40, "there was something to lose at many of these points"


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", CALLS)
def test_killed_in_any_call_of_the_store(name: str, is_done: bool) -> None:
    number = 0
    while True:
        server, clients = begin()
        left = number
        real: Callable[..., object] = getattr(MemoryLogStore, name)

        def kill(*arguments: object, store: MemoryLogStore = server.store) -> None:
            nonlocal left
            left -= 1
            if left < 0 and not is_done:
                raise Killed
            real(store, *arguments)  # noqa: B023 - called within this round
            if left < 0:
                raise Killed

        setattr(server.store, name, kill)
        try:
            server.scheduler.run_for(END_MS)
        except Killed:
            restart_and_check(server, clients, 0)
            number += 1
        else:
            break
    assert number >= (1 if name == "sync_watermark" else 10)
