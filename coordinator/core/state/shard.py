"""The state of one shard: the groups of one log partition, and the inputs of their commands."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.consumer.client_assignor_state import ClientAssignmentRequest
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.foreign_groups import ForeignGroup
from coordinator.core.state.metadata_hash import TopicHashes
from coordinator.core.state.open_transactions import OpenTransactions
from coordinator.core.state.reset_of_group import ResetOfGroup
from coordinator.core.state.tokens import Tokens
from model.configs.coordinator_settings import CoordinatorSettings
from model.group_freeze import GroupFreeze
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.side_records import ProducerGroupValue, ProducerStateValue
from model.places import GroupPlace
from model.topics import TopicImage


@dataclass(slots=True)
class GroupState:
    """The state derived from one log partition. Only ``coordinator.core.replay`` modifies it.

    Loading replays the same records and arrives at the same state. ``offset_groups`` are the ids of
    groups that have committed offsets; the offsets themselves are in the store and read on demand.
    ``classic_groups`` are as of their last records.
    """

    consumer_groups: dict[GroupId, ConsumerGroup] = field(default_factory=dict)
    classic_groups: dict[GroupId, ClassicGroup] = field(default_factory=dict)
    foreign_groups: dict[GroupId, ForeignGroup] = field(default_factory=dict)
    offset_groups: set[GroupId] = field(default_factory=set)
    open_transactions: OpenTransactions = field(default_factory=OpenTransactions)
    producers: dict[ProducerId, ProducerStateValue] = field(default_factory=dict)
    producer_groups: dict[ProducerId, dict[GroupId, ProducerGroupValue]] = field(
        default_factory=dict
    )
    """The state of a producer in each group, from its offset commits since its last marker."""
    groups_by_topic: dict[TopicName, set[GroupId]] = field(default_factory=dict)
    places: dict[GroupId, GroupPlace] = field(default_factory=dict)
    """Where groups are that are not in the cluster, for a Muster in front of one."""
    tokens: Tokens = field(default_factory=Tokens, compare=False)
    """The fencing tokens to come; a load starts them anew, above all others."""
    resets: dict[GroupId, ResetOfGroup] = field(default_factory=dict)
    """The last reset of the offsets of each group that had members then."""
    freezes: dict[GroupId, GroupFreeze] = field(default_factory=dict)
    """The groups whose rebalancing is frozen."""


@dataclass(slots=True)
class SoftState:
    """State that is not derived from records; the runtime owns it, and a restart loses it.

    ``live_classic_groups`` are the classic groups that have changed since their last record: the
    runtime installs the value of an outcome, and the next record of the group removes it.
    ``client_assignment_requests`` are the assignments that members are asked to compute.
    ``being_deleted`` are groups whose very many offsets are being deleted batch by batch; until the
    end they count as existing. ``topic_hashes`` is the cache of ``compute_metadata_hash``.
    ``unsound_groups`` violated invariants when they were loaded. ``is_stopped`` once a command
    would have violated one: no other is taken.
    """

    live_classic_groups: dict[GroupId, ClassicGroup] = field(default_factory=dict)
    client_assignment_requests: dict[GroupId, ClientAssignmentRequest] = field(default_factory=dict)
    being_deleted: set[GroupId] = field(default_factory=set)
    topic_hashes: TopicHashes = field(default_factory=dict)
    unsound_groups: set[GroupId] = field(default_factory=set)
    is_stopped: bool = False


@dataclass(slots=True)
class Shard:
    """The input of command handlers. The runtime replaces ``image``.

    Only replay may use ``state``. Everybody else reads the attributes here: the same objects by
    read-only types, so that the type checker rejects a handler that modifies them, and a read costs
    one attribute access.
    """

    # More than 15 attributes: one for each part of the state that handlers read.

    partition: LogPartition
    settings: CoordinatorSettings
    image: TopicImage
    group_settings: Mapping[GroupId, CoordinatorSettings] = field(default_factory=dict)
    """The effective settings of groups that have group configs; the catalogue owns them."""
    soft: SoftState = field(default_factory=SoftState)
    state: GroupState = field(default_factory=GroupState)

    consumer_groups: Mapping[GroupId, ConsumerGroup] = field(init=False, repr=False, compare=False)
    classic_groups: Mapping[GroupId, ClassicGroup] = field(init=False, repr=False, compare=False)
    """As of their last records; ``classic_group`` has the current value."""
    foreign_groups: Mapping[GroupId, ForeignGroup] = field(init=False, repr=False, compare=False)
    offset_groups: Set[GroupId] = field(init=False, repr=False, compare=False)
    open_transactions: OpenTransactions = field(init=False, repr=False, compare=False)
    producers: Mapping[ProducerId, ProducerStateValue] = field(
        init=False, repr=False, compare=False
    )
    producer_groups: Mapping[ProducerId, Mapping[GroupId, ProducerGroupValue]] = field(
        init=False, repr=False, compare=False
    )
    groups_by_topic: Mapping[TopicName, Set[GroupId]] = field(init=False, repr=False, compare=False)
    places: Mapping[GroupId, GroupPlace] = field(init=False, repr=False, compare=False)
    resets: Mapping[GroupId, ResetOfGroup] = field(init=False, repr=False, compare=False)
    freezes: Mapping[GroupId, GroupFreeze] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        state = self.state
        self.consumer_groups = state.consumer_groups
        self.classic_groups = state.classic_groups
        self.foreign_groups = state.foreign_groups
        self.offset_groups = state.offset_groups
        self.open_transactions = state.open_transactions
        self.producers = state.producers
        self.producer_groups = state.producer_groups
        self.groups_by_topic = state.groups_by_topic
        self.places = state.places
        self.resets = state.resets
        self.freezes = state.freezes

    @property
    def next_token(self) -> int:
        """The fencing token of the partitions that the next command passes to a member."""
        return self.state.tokens.next

    @property
    def token_of_load(self) -> int:
        """The token of partitions that had their owner when the log partition was loaded."""
        return self.state.tokens.of_load

    def settings_of(self, group_id: GroupId) -> CoordinatorSettings:
        """The effective settings of a group: its group configs over those of the server."""
        return self.group_settings.get(group_id, self.settings)

    def classic_group(self, group_id: GroupId) -> ClassicGroup | None:
        """A classic group as it is now."""
        live = self.soft.live_classic_groups.get(group_id)
        return self.classic_groups.get(group_id) if live is None else live

    def all_classic_groups(self) -> Mapping[GroupId, ClassicGroup]:
        """All classic groups, as they are now."""
        return {**self.classic_groups, **self.soft.live_classic_groups}

    def has_consumer(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Whether it is a member of a consumer group, other than a static one that has left."""
        group = self.consumer_groups.get(group_id)
        member = None if group is None else group.member(member_id)
        return member is not None and member.member_epoch >= 0

    def holds_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Whether a group of either protocol has the member, also one that has not joined yet."""
        consumers = self.consumer_groups.get(group_id)
        if consumers is not None and consumers.member(member_id) is not None:
            return True
        classic = self.classic_group(group_id)
        return classic is not None and (
            member_id in classic.members or member_id in classic.pending_members
        )

    def holds_group(self, group_id: GroupId) -> bool:
        """Whether the group exists, if only by its offsets."""
        return (
            group_id in self.consumer_groups
            or self.classic_group(group_id) is not None
            or self.has_simple_group(group_id)
        )

    def has_simple_group(self, group_id: GroupId) -> bool:
        """Whether the group has offsets, committed or pending in a transaction."""
        return group_id in self.offset_groups or self.open_transactions.has_group(group_id)

    def has_other_group(self, group_id: GroupId) -> bool:
        """Whether a group with that id exists that is not a consumer group.

        A group that only has offsets counts as a classic group.
        """
        return (
            group_id in self.classic_groups
            or group_id in self.soft.live_classic_groups
            or self.has_simple_group(group_id)
            or group_id in self.foreign_groups
        )
