"""The state of one shard: the groups of one log partition, and what they are handled against."""

from __future__ import annotations

from collections.abc import Mapping
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
class Shard:
    """Changed by ``replay`` alone, but for ``image``, which the runtime replaces.

    ``offset_groups`` are the ids of groups that have committed offsets; the offsets themselves
    are in the store and are read when asked for.
    """

    partition: LogPartition
    settings: CoordinatorSettings
    image: TopicImage
    group_settings: Mapping[GroupId, CoordinatorSettings] = field(default_factory=dict)
    """What is in force for groups that have settings of their own; the catalogue's."""
    consumer_groups: dict[GroupId, ConsumerGroup] = field(default_factory=dict)
    classic_groups: dict[GroupId, ClassicGroup] = field(default_factory=dict)
    live_classic_groups: dict[GroupId, ClassicGroup] = field(default_factory=dict)
    """Classic groups as they are since their record; soft, and gone after a restart.

    The shell puts in what an outcome says; a record of the group replaces it.
    """
    local_requests: dict[GroupId, LocalRequest] = field(default_factory=dict)
    """Assignments that members are to compute; soft, and the shell's alone."""
    foreign_groups: dict[GroupId, ForeignGroup] = field(default_factory=dict)
    offset_groups: set[GroupId] = field(default_factory=set)
    being_deleted: set[GroupId] = field(default_factory=set)
    """Groups that lose very many offsets, batch by batch, and then go; soft, and the shell's."""
    open_transactions: OpenTransactions = field(default_factory=OpenTransactions)
    producers: dict[ProducerId, ProducerStateValue] = field(default_factory=dict)
    producer_groups: dict[ProducerId, dict[GroupId, ProducerGroupValue]] = field(
        default_factory=dict
    )
    """What is known of a producer by what it said in each group since its last marker."""
    groups_by_topic: dict[TopicName, set[GroupId]] = field(default_factory=dict)
    topic_hashes: TopicHashes = field(default_factory=dict)
    """A cache for ``compute_metadata_hash``; no state."""

    def settings_of(self, group_id: GroupId) -> CoordinatorSettings:
        """The settings that are in force for a group."""
        return self.group_settings.get(group_id, self.settings)

    def classic_group(self, group_id: GroupId) -> ClassicGroup | None:
        """A classic group as it is now."""
        live = self.live_classic_groups.get(group_id)
        return self.classic_groups.get(group_id) if live is None else live

    def all_classic_groups(self) -> Mapping[GroupId, ClassicGroup]:
        """All of them, as they are now."""
        return {**self.classic_groups, **self.live_classic_groups}

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
            or group_id in self.live_classic_groups
            or self.has_simple_group(group_id)
            or group_id in self.foreign_groups
        )
