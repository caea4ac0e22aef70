"""Tokens of a partition strictly increase, whatever happens to its group, to the log and the clock.

The real runtime serves members of both protocols. What guards a store with tokens hears each answer
(S40), and the state is looked at after each step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from model.caller import INTERNAL
from model.commands.classic import JoinGroup, JoinProtocol, MemberAssignment, SyncGroup
from model.commands.command import Command
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.commands.groups import ConvertToClassicGroup, DeleteGroup
from model.commands.topics import GrowTopic
from model.errors import GroupError
from model.ids import GroupId, InstanceId, LogPartition, MemberId, TopicName, compute_log_partition
from model.responses.classic import JoinGroupResponse
from muster.assignors import embedded
from storage.codec.record_codec import decode_key
from storage.transfer.import_side import SideImport, compute_side, move_side
from tests.sim.checkers.guarded_stores import GuardedStores
from tests.sim.checkers.violations import Violation
from tests.support.memory import MemoryLogStore
from tests.support.storage.appends import Pair, append, mark_all
from tests.support.virtual.server import CALLER, VirtualServer

GROUPS = st.sampled_from(["g", "h"])
DYNAMIC, STATIC, CLASSIC = ("a", "b", "c"), ("i1", "i2"), ("k1", "k2")
MEMBERS = st.sampled_from(DYNAMIC + STATIC)
SUBSCRIPTION = embedded.encode_subscription(embedded.make_subscription(("t",), None, [], 3), 3)
SESSION_MS = 45_000
REBALANCE_MS = 60_000
JOIN_MS = 3_000
"""How long a classic group waits for its first members."""


class Held(NamedTuple):
    """Who holds a partition, ``None`` for nobody, and the highest token that it had."""

    holder: str | None
    token: int


class Place(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int


class TokenMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = VirtualServer({"t": 3}, partitions=2)
        self.stores = GuardedStores()
        self.held: dict[Place, Held] = {}
        self.places = 3
        self.joins = 0

    # ----------------------------------------------------------------------------------- looking

    def ask(self, command: Command) -> Any:
        answer = self.server.ask(command)
        try:
            self.stores.watch(command, lambda _: None)(answer)
        except Violation as violation:
            raise AssertionError(violation) from None  # An exception that can be shrunk.
        is_new = (
            isinstance(command, ConsumerGroupHeartbeat)
            and command.member_epoch == 0
            and not isinstance(answer, GroupError)
        )
        self.look((command.group_id, command.member_id) if is_new else None)  # type: ignore[union-attr]
        return answer

    def look(self, begun: tuple[str, str] | None = None) -> None:
        """Each partition has a higher token than any before, if it has passed to another."""
        seen = dict.fromkeys(self.held, False)
        for group in self.server.runtime.groups():
            for member in group.members():
                is_begun = (group.group_id, member.member_id) == begun
                numbers = sorted((*member.assigned, *member.pending_revocation))
                tokens = group.numbers.tokens_of(numbers, group.token_of)
                for topic, given in zip(
                    group.numbers.topic_partitions(numbers), tokens, strict=True
                ):
                    for partition, token in zip(topic.partitions, given, strict=True):
                        place = Place(group.group_id, topic.topic_id, partition)
                        self.note(place, member.member_id, token, is_begun)
                        seen[place] = True
        for place, is_held in seen.items():
            if not is_held:
                self.held[place] = Held(None, self.held[place].token)

    def note(self, place: Place, holder: str, token: int, is_begun: bool) -> None:
        before = self.held.get(place, Held(None, 0))
        assert token >= before.token, f"{place}: {token} after {before}"
        if holder != before.holder or is_begun:
            assert token > before.token, f"{place} passed to {holder}, still with {token}"
        self.held[place] = Held(holder, token)

    # ----------------------------------------------------------------------------------- members

    @rule(group=GROUPS, name=MEMBERS)
    def join(self, group: str, name: str) -> None:
        """A newcomer, or who comes back at epoch 0, fenced, restarted, or asking twice."""
        command = self.server.join_command(group, name, ("t",))
        if name in STATIC:
            command = replace(command, instance_id=InstanceId("i"))
        self.ask(command)

    @rule(group=GROUPS, name=MEMBERS)
    def acknowledge(self, group: str, name: str) -> None:
        if self.server.runtime.has_member(GroupId(group), MemberId(name)):
            self.ask(self.server.acknowledge_command(group, name))

    @rule(group=GROUPS)
    def acknowledge_all(self, group: str) -> None:
        for name in DYNAMIC + STATIC:
            self.acknowledge(group, name)

    @rule(group=GROUPS, name=MEMBERS, for_a_while=st.booleans())
    def leave(self, group: str, name: str, for_a_while: bool) -> None:
        is_static = name in STATIC
        epoch = -2 if is_static and for_a_while else -1
        instance = InstanceId("i") if is_static else None
        self.ask(ConsumerGroupLeave(CALLER, GroupId(group), MemberId(name), epoch, instance))

    @rule(for_ms=st.sampled_from([1, SESSION_MS // 2, SESSION_MS, 2 * REBALANCE_MS]))
    def wait(self, for_ms: int) -> None:
        """Sessions, rebalance timeouts and grace periods end."""
        self.server.advance(for_ms)
        self.look()

    @rule(group=GROUPS, grace_ms=st.sampled_from([0, REBALANCE_MS]))
    def set_grace(self, group: str, grace_ms: int) -> None:
        change = ConfigChange("consumer.leave.grace.ms", ConfigOperation.SET, str(grace_ms))
        self.server.ask(AlterGroupConfigs(INTERNAL, GroupId(group), (change,)))

    @rule(partitions=st.integers(1, 2))
    def grow(self, partitions: int) -> None:
        self.places = min(self.places + partitions, 8)
        self.server.ask(GrowTopic(INTERNAL, TopicName("t"), self.places))
        self.look()

    # ------------------------------------------------------------------------ groups, conversions

    @rule(group=GROUPS, name=st.sampled_from(CLASSIC))
    def join_classic(self, group: str, name: str) -> None:
        """A new member of the classic protocol; the leader takes all partitions for itself."""
        self.joins += 1
        protocols = (JoinProtocol("range", SUBSCRIPTION),)
        joining = self.server.submit(
            JoinGroup(
                CALLER, GroupId(group), None, MemberId(f"{name}-{self.joins}"), SESSION_MS,
                REBALANCE_MS, "consumer", protocols, requires_member_id=False,
            )
        )  # fmt: skip
        for _ in range(2 * REBALANCE_MS // JOIN_MS):
            if not joining.is_answered:
                self.server.advance(JOIN_MS)
        self.look()
        joined = joining.answer
        if not isinstance(joined, JoinGroupResponse):
            return
        everything = embedded.Assignment(
            (embedded.TopicPartitions("t", tuple(range(self.places))),), None
        )
        given = [
            MemberAssignment(
                member.member_id,
                embedded.encode_assignment(
                    everything if member.member_id == joined.leader else NOTHING, 3
                ),
            )
            for member in joined.members
        ]
        sync = SyncGroup(CALLER, GroupId(group), joined.member_id, joined.generation, tuple(given))
        self.server.submit(sync)
        self.server.settle()
        self.look()

    @rule(group=GROUPS)
    def convert(self, group: str) -> None:
        self.ask(ConvertToClassicGroup(INTERNAL, GroupId(group)))

    @rule(group=GROUPS)
    def delete(self, group: str) -> None:
        """All members leave, and the group goes."""
        for live in list(self.server.runtime.groups()):
            if live.group_id == group:
                for member in list(live.members()):
                    self.server.leave(group, member.member_id)
        self.look()
        self.ask(DeleteGroup(INTERNAL, GroupId(group)))

    # -------------------------------------------------------------------- the log, and the clock

    @rule(back_ms=st.sampled_from([0, 0, 1, 3_600_000]))
    def restart(self, back_ms: int) -> None:
        self.turn_back(back_ms)
        self.server.restart()
        self.look()

    @rule(group=GROUPS, name=st.sampled_from(DYNAMIC), survivors=st.integers(0, 3))
    def crash(self, group: str, name: str, survivors: int) -> None:
        """Nobody hears what was answered."""
        self.server.submit(self.server.join_command(group, name, ("t",)))
        self.server.restart(survivors)
        self.look()

    @rule(back_ms=st.sampled_from([0, 1, 3_600_000]), partitions=st.integers(1, 3))
    def move(self, back_ms: int, partitions: int) -> None:
        """Export the current state, and import it elsewhere: groups are hashed anew."""
        self.server.crash()
        store, ends = self.server.store, []
        pairs: dict[int, list[Pair]] = {number: [] for number in range(partitions)}
        for number in map(LogPartition, range(store.partitions)):
            ends.append(store.next_offset(number))
            for entry in store.latest(number):
                key: Any = decode_key(entry.key)
                group_id = key.group_id if hasattr(key, "group_id") else key.group
                pairs[compute_log_partition(group_id, partitions)].append((entry.key, entry.value))
        moved = MemoryLogStore(partitions)
        append(moved, {number: found for number, found in pairs.items() if found})
        numbers = list(map(LogPartition, range(partitions)))
        side = move_side(list(store.side()), partitions, numbers, max(ends))
        moved.write((), compute_side((), SideImport(records=side), -1))
        mark_all(moved)
        self.turn_back(back_ms)
        self.server.store = moved
        self.server.start()
        self.look()

    def turn_back(self, back_ms: int) -> None:
        """The clock is set back, or is another machine's."""
        self.server.scheduler.wall_offset_ms -= back_ms


NOTHING = embedded.Assignment((), None)


TestTokens = TokenMachine.TestCase
TestTokens.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
