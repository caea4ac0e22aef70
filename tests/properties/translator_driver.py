"""The core by hand with classic members beside those of the consumer protocol in one group.

Classic members do what the clients of Kafka do: eager ones give up everything before they join
again, cooperative ones (KIP-429) what the assignment lacks once they have it, and then they join
again. What each believes that it owns is kept by the driver, which lets nobody own what another
does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.core.consumer.pending_changes import has_pending_change, has_to_rejoin
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from model.caller import INTERNAL
from model.commands.classic import (
    ClassicDeadline,
    ClassicHeartbeat,
    ExpireClassicDeadline,
    JoinGroup,
    JoinProtocol,
    SyncGroup,
)
from model.commands.consumer import LeaveGroup, LeavingMember
from model.errors import (
    ErrorCode,
    FencedInstanceId,
    GroupError,
    IllegalGeneration,
    RebalanceInProgress,
    UnknownMemberId,
)
from model.ids import InstanceId, MemberId, TopicName
from model.responses.classic import (
    ClassicHeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from model.responses.response import Response
from muster.assignors import embedded
from tests.support.core_driver import CALLER, CoreDriver, G
from tests.support.invariants import check_group
from tests.support.shadow import Place, describe_shadow, describe_shards

ANCHOR = "z"
"""A member of the consumer protocol that stays, and with it the type of the group."""
NAMES = ("foo", "bar")
ROUNDS = 30
FIRST_ID = 0x100
"""Ids are of one letter: those of more make a static member of one of the consumer protocol."""


@dataclass
class ClassicClient:
    """What a classic member believes. It has to ``join``, then to ``sync``, then it is settled.

    It is no ``Member``: it is given its id, has a generation for an epoch, and owns what a sync
    says, not what a heartbeat does.
    """

    name: str
    is_cooperative: bool
    version: int
    instance_id: InstanceId | None
    member_id: MemberId | None = None
    generation: int = -1
    names: tuple[str, ...] = NAMES
    owned: set[Place] = field(default_factory=set)
    has_to: str = "join"

    def forget(self, keeps_id: bool) -> None:
        """It is told that it is of another generation, or no member at all: all is lost."""
        self.member_id, self.generation = self.member_id if keeps_id else None, -1
        self.owned.clear()
        self.has_to = "join"


class TranslatorDriver(CoreDriver):
    """One group, with members of both protocols."""

    def __init__(self) -> None:
        super().__init__()
        self.classic: dict[str, ClassicClient] = {}
        self._ids = 0

    # --------------------------------------------------------------------------------- members

    def start(self, name: str, is_cooperative: bool, version: int, is_static: bool) -> None:
        """A process of that name starts; one that ran before is dead."""
        instance_id = InstanceId(f"instance-{name}") if is_static else None
        self.classic[name] = ClassicClient(name, is_cooperative, version, instance_id)

    def classic_join(self, name: str, is_heard: bool = True) -> None:
        """Join, again or for the first time; the answer may be lost."""
        client = self.classic[name]
        if not client.is_cooperative:
            client.owned.clear()
        answer = self.carry_out(self.make_join(client))
        if isinstance(answer, GroupError) and answer.code is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id  # type: ignore[attr-defined]
            answer = self.carry_out(self.make_join(client))
        if not is_heard:
            return
        if isinstance(answer, GroupError):
            self._hear_error(client, answer)
            return
        assert isinstance(answer, JoinGroupResponse)
        assert answer.generation == self._epoch_of(answer.member_id), "S22"
        assert (answer.leader, answer.members) == (None, ())
        assert answer.protocol_name == "mine"
        client.member_id, client.generation = answer.member_id, answer.generation
        client.has_to = "sync"

    def make_join(self, client: ClassicClient) -> JoinGroup:
        self._ids += 1
        by_id = self.shard.image.by_id
        owned = [(by_id[topic].name, part) for topic, part in client.owned if topic in by_id]
        subscription = embedded.make_subscription(
            client.names, None, owned, client.generation if client.version >= 2 else -1
        )
        metadata = embedded.encode_subscription(subscription, client.version)
        return JoinGroup(
            CALLER,
            G,
            client.member_id,
            MemberId(chr(FIRST_ID + self._ids)),
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(JoinProtocol("mine", metadata), JoinProtocol("of-all", b"")),
            instance_id=client.instance_id,
        )

    def _epoch_of(self, member_id: MemberId) -> int:
        member = self.shard.consumer_groups[G].member(member_id)
        assert member is not None
        return member.member_epoch

    def classic_sync(self, name: str, is_heard: bool = True) -> None:
        """Ask for the assignment and follow it; the answer may be lost."""
        client = self.classic[name]
        if client.has_to != "sync" or client.member_id is None:
            return
        command = SyncGroup(
            CALLER,
            G,
            client.member_id,
            client.generation,
            instance_id=client.instance_id,
            protocol_type="consumer",
            protocol_name="mine",
        )
        answer = self.carry_out(command)
        if not is_heard:
            client.has_to = "join"
        elif isinstance(answer, GroupError):
            self._hear_error(client, answer)
        else:
            self._follow(client, answer)

    def _follow(self, client: ClassicClient, answer: Response) -> None:
        assert isinstance(answer, SyncGroupResponse)
        assert int.from_bytes(answer.assignment[:2], "big") == client.version, "T7"
        by_name = self.shard.image.by_name
        given = {
            (by_name[TopicName(topic.topic)].topic_id, partition)
            for topic in embedded.decode_assignment(answer.assignment).partitions
            for partition in topic.partitions
        }
        revoked = client.owned - given
        client.owned -= revoked
        for name, owned in self.all_owned():
            if name != client.name:
                assert not owned & given, f"S2: {owned & given} of {name} and {client.name}"
        client.owned = given
        client.has_to = "join" if revoked else "rest"

    def all_owned(self) -> list[tuple[str, set[Place]]]:
        """What everybody believes that it owns."""
        return [
            *((other.name, other.owned) for other in self.classic.values()),
            *((name, other.owned) for name, other in self.clients.items() if other.epoch > 0),
        ]

    def adopt(self, name: str) -> None:
        """Of a member of the consumer protocol: nobody else owns what it takes."""
        told = self.clients[name].told or frozenset()
        for other in self.classic.values():
            assert not other.owned & told, f"S2: {other.owned & told} of {other.name} and {name}"
        super().adopt(name)

    def classic_heartbeat(self, name: str) -> None:
        """Say that it is alive, and hear whether it has to join again."""
        client = self.classic[name]
        if client.member_id is None or client.generation < 0:
            return
        command = ClassicHeartbeat(
            CALLER, G, client.member_id, client.generation, client.instance_id
        )
        answer = self.carry_out(command)
        if isinstance(answer, GroupError):
            self._hear_error(client, answer)
        else:
            assert isinstance(answer, ClassicHeartbeatResponse)
            assert answer.park_max_ms > 0, "it has no step to take, and may wait for one"

    def _hear_error(self, client: ClassicClient, error: GroupError) -> None:
        match error:
            case RebalanceInProgress():
                client.has_to = "join"
            case UnknownMemberId() | IllegalGeneration():
                # An answer was lost that brought another generation, or it was removed.
                client.forget(keeps_id=isinstance(error, IllegalGeneration))
            case FencedInstanceId():
                raise AssertionError("nobody takes the place of a process that is alive")
            case _:
                raise AssertionError(str(error))

    def classic_leave(self, name: str) -> None:
        """For good, by the member or as the instance."""
        client = self.classic.pop(name)
        if client.member_id is not None:
            leaving = LeavingMember(client.member_id, client.instance_id)
            answer = self.carry_out(LeaveGroup(CALLER, G, (leaving,)))
            assert isinstance(answer, LeaveGroupResponse)

    def classic_expire(self, name: str, deadline: ClassicDeadline) -> None:
        """A deadline passes, and the process, which has one of its own, gives up."""
        client = self.classic.pop(name)
        if client.member_id is not None:
            command = ExpireClassicDeadline(INTERNAL, G, deadline, client.member_id)
            assert not isinstance(self.carry_out(command), GroupError)

    def turn_consumer(self, name: str) -> None:
        """The process is replaced by one of the consumer protocol that has its member id."""
        client = self.classic.pop(name)
        if client.member_id is not None and client.instance_id is None:
            self.join(client.member_id, NAMES)

    def turn_classic(self, name: str, is_cooperative: bool) -> None:
        """The other way round."""
        if name == ANCHOR:
            return
        consumer = self.clients.pop(name)
        client = ClassicClient(name, is_cooperative, 3, None, consumer.member_id)
        self.classic[name] = client
        self.classic_join(name)

    # -------------------------------------------------------------------------------- checking

    def check(self) -> None:
        """Invariants of the state, S13, and what is counted of classic members."""
        for group in self.shard.consumer_groups.values():
            check_group(group)
            self._check_counts(group)
            for member in group.members():
                if member.classic is not None:
                    has_step = has_to_rejoin(group, member)
                    assert has_pending_change(self.shard, G, member.member_id) == has_step
        assert describe_shards([self.shard]) == describe_shadow(self.shadow), "S13"

    @staticmethod
    def _check_counts(group: ConsumerGroup) -> None:
        classic = [each.classic for each in group.members() if each.classic is not None]
        assert group.classic_member_count == len(classic)
        counts: dict[str, int] = {}
        for each in classic:
            for protocol in each.supported_protocols:
                counts[protocol.name] = counts.get(protocol.name, 0) + 1
        assert group.classic_protocols == counts

    def settle(self) -> None:
        """Everybody takes the steps that it is told of, until there are none: L1."""
        self._drop_members_of_nobody()
        self.are_targets_late = False
        self.installs.clear()
        group = self.shard.consumer_groups.get(G)
        for _ in range(ROUNDS):
            before = len(self.log)
            for name in sorted(self.clients):
                if self.clients[name].epoch == 0:
                    self.join(name, NAMES)
                self.adopt(name)
                self.say_everything(name, self.names_of(name))
                self.adopt(name)
                self.heartbeat(name, says_owned=True)
            for name in sorted(self.classic):
                self._step(name)
            self.check()
            is_at_rest = all(client.has_to == "rest" for client in self.classic.values())
            if len(self.log) == before and is_at_rest:
                break
        else:
            raise AssertionError("L1: it goes on and on")
        assert group is not None
        left = [each for each in group.members() if not each.is_reconciled_to(group.target_epoch)]
        seen = [(each.member_id, each.state, each.member_epoch) for each in left]
        assert group.state().value == "Stable", f"L1: {seen} at {group.target_epoch}"
        self._check_all_are_held(group)
        for client in self.classic.values():
            assert client.member_id is not None
            member = group.member(client.member_id)
            assert member is not None
            held = group.numbers.topic_partitions(member.assigned)
            assert client.owned == {(t.topic_id, p) for t in held for p in t.partitions}

    def _step(self, name: str) -> None:
        self.classic_heartbeat(name)
        if self.classic[name].has_to == "join":
            self.classic_join(name)
        self.classic_sync(name)

    def _drop_members_of_nobody(self) -> None:
        """Members whose process is gone, or never heard its id: their sessions end."""
        known = {client.member_id for client in self.classic.values()}
        group = self.shard.consumer_groups.get(G)
        for member in list(group.members()) if group is not None else ():
            if member.classic is not None and member.member_id not in known:
                session = ClassicDeadline.SESSION
                self.carry_out(ExpireClassicDeadline(INTERNAL, G, session, member.member_id))
