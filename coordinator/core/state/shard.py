"""The state of one shard: the groups of one log partition, and what they are handled against."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from coordinator.core.state.classic_group import ClassicGroup
from coordinator.core.state.client_assignor_state import LocalRequest
from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.foreign_groups import ForeignGroup
from coordinator.core.state.metadata_hash import TopicHashes
from coordinator.core.state.open_transactions import OpenTransactions
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.side_records import ProducerGroupValue, ProducerStateValue
from model.topics import TopicImage


@dataclass(slots=True)
class GroupState:
    """What the records of one log partition say. Changed by ``coordinator.core.replay`` alone.

    A start replays the same records and comes to the same state. ``offset_groups`` are the ids of
    groups that have committed offsets; the offsets themselves are in the store and are read when
    asked for. ``classic_groups`` are as their last records say.
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
    """What is known of a producer by what it said in each group since its last marker."""
    groups_by_topic: dict[TopicName, set[GroupId]] = field(default_factory=dict)


@dataclass(slots=True)
class SoftState:
    """What is known of groups beside their records; the shell's, and gone after a restart.

    ``live_classic_groups`` are classic groups as they are since their last record. The shell puts
    in what an outcome says; the next record of the group takes it out again. ``local_requests``
    are assignments that members are to compute. ``being_deleted`` are groups that lose very many
    offsets, batch by batch, and then go: to whoever asks they are there until then.
    ``topic_hashes`` is the cache of ``compute_metadata_hash``.
    """

    live_classic_groups: dict[GroupId, ClassicGroup] = field(default_factory=dict)
    local_requests: dict[GroupId, LocalRequest] = field(default_factory=dict)
    being_deleted: set[GroupId] = field(default_factory=set)
    topic_hashes: TopicHashes = field(default_factory=dict)


@dataclass(slots=True)
class Shard:
    """What commands are handled against. ``image`` is replaced by the runtime.

    ``state`` is what records say, and replay's alone. Whoever else wants to know it reads it
    here: these are the same objects, by types that have no changes, so that a handler that
    changes one is refused by the type checker, and a read costs no more than one attribute.
    """

    partition: LogPartition
    settings: CoordinatorSettings
    image: TopicImage
    group_settings: Mapping[GroupId, CoordinatorSettings] = field(default_factory=dict)
    """What is in force for groups that have settings of their own; the catalogue's."""
    soft: SoftState = field(default_factory=SoftState)
    state: GroupState = field(default_factory=GroupState)

    consumer_groups: Mapping[GroupId, ConsumerGroup] = field(init=False, repr=False, compare=False)
    classic_groups: Mapping[GroupId, ClassicGroup] = field(init=False, repr=False, compare=False)
    """As their records say; ``classic_group`` is how they are now."""
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

    def settings_of(self, group_id: GroupId) -> CoordinatorSettings:
        """The settings that are in force for a group."""
        return self.group_settings.get(group_id, self.settings)

    def classic_group(self, group_id: GroupId) -> ClassicGroup | None:
        """A classic group as it is now."""
        live = self.soft.live_classic_groups.get(group_id)
        return self.classic_groups.get(group_id) if live is None else live

    def all_classic_groups(self) -> Mapping[GroupId, ClassicGroup]:
        """All of them, as they are now."""
        return {**self.classic_groups, **self.soft.live_classic_groups}

    def has_consumer(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Whether it is a member of a consumer group, and not a static one that is away."""
        group = self.consumer_groups.get(group_id)
        member = None if group is None else group.member(member_id)
        return member is not None and member.member_epoch >= 0

    def has_simple_group(self, group_id: GroupId) -> bool:
        """Whether there are offsets for that id, committed or waiting for a marker."""
        return group_id in self.offset_groups or self.open_transactions.has_group(group_id)

    def has_other_group(self, group_id: GroupId) -> bool:
        """Whether there is a group of that id which is no consumer group.

        A group that only has offsets is a classic group.
        """
        return (
            group_id in self.classic_groups
            or group_id in self.soft.live_classic_groups
            or self.has_simple_group(group_id)
            or group_id in self.foreign_groups
        )
