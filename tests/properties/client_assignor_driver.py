"""Members that bring assignors, on the real runtime in virtual time: truthful, slow, or wrong.

Members tell the truth about what they own and take their time to give it up. What they compute may
be right, stale or illegal; they may lose their streams, leave, or be expired; the server may die.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.runtime.api import Answer
from coordinator.runtime.targets.client_assignments import Offer
from model.caller import INTERNAL
from model.client_assignors import ClientAssignor
from model.commands.client_assignment import (
    ComputedAssignment,
    InstallAssignment,
    PrepareAssignment,
    PrepareAssignmentResponse,
)
from model.commands.topics import GrowTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, MemberId, TopicName
from model.log.records import TopicPartitions
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.responses.response import Done
from tests.support.invariants import check_group
from tests.support.members import Member, to_topics
from tests.support.shadow import Place, describe_shards, places
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
LIMIT_MS = 10_000
INTERVAL_MS = 1_000


class Client(Member):
    """A member with an assignor, its stream, and what it has prepared."""

    def __init__(
        self, name: str, topics: tuple[str, ...], local: tuple[ClientAssignor, ...]
    ) -> None:
        super().__init__(G, MemberId(name))
        self.topics = topics
        self.local = local
        self.offer: Offer | None = None
        self.prepared: list[PrepareAssignmentResponse] = []
        self.generations: list[int] = []
        """Those that its assignor was told of."""


class LocalDriver:
    """One group, ``G``."""

    def __init__(self) -> None:
        settings = CoordinatorSettings(assignor_time_limit_ms=LIMIT_MS)
        self.server = VirtualServer({"foo": 3, "bar": 2}, settings=settings)
        self.clients: dict[str, Client] = {}
        self.installed = 0
        """How many assignments of members were put in force."""

    # -------------------------------------------------------------------------------- members

    def join(self, name: str, topics: tuple[str, ...], local: tuple[ClientAssignor, ...]) -> None:
        """A new member, or one that says something else of itself."""
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = Client(name, topics, local)
        client.topics, client.local = topics, local
        command = replace(client.compose_full(topics), client_assignors=local)
        self._hear(name, self.server.ask(command))
        if name in self.clients:
            self.offer(name)

    def beat(self, name: str) -> None:
        """A heartbeat that says all that it owns."""
        command = self.clients[name].compose_partial(says_owned=True)
        self._hear(name, self.server.ask(command))

    def _hear(self, name: str, answer: Answer) -> None:
        if isinstance(answer, GroupError):
            self.forget(name)
            return
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        client = self.clients[name]
        client.hear(answer)
        client.owned |= client.told or set()
        if answer.client_assignment is not None:
            assert client.local, "who names no assignor is told of none"
            assert answer.client_assignment.generation == answer.member_epoch
            if answer.client_assignment.generation not in client.generations:
                client.generations.append(answer.client_assignment.generation)
            assert answer.client_assignment.metadata == f"for {name}".encode()

    def give_up(self, name: str) -> None:
        """It stops with all that it was told to give up."""
        self.clients[name].revoke()

    def leave(self, name: str) -> None:
        self.server.leave(G, name)
        self.forget(name)

    def forget(self, name: str) -> None:
        """It is no member any more, or will not hear of it: it owns nothing."""
        self.withdraw(name)
        del self.clients[name]

    def offer(self, name: str) -> None:
        """Its stream is there."""
        client = self.clients[name]
        self.withdraw(name)
        if client.local:
            local = self.server.runtime.client_assignments
            client.offer = local.offer(G, MemberId(name), lambda: None)

    def withdraw(self, name: str) -> None:
        """Its stream is gone."""
        offer, self.clients[name].offer = self.clients[name].offer, None
        if offer is not None:
            offer.withdraw()

    # ----------------------------------------------------------------------------- assignments

    def call_for_an_assignment(self) -> None:
        """Everybody's stream is there, and the group waits."""
        for name in self.clients:
            self.offer(name)
        group = self.server.group(G) if self.clients else None
        if group is not None and group.target_epoch == group.group_epoch:
            self.grow("foo")

    def prepare(self, name: str) -> None:
        client = self.clients[name]
        command = PrepareAssignment(CALLER, G, MemberId(name), client.epoch)
        answer = self.server.ask(command)
        if isinstance(answer, PrepareAssignmentResponse):
            assert answer.group_epoch == self.server.group(G).group_epoch
            client.prepared.append(answer)

    def install(self, name: str, how: str, pick: int) -> None:
        """One of those that it has prepared, as it is right or wrong in some way."""
        client = self.clients[name]
        if not client.prepared:
            return
        prepared = client.prepared[-1 - pick % len(client.prepared)]
        members = compute_members(prepared, pick)
        is_legal = spoil(members, prepared, how)
        group = self.server.group(G)
        request = self.server.runtime.shards[
            self.server.runtime.partition_of(G)
        ].soft.client_assignment_requests.get(G)
        is_asked = (
            request is not None
            and not request.is_given_up
            and request.member_id == name
            and request.group_epoch == prepared.group_epoch == group.group_epoch
            and group.target_epoch < group.group_epoch
        )
        epochs = group.group_epoch, group.target_epoch
        command = InstallAssignment(
            CALLER, G, MemberId(name), client.epoch, prepared.group_epoch, tuple(members)
        )
        answer = self.server.ask(command)
        if not is_asked:
            assert isinstance(answer, GroupError), "what is stale, or not asked for, is refused"
            assert epochs == (group.group_epoch, group.target_epoch)
            return
        assert isinstance(answer, Done) == is_legal, (how, answer)
        assert group.target_epoch == group.group_epoch, "it is in force, or the server's is"
        if is_legal:
            self.installed += 1
            for member in members:
                entry = group.entries[member.member_id]
                target = group.numbers.topic_partitions(entry.target or ())
                assert to_topics(places(target)) == to_topics(places(member.partitions))

    # --------------------------------------------------------------------------------- the world

    def grow(self, name: str) -> None:
        topic = self.server.runtime.image.by_name[TopicName(name)]
        self.server.ask(GrowTopic(INTERNAL, topic.name, topic.partitions + 1))

    def advance(self, duration_ms: int) -> None:
        """Those who are expired meanwhile stop by themselves."""
        self.server.advance(duration_ms)
        self._drop_expired()

    def _drop_expired(self) -> None:
        members = {m.member_id for group in self.server.runtime.groups() for m in group.members()}
        for name in [name for name in self.clients if name not in members]:
            self.forget(name)

    def restart(self) -> None:
        """The server dies; all that it answered is there afterwards."""
        before = self.describe()
        for client in self.clients.values():
            client.offer = None
        self.server.restart()
        assert self.describe() == before, "live == replayed"

    def describe(self) -> object:
        """All that lasts."""
        local = {
            group.group_id: (
                group.client_assignor_state.assignors,
                group.client_assignor_state.installed,
            )
            for group in self.server.runtime.groups()
            if group.client_assignor_state is not None
        }
        return describe_shards(self.server.runtime.shards), local

    # ------------------------------------------------------------------------------------- laws

    def check(self) -> None:
        """No partition has two owners, by what members do and by what the coordinator says."""
        owners: dict[Place, str] = {}
        for name, client in self.clients.items():
            for place in client.owned:
                other = owners.setdefault(place, name)
                assert other == name, f"{place} is owned by {other} and {name}"
        for group in self.server.runtime.groups():
            check_group(group)
            ids = {member.member_id for member in group.members()}
            if group.client_assignor_state is not None:
                assert not group.client_assignor_state.is_empty
                assert (
                    group.client_assignor_state.assignors.keys()
                    | group.client_assignor_state.installed.keys()
                    <= ids
                )
                epochs = {
                    each.assignment_epoch for each in group.client_assignor_state.installed.values()
                }
                assert epochs <= {group.target_epoch}, "metadata go with their target"
        assert not self.server.failures

    def settle(self) -> None:
        """Nobody computes any more, and all of it comes to an end: each partition has an owner."""
        for name in self.clients:
            self.withdraw(name)
        self.advance(LIMIT_MS + INTERVAL_MS)
        for _ in range(6):
            for name in sorted(self.clients):
                if name in self.clients:
                    self.give_up(name)
                    self.beat(name)
            self.check()
            self.advance(INTERVAL_MS)
        for group in self.server.runtime.groups():
            if group.member_count:
                assert group.target_epoch == group.group_epoch
        if self.clients:
            subscribed = {name for client in self.clients.values() for name in client.topics}
            image = self.server.runtime.image
            owned = {place for client in self.clients.values() for place in client.owned}
            group = self.server.group(G)
            if group.client_assignor_state is None or not group.client_assignor_state.installed:
                assert owned == {
                    (topic.topic_id, partition)
                    for topic in image.by_name.values()
                    if topic.name in subscribed
                    for partition in range(topic.partitions)
                }


