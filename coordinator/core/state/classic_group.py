"""A classic group: what its one record says, and what its members do since.

The record of type 2 is what lasts. From it alone a group is Stable with members and Empty without
(Kafka's ``GroupMetadataManager.replay`` of ``GroupMetadataValue``). The states in between, who
waits for what, and what members said but for the protocol that was chosen are of a rebalance that
is under way: no record has them, and after a restart the members join again.

One rebalance is known by the record: that of a group that was a consumer group. Its members were
told no generation, and nobody that it leads, so the record of a downgrade names no leader; it is
PreparingRebalance until the first generation is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from operator import attrgetter

from coordinator.core.state.classic_states import ClassicGroupState as ClassicGroupState
from coordinator.core.state.embedded_protocol import PROTOCOL_TYPE, decode_subscribed_topics
from model.commands import JoinProtocol
from model.errors import UnknownServerError
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from model.value import value

LAST_GENERATION = (1 << 31) - 1

RECORD_MAX_BYTES = 128 * 1024 * 1024
"""What members say and are assigned, all together, in the one record of their group."""

NO_TIMESTAMP = -1
NO_TIMEOUT = -1


class Phase(Enum):
    """The two phases of a rebalance; in each a member may wait for its answer."""

    JOIN = "join"
    SYNC = "sync"


@value
class ClassicMember:
    """A member.

    ``metadata`` is what it said for the protocol that was chosen, ``protocols`` all that it said
    last. ``awaits`` says which answer it waits for. ``is_new`` until it knows its id for sure:
    until the end of the join phase that it came in. ``awaits_id`` where the answer that it waits
    for is the first that names its id: without it its client comes again as another member.
    """

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    metadata: bytes
    assignment: bytes
    protocols: tuple[JoinProtocol, ...] = ()
    awaits: Phase | None = None
    is_new: bool = False
    awaits_id: bool = False

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """What the member said for a protocol; nothing where it does not follow it."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return b""

    # Made outright: ``replace`` asks each field, and there may be thousands, all in one turn.

    def in_generation(self, protocol_name: str | None) -> ClassicMember:
        """The member when a generation begins that follows this protocol."""
        metadata = self.metadata_for(protocol_name)
        awaits = None if self.awaits is Phase.JOIN else self.awaits
        return self._make(metadata, self.assignment, awaits, is_new=False, awaits_id=False)

    def assigned(self, assignment: bytes) -> ClassicMember:
        """The member with this assignment, or none, and nothing more to wait for in this phase."""
        awaits = None if self.awaits is Phase.SYNC else self.awaits
        return self._make(self.metadata, assignment, awaits, self.is_new, self.awaits_id)

    def _make(
        self,
        metadata: bytes,
        assignment: bytes,
        awaits: Phase | None,
        is_new: bool,
        awaits_id: bool,
    ) -> ClassicMember:
        who = self.member_id, self.instance_id, self.client_id, self.client_host
        both_ms, said = (self.rebalance_timeout_ms, self.session_timeout_ms), self.protocols
        return ClassicMember(*who, *both_ms, metadata, assignment, said, awaits, is_new, awaits_id)


_get_lasting = attrgetter(
    "member_id",
    "instance_id",
    "client_id",
    "client_host",
    "rebalance_timeout_ms",
    "session_timeout_ms",
    "metadata",
    "assignment",
)
"""What the record of a group has of a member, in its order."""


def compute_size(protocols: Iterable[JoinProtocol]) -> int:
    """Bytes of what a member says of its protocols."""
    return sum(len(protocol.name) + len(protocol.metadata) for protocol in protocols)


@value
class InitialDelay:
    """An empty group fills: how long it waits now, and how much longer it may (KIP-134)."""

    delay_ms: int
    left_ms: int
    has_new_member: bool = False


