"""A classic group: its one durable record, and the rebalance in progress since that record.

Only the record of type 2 (``GroupMetadataValue``) is durable. A group loaded from it is Stable if
it has members and Empty if it has none (Kafka's ``GroupMetadataManager.replay``). The states in
between, the parked requests and the metadata for protocols other than the chosen one belong to a
rebalance in progress: no record holds them, and the members rejoin after a restart.

A downgrade is the exception. No member of the former consumer group has seen a generation or
learned who leads, so the record of a downgrade has no leader, and a group loaded from it is
PreparingRebalance until its first generation is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from operator import attrgetter

from coordinator.core.state.classic.classic_states import ClassicGroupState as ClassicGroupState
from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE, decode_subscribed_topics
from model.commands.classic import JoinProtocol
from model.errors import UnknownServerError
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from model.value import value

LAST_GENERATION = (1 << 31) - 1

RECORD_MAX_BYTES = 128 * 1024 * 1024
"""Limit on the metadata and assignments of all members together, in their group's one record."""

NO_TIMESTAMP = -1
NO_TIMEOUT = -1


class Phase(Enum):
    """The two phases of a rebalance, in each of which a member's request may be parked."""

    JOIN = "join"
    SYNC = "sync"


@value
class ClassicMember:
    """A member of a classic group.

    ``metadata`` is its metadata for the protocol of the generation; ``protocols`` are all protocols
    of its last JoinGroup. ``awaits`` is the phase in which its request is parked. ``is_new`` is
    true until the end of the join phase in which the member joined: until then its client may not
    know its member id. ``awaits_id`` is true if the parked response is the first to carry the
    member id: a client that misses it joins again as another member.
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
        """The member's metadata for a protocol; empty if it does not support the protocol.

        A member whose protocols are not known keeps what is known of it.
        """
        if not self.protocols:
            return self.metadata
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return b""

    # ``_make`` instead of ``replace``, which inspects each field: one event-loop iteration may
    # build thousands of members.

    def in_generation(self, protocol_name: str | None) -> ClassicMember:
        """The member at the start of a generation with this protocol."""
        metadata = self.metadata_for(protocol_name)
        awaits = None if self.awaits is Phase.JOIN else self.awaits
        return self._make(metadata, self.assignment, awaits, is_new=False, awaits_id=False)

    def assigned(self, assignment: bytes) -> ClassicMember:
        """The member with this assignment (empty for none), and no longer awaiting its sync."""
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
"""The fields of a member that the record of its group holds, in the order of the record."""


def compute_size(protocols: Iterable[JoinProtocol]) -> int:
    """The size of a member's protocols (names and metadata) in bytes."""
    return sum(len(protocol.name) + len(protocol.metadata) for protocol in protocols)


@value
class InitialDelay:
    """The delayed first rebalance of an empty group (KIP-134): the delay now, and what is left."""

    delay_ms: int
    left_ms: int
    has_new_member: bool = False


class UpgradeChecks:
    """A cache, not state: what prevents an upgrade, found once for a value of the group."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[object, str] = {}


@value
class ClassicGroup:
    """One classic group, with its members in the order in which they joined.

    ``protocol_type`` and ``protocol_name`` are ``None`` until a member has named one.
    ``current_state_timestamp_ms`` is the wall-clock time of the last change of state, ``None`` in
    records of old versions. ``subscribed_topics`` are the topics of all members, ``None`` if the
    protocol type is not ``consumer`` or a member's metadata cannot be decoded.

    ``instances`` are the static members; ``protocol_counts`` has the number of members that support
    each protocol. ``pending_members`` have been given a member id and have not joined with it yet;
    ``pending_syncs`` have not sent SyncGroup yet. ``initial_delay`` is set while the first
    rebalance of an empty group is delayed. ``metadata_bytes`` is the size of the protocols of all
    members. ``unknown_protocols`` is the number of members that have none yet: of a group that was
    taken over in the middle of a rebalance nobody says them until they rejoin.
    """

    # More than 15 attributes: one value holds the whole group at one time.

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
    unknown_protocols: int = 0
    upgrade_checks: UpgradeChecks = field(
        init=False, default_factory=UpgradeChecks, repr=False, compare=False
    )


def compute_classic_group(
    group_id: GroupId,
    record: GroupMetadataValue,
    subscribed_topics: frozenset[TopicName] | None = None,
) -> ClassicGroup:
    """Build the group from its record of type 2; with members and no leader, it must rebalance.

    Decodes the metadata of the members unless ``subscribed_topics`` is given.
    """
    name = record.protocol
    members = {member.member_id: _member(member, name) for member in record.members}
    said = {} if name is None or not members else {name: len(members)}
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
        said,
        metadata_bytes=sum(compute_size(each.protocols) for each in members.values()),
        unknown_protocols=0 if said else len(members),
    )


def _member(member: ClassicGroupMember, protocol_name: str | None) -> ClassicMember:
    session_ms, timeout_ms = member.session_timeout, member.rebalance_timeout
    # Records of version 0 have no rebalance timeout.
    timeout_ms = session_ms if timeout_ms == NO_TIMEOUT else timeout_ms
    who = member.member_id, member.group_instance_id, member.client_id, member.client_host
    metadata = member.subscription
    said = () if protocol_name is None else (JoinProtocol(protocol_name, metadata),)
    return ClassicMember(*who, timeout_ms, session_ms, metadata, member.assignment, said)


def compute_subscribed_topics(
    protocol_type: str | None,
    protocol_name: str | None,
    members: Mapping[MemberId, ClassicMember],
) -> frozenset[TopicName] | None:
    """The topics that the members subscribe to; ``None`` if they cannot be determined."""
    if protocol_type != PROTOCOL_TYPE:
        return None
    if protocol_name is None and members:
        return None
    return compute_topics_said({member.metadata for member in members.values()})


def compute_topics_said(metadata: Iterable[bytes]) -> frozenset[TopicName] | None:
    """The topics of these subscriptions; ``None`` if one of them cannot be decoded."""
    topics: set[TopicName] = set()
    for each in metadata:
        said = decode_subscribed_topics(each)
        if said is None:
            return None
        topics.update(said)
    return frozenset(topics)


def compute_new_group(group_id: GroupId, wall_ms: int) -> ClassicGroup:
    """A new group, without members."""
    empty = ClassicGroupState.EMPTY
    return ClassicGroup(group_id, empty, 0, None, None, None, wall_ms, {}, None)


def compute_next_generation(generation: int) -> int:
    """The generation after this one; after the last, 1.

    Kafka's would overflow below 0, which means "no generation" on the wire.
    """
    return 1 if generation >= LAST_GENERATION else generation + 1


def compute_group_record(group: ClassicGroup) -> Record:
    """The record of type 2 of the group.

    Raises ``UnknownServerError``, Kafka's answer to a record that is too large. This must precede
    replay: state that cannot be written must not be in memory.
    """
    size = sum(len(each.metadata) + len(each.assignment) for each in group.members.values())
    if size > RECORD_MAX_BYTES:
        raise UnknownServerError(
            f"The metadata and assignments of group {group.group_id} take {size} bytes, which "
            f"exceeds the maximum of {RECORD_MAX_BYTES}."
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
