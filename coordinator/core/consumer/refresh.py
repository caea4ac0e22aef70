"""Refresh of a group after a change of the target's inputs: topics, assignor."""

from __future__ import annotations

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.epoch_causes import compute_topic_cause
from coordinator.core.state.group_epochs import compute_epoch_bump, compute_target_effect
from coordinator.core.state.metadata_hash import compute_metadata_hash
from coordinator.core.state.outcome import NoteEpochCauses, Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import (
    compute_preferred_assignor,
    compute_preferred_of,
    is_assigned_otherwise,
)
from model.commands.consumer import RefreshAssignor, RefreshTopics
from model.past.causes import Cause, CauseKind
from model.responses.response import Done


def handle_refresh_topics(shard: Shard, command: RefreshTopics) -> Outcome:
    """Bump the group epoch if the metadata hash of the subscribed topics has changed."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not needs_epoch_for_topics(shard, group):
        return Outcome(response=Done())
    names = group.subscribed_topic_names()
    records = compute_epoch_bump(shard, group, command.group_id, names)
    cause = compute_topic_cause(group, shard.image, names, command.topic_name)
    effects = (
        compute_target_effect(shard, group, command.group_id),
        NoteEpochCauses(command.group_id, (cause,)),
    )
    return Outcome(records=tuple(records), response=Done(), effects=effects)


def handle_refresh_assignor(shard: Shard, command: RefreshAssignor) -> Outcome:
    """Bump the epoch of a group with members if its assignor, or its configuration, changed."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None or not group.member_count:
        return Outcome(response=Done())
    before = compute_preferred_of(command.assignors_before, group)
    now = compute_preferred_assignor(shard, group)
    configs = shard.settings_of(command.group_id).assignor_configs
    if now == before and not is_assigned_otherwise(now, command.assignor_configs_before, configs):
        return Outcome(response=Done())
    records = compute_epoch_bump(shard, group, command.group_id, group.subscribed_topic_names())
    kind = CauseKind.CONFIGS_CHANGED if now == before else CauseKind.ASSIGNOR_CHANGED
    effects = (
        compute_target_effect(shard, group, command.group_id),
        NoteEpochCauses(command.group_id, (Cause(kind),)),
    )
    return Outcome(records=tuple(records), response=Done(), effects=effects)


def needs_epoch_for_topics(shard: Shard, group: ConsumerGroup) -> bool:
    """Whether the group has members and its metadata hash is not that of the current topics."""
    if group.member_count == 0:
        return False
    names = group.subscribed_topic_names()
    return compute_metadata_hash(names, shard.image, shard.soft.topic_hashes) != group.metadata_hash