class UpgradeChecks:
    """What is in the way of an upgrade, by the rules: found once for a value; a cache, no state."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[object, str] = {}


@value
class ClassicGroup:
    """One classic group, with its members in the order in which they came.

    ``protocol_type`` and ``protocol_name`` are ``None`` where no member has said one.
    ``current_state_timestamp_ms`` is the wall time since which the group is in its state, ``None``
    in records of old versions. ``subscribed_topics`` are those of all members; ``None`` where
    the group is not of the type ``consumer`` or a member's metadata cannot be read.

    ``instances`` are the static members, ``protocol_counts`` says how many members follow each
    protocol. ``pending_members`` have been given an id and are to join with it, ``pending_syncs``
    have not asked for their assignment yet. ``initial_delay`` is there while an empty group fills.
    ``metadata_bytes`` is what all members say of their protocols.
    """

    # More than 15 attributes: one value, as the group is at one time.

    group_id: GroupId
    state: ClassicGroupState
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: MemberId | None
    current_state_timestamp_ms: int | None
    members: Mapping[MemberId, ClassicMember]
    subscribed_topics: frozenset[TopicName] | None
    instances: Mapping[InstanceId, MemberId] = field(default_factory=dict)
    protocol_counts: Mapping[str, int] = field(default_factory=dict)
    awaiting_joins: int = 0
    pending_members: frozenset[MemberId] = frozenset()
    pending_syncs: frozenset[MemberId] = frozenset()
    initial_delay: InitialDelay | None = None
    metadata_bytes: int = 0
    upgrade_checks: UpgradeChecks = field(
        init=False, default_factory=UpgradeChecks, repr=False, compare=False
    )


def compute_classic_group(
    group_id: GroupId,
    record: GroupMetadataValue,
    subscribed_topics: frozenset[TopicName] | None = None,
) -> ClassicGroup:
    """The group that a record of type 2 stands for. Where nobody leads it has to rebalance.

    What members said is read, unless ``subscribed_topics`` are known.
    """
    name = record.protocol or ""
    members = {member.member_id: _member(member, name) for member in record.members}
    with_members = (
        ClassicGroupState.PREPARING_REBALANCE if record.leader is None else ClassicGroupState.STABLE
    )
    since_ms = record.current_state_timestamp
    return ClassicGroup(
        group_id,
        with_members if members else ClassicGroupState.EMPTY,
        record.generation,
        record.protocol_type or None,
        record.protocol,
        record.leader if record.leader is not None else next(iter(members), None),
        None if since_ms == NO_TIMESTAMP else since_ms,
        members,
        compute_subscribed_topics(record.protocol_type, record.protocol, members)
        if subscribed_topics is None
        else subscribed_topics,
        {own: each.member_id for each in members.values() if (own := each.instance_id) is not None},
        {name: len(members)} if members else {},
        metadata_bytes=sum(len(name) + len(each.metadata) for each in members.values()),
    )


def _member(member: ClassicGroupMember, protocol_name: str) -> ClassicMember:
    session_ms, timeout_ms = member.session_timeout, member.rebalance_timeout
    # Records of version 0 have none.
    timeout_ms = session_ms if timeout_ms == NO_TIMEOUT else timeout_ms
    who = member.member_id, member.group_instance_id, member.client_id, member.client_host
    metadata = member.subscription
    said = (JoinProtocol(protocol_name, metadata),)
    return ClassicMember(*who, timeout_ms, session_ms, metadata, member.assignment, said)


def compute_subscribed_topics(
    protocol_type: str | None,
    protocol_name: str | None,
    members: Mapping[MemberId, ClassicMember],
) -> frozenset[TopicName] | None:
    """The topics that the members subscribe to, where that can be known."""
    if protocol_type != PROTOCOL_TYPE:
        return None
    if protocol_name is None and members:
        return None
    return compute_topics_said({member.metadata for member in members.values()})


def compute_topics_said(metadata: Iterable[bytes]) -> frozenset[TopicName] | None:
    """The topics of these subscriptions; ``None`` where one of them cannot be read."""
    topics: set[TopicName] = set()
    for each in metadata:
        said = decode_subscribed_topics(each)
        if said is None:
            return None
        topics.update(said)
    return frozenset(topics)


def compute_new_group(group_id: GroupId, wall_ms: int) -> ClassicGroup:
    """A group that nobody has joined yet."""
    empty = ClassicGroupState.EMPTY
    return ClassicGroup(group_id, empty, 0, None, None, None, wall_ms, {}, None)


def compute_next_generation(generation: int) -> int:
    """Kafka's would go below 0, which says that there is none; nobody has one that was so low."""
    return 1 if generation >= LAST_GENERATION else generation + 1


def compute_group_record(group: ClassicGroup) -> Record:
    """The group as its record of type 2.

    Raises ``UnknownServerError``, as Kafka answers a record that is too large, before anything of
    it is replayed: what cannot be written must not be in memory.
    """
    size = sum(len(each.metadata) + len(each.assignment) for each in group.members.values())
    if size > RECORD_MAX_BYTES:
        raise UnknownServerError(
            f"Group {group.group_id} has {size} bytes of metadata and assignments, more than "
            f"{RECORD_MAX_BYTES}: its record cannot be written."
        )
    since_ms = group.current_state_timestamp_ms
    value = GroupMetadataValue(
        group.protocol_type or "",
        group.generation,
        group.protocol_name,
        group.leader,
        NO_TIMESTAMP if since_ms is None else since_ms,
        tuple(ClassicGroupMember(*_get_lasting(member)) for member in group.members.values()),
    )
    return Record(GroupMetadataKey(group.group_id), value)
