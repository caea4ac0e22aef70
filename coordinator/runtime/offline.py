"""Offline maintenance of a stopped server's store: conversion to a classic group."""

from __future__ import annotations

from coordinator.core.groups.topic_records import Catalogue
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import run_at_once
from coordinator.dispatch.handle import handle
from coordinator.runtime.commit.partition_encoder import PartitionEncoder
from coordinator.runtime.loading.shard_loader import load_catalogue, load_shard, read_last_timestamp
from model.caller import INTERNAL
from model.commands.groups import ConvertToClassicGroup
from model.configs.coordinator_settings import CoordinatorSettings
from model.configs.group_configs import MIGRATION_POLICY
from model.configs.migration_policy import DOWNGRADE
from model.ids import GroupId, LogOffset, compute_log_partition
from model.log.side_records import GroupConfigsSideKey, GroupConfigsSideValue, SideRecord
from model.now import Now
from storage.log_store import LogStore
from storage.side_codec import encode_side


def convert_to_classic_offline(
    store: LogStore, group_id: GroupId, wall_ms: int, *, validate_only: bool
) -> None:
    """Convert a consumer group to a classic group that stays classic, in one durable write.

    The same write sets the group's ``consumer.migration.policy`` to ``downgrade``, so that no
    member of the consumer protocol converts the group back. Raises the ``GroupError`` of
    ``handle_convert_to_classic`` and then changes nothing.
    """
    catalogue = Catalogue(CoordinatorSettings())
    load_catalogue(store, catalogue)
    partition = compute_log_partition(group_id, store.partitions)
    shard = Shard(partition, catalogue.settings, catalogue.image, catalogue.group_settings)
    load_shard(store, shard)
    # The timestamps of a log never go back.
    wall_ms = max(wall_ms, read_last_timestamp(store))
    command = ConvertToClassicGroup(INTERNAL, group_id, validate_only)
    outcome = handle(shard, command, Now(wall_ms, wall_ms))
    if outcome.slices is not None:
        outcome = run_at_once(outcome.slices)
    if not validate_only:
        _write(store, shard, outcome, _compute_policy(catalogue, group_id), wall_ms)


def _compute_policy(catalogue: Catalogue, group_id: GroupId) -> SideRecord:
    own = catalogue.group_configs.get(group_id, {})
    configs = tuple(sorted({**own, MIGRATION_POLICY: DOWNGRADE}.items()))
    longest_ms = catalogue.longest_session_timeouts_ms.get(group_id, 0)
    return SideRecord(GroupConfigsSideKey(group_id), GroupConfigsSideValue(configs, longest_ms))


def _write(
    store: LogStore, shard: Shard, outcome: Outcome, policy: SideRecord, wall_ms: int
) -> None:
    encoder = PartitionEncoder(shard.partition, store.next_offset(shard.partition), wall_ms, store)
    for record in outcome.records:
        encoder.add_record(record)
    appends = encoder.finish()
    store.write(appends, [encode_side(record) for record in (*outcome.side, policy)])
    store.sync()
    if appends:
        last = appends[-1]
        end = LogOffset(last.base_offset + last.records)
        store.mark_durable({shard.partition: end})
    store.sync_watermark()