def compute_members(prepared: PrepareAssignmentResponse, pick: int) -> list[ComputedAssignment]:
    """A legal assignment: in turns, begun at ``pick``, among who subscribes."""
    given: dict[MemberId, set[Place]] = {member.member_id: set() for member in prepared.members}
    turn = pick
    for topic in prepared.topics:
        takers = [m.member_id for m in prepared.members if topic.name in m.subscribed_topic_names]
        for partition in range(topic.partitions):
            given[takers[turn % len(takers)]].add((topic.topic_id, partition))
            turn += 1
    version = prepared.version
    return [
        ComputedAssignment(name, to_topics(owned), version, f"for {name}".encode())
        for name, owned in given.items()
    ]


RIGHT, PARTIAL, TWO_OWNERS, TWICE, BEYOND, STRANGER, UNSUBSCRIBED, NEWER = (
    "right", "partial", "two owners", "twice", "beyond", "stranger", "unsubscribed", "newer",
)  # fmt: skip
WAYS = (RIGHT, RIGHT, PARTIAL, TWO_OWNERS, TWICE, BEYOND, STRANGER, UNSUBSCRIBED, NEWER)


def spoil(members: list[ComputedAssignment], prepared: PrepareAssignmentResponse, how: str) -> bool:
    """Make it wrong, if it can be in that way; whether it is legal still."""
    first, partitions = members[0], members[0].partitions
    match how:
        case "partial":
            members[0] = replace(first, partitions=())
            return True
        case "two owners" if len(members) > 1 and partitions:
            mixed = to_topics(places(members[1].partitions) | places(partitions))
            members[1] = replace(members[1], partitions=mixed)
        case "twice":
            members.append(first)
        case "beyond" if partitions:
            topic = partitions[0]
            members[0] = replace(first, partitions=(TopicPartitions(topic.topic_id, (1_000,)),))
        case "stranger":
            members.append(replace(first, member_id=MemberId("nobody"), partitions=()))
        case "unsubscribed":
            names = set(prepared.members[0].subscribed_topic_names)
            others = [topic for topic in prepared.topics if topic.name not in names]
            if not others:
                return True
            for number, member in enumerate(members):
                members[number] = replace(member, partitions=())
            members[0] = replace(first, partitions=(TopicPartitions(others[0].topic_id, (0,)),))
        case "newer":
            members[0] = replace(first, version=prepared.version + 1)
        case _:
            return True
    return False
