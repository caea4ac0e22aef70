"""Rows that map one to one to records: epochs, target assignments, generations."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from model.log.records import (
    AssignedTopicPartitions,
    ClassicGroupMember,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    UnknownValue,
)
from muster.assignors.embedded import MalformedProtocolError, decode_subscribed_topics
from pipeline.tables.histories.group_state import (
    GroupState,
    read_classic_places,
    read_state_name,
    show_topic_id,
)
from pipeline.tables.histories.history_tables import (
    CLASSIC_GENERATIONS,
    GROUP_EPOCHS,
    MEMBER_EPOCHS,
    TARGET_ASSIGNMENTS,
)
from pipeline.tables.histories.rows import Rows, to_timestamp
from pipeline.tables.histories.written_records import Change, GroupRecord, LoggedRecord

_NO_TIMESTAMP = -1


class EpochRows:
    """One row per record of the types 2, 3, 7 and 8.

    The target assignments of members precede the record with their epoch, so they wait for it.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._targets: list[tuple[LoggedRecord, str, list[Any]]] = []

    def see(self, state: GroupState, change: Change) -> None:
        if not isinstance(change, GroupRecord) or isinstance(change.value, UnknownValue):
            return
        at, value = change.at, change.value
        match change.key:
            case ConsumerGroupMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupMetadataValue)
                self._add_group_epoch(at, value)
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                assert value is None or isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
                self._add_member_epoch(at, member_id, value)
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
                assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
                self._add_target(state, at, member_id, value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
                    self._flush(value.assignment_epoch)
            case GroupMetadataKey():
                assert value is None or isinstance(value, GroupMetadataValue)
                self._add_generation(at, value)
            case _:
                pass

    def end_write(self, state: GroupState) -> None:
        self._flush(state.target_epoch)

    def finish(self, state: GroupState) -> None:
        pass

    def _add_group_epoch(self, at: LoggedRecord, value: ConsumerGroupMetadataValue | None) -> None:
        self._rows.add(
            GROUP_EPOCHS,
            at,
            group_epoch=None if value is None else value.epoch,
            metadata_hash=None if value is None else value.metadata_hash,
        )

    def _add_member_epoch(
        self,
        at: LoggedRecord,
        member_id: str,
        value: ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        if value is None:
            self._rows.add(MEMBER_EPOCHS, at, member_id=member_id)
            return
        self._rows.add(
            MEMBER_EPOCHS,
            at,
            member_id=member_id,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=read_state_name(value.state),
            assigned=_show_held(value.assigned_partitions),
            pending_revocation=_show_held(value.partitions_pending_revocation),
        )

    def _add_target(
        self,
        state: GroupState,
        at: LoggedRecord,
        member_id: str,
        value: ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            epoch = state.target_epoch
            self._rows.add(TARGET_ASSIGNMENTS, at, member_id=member_id, assignment_epoch=epoch)
            return
        assigned = [
            {"topic_id": show_topic_id(topic.topic_id), "partitions": sorted(topic.partitions)}
            for topic in value.topic_partitions
        ]
        self._targets.append((at, member_id, assigned))

    def _flush(self, epoch: int | None) -> None:
        for at, member_id, assigned in self._targets:
            self._rows.add(
                TARGET_ASSIGNMENTS,
                at,
                member_id=member_id,
                assignment_epoch=epoch,
                assigned=assigned,
            )
        self._targets.clear()

    def _add_generation(self, at: LoggedRecord, value: GroupMetadataValue | None) -> None:
        if value is None:
            self._rows.add(CLASSIC_GENERATIONS, at)
            return
        since_ms = value.current_state_timestamp
        self._rows.add(
            CLASSIC_GENERATIONS,
            at,
            generation=value.generation,
            protocol_type=value.protocol_type,
            protocol=value.protocol,
            leader=value.leader,
            state_since=None if since_ms == _NO_TIMESTAMP else to_timestamp(since_ms),
            members=[_show_member(member) for member in value.members],
        )


def _show_held(topics: tuple[AssignedTopicPartitions, ...]) -> list[dict[str, Any]]:
    return [
        {
            "topic_id": show_topic_id(topic.topic_id),
            "partitions": list(topic.partitions),
            "assignment_epochs": list(topic.assignment_epochs or ()),
        }
        for topic in topics
    ]


def _show_member(member: ClassicGroupMember) -> dict[str, Any]:
    try:
        topics: list[str] | None = sorted(decode_subscribed_topics(member.subscription))
    except MalformedProtocolError:
        topics = None
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(read_classic_places(member), key=str):
        by_topic[str(topic)].append(partition)
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "topics": topics,
        "assigned": [
            {"topic": topic, "partitions": sorted(partitions)}
            for topic, partitions in by_topic.items()
        ],
    }
