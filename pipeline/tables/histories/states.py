"""Descriptions of groups, at given times and at the end, as far as records show them.

Not in any record: that a classic group is rebalancing, and which members have joined since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.functions import col

from model.log.records import ClassicGroupMember, GroupMetadataValue, MemberState
from pipeline.schema import TIMESTAMP
from pipeline.tables.committed_offsets import compute_latest_offsets
from pipeline.tables.histories.group_histories import (
    compute_history,
    select_group_events,
    select_table,
)
from pipeline.tables.histories.group_state import (
    CLASSIC,
    CONSUMER,
    GroupState,
    Place,
    show_topic_id,
)
from pipeline.tables.histories.rows import Row, Rows, to_timestamp
from pipeline.tables.histories.written_records import Change, LoggedRecord, Observer

GROUP_STATES = "group_states"

EMPTY, ASSIGNING, RECONCILING, STABLE = "Empty", "Assigning", "Reconciling", "Stable"
PREPARING = "PreparingRebalance"
DEFAULT_ASSIGNOR = "uniform"

_PARTITIONS = pa.list_(pa.struct([("topic_id", pa.string()), ("partition", pa.int32())]))
_MEMBERS = pa.list_(
    pa.struct(
        [
            ("member_id", pa.string()),
            ("instance_id", pa.string()),
            ("rack_id", pa.string()),
            ("client_id", pa.string()),
            ("client_host", pa.string()),
            ("member_epoch", pa.int32()),  # null in a classic group, like the next four
            ("subscribed_topic_names", pa.list_(pa.string())),
            ("subscribed_topic_regex", pa.string()),
            ("assigned", _PARTITIONS),  # includes pending revocation
            ("target", _PARTITIONS),
            ("classic_metadata", pa.binary()),  # null in a consumer group
            ("classic_assignment", pa.binary()),
        ]
    )
)
STATES = pa.schema(
    [
        ("group_id", pa.string()),
        ("moment", TIMESTAMP),  # null for the end of the log
        ("group_type", pa.string()),
        ("state", pa.string()),
        ("group_epoch", pa.int32()),  # or the generation of a classic group
        ("assignment_epoch", pa.int32()),
        ("assignor", pa.string()),
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        ("members", _MEMBERS),
        ("log_partition", pa.int32()),
        ("offset", pa.int64()),  # of the last record applied
        ("ts", TIMESTAMP),
    ]
)


def compute_group_states(records: DataFrame, moments: Mapping[str, Sequence[int]]) -> DataFrame:
    """A row for each group at its moments (wall ms) and at the end, if it exists then.

    A record counts from its batch's timestamp. Groups with offsets only have no row.
    """
    wanted = {group_id: tuple(sorted(set(times))) for group_id, times in moments.items()}

    def make(rows: Rows) -> Sequence[Observer]:
        return (_StateRows(rows, wanted),)

    history = compute_history(select_group_events(records), {GROUP_STATES: STATES}, make)
    return select_table(history, GROUP_STATES)


def compute_offsets_at(commits: DataFrame, moments: DataFrame) -> DataFrame:
    """The committed offsets at moments, which have columns ``group_id`` and ``at``."""
    seen = moments.select(col("group_id").alias("group_id"), "at").distinct()
    numbered = seen.withColumn(
        "moment", sql.row_number().over(Window.orderBy("group_id", "at")).cast("int")
    )
    until = commits.join(sql.broadcast(numbered), "group_id").where(
        col("effective_ts") <= col("at")
    )
    # The moment becomes part of the key, in place of the log partition.
    latest = compute_latest_offsets(
        until.withColumn("place", col("log_partition")).withColumn("log_partition", col("moment"))
    )
    return latest.withColumn("log_partition", col("place")).drop("place", "moment")


class _StateRows:
    """Adds a row before the first record later than a moment, and one at the end."""

    def __init__(self, rows: Rows, moments: Mapping[str, Sequence[int]]) -> None:
        self._rows = rows
        self._moments = moments
        self._left: list[int] | None = None
        self._last: LoggedRecord | None = None

    def see(self, state: GroupState, change: Change) -> None:
        left = self._find_left(state)
        ts_ms = change.at.ts_ms
        while left and ts_ms is not None and left[0] < ts_ms:
            self._add(state, left.pop(0))
        self._last = change.at

    def end_write(self, state: GroupState) -> None:
        pass

    def finish(self, state: GroupState) -> None:
        for moment in self._find_left(state):
            self._add(state, moment)
        self._add(state, None)

    def _find_left(self, state: GroupState) -> list[int]:
        if self._left is None:
            self._left = list(self._moments.get(state.group_id, ()))
        return self._left

    def _add(self, state: GroupState, moment: int | None) -> None:
        if self._last is not None and state.types():
            shown = describe_state(state)
            self._rows.add(GROUP_STATES, self._last, moment=to_timestamp(moment), **shown)


def describe_state(state: GroupState) -> Row:
    """The columns of a group that exists."""
    if state.epoch is not None:
        return _describe_consumer_group(state)
    if state.classic is not None:
        found = state.classic
        return {
            "group_type": CLASSIC,
            "state": _compute_classic_state(found),
            "group_epoch": found.generation,
            "protocol_type": found.protocol_type,
            "protocol": found.protocol,
            "members": [_describe_classic_member(member) for member in found.members],
        }
    (group_type, *_) = sorted(state.foreign)
    return {"group_type": group_type, "members": []}


def _compute_classic_state(found: GroupMetadataValue) -> str:
    """The state; a record with members but no leader is a downgrade's, which must rebalance."""
    if not found.members:
        return EMPTY
    return PREPARING if found.leader is None else STABLE


def _describe_consumer_group(state: GroupState) -> Row:
    assignors = Counter(
        member.server_assignor for member in state.members.values() if member.server_assignor
    )
    return {
        "group_type": CONSUMER,
        "state": _compute_state(state),
        "group_epoch": state.epoch,
        "assignment_epoch": state.target_epoch or 0,
        "assignor": max(assignors, key=assignors.__getitem__, default=DEFAULT_ASSIGNOR),
        "members": [_describe_member(state, member_id) for member_id in sorted(state.members)],
    }


def _compute_state(state: GroupState) -> str:
    if not state.members:
        return EMPTY
    target_epoch = state.target_epoch or 0
    if state.epoch is not None and state.epoch > target_epoch:
        return ASSIGNING
    for member_id in state.members:
        current = state.current_assignments.get(member_id)
        if current is None or current.epoch != target_epoch:
            return RECONCILING
        if current.state != MemberState.STABLE:
            return RECONCILING
    return STABLE


def _describe_member(state: GroupState, member_id: str) -> dict[str, Any]:
    member, current = state.members[member_id], state.current_assignments.get(member_id)
    return {
        "member_id": member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_epoch": 0 if current is None else current.epoch,
        "subscribed_topic_names": list(member.subscribed_topic_names),
        "subscribed_topic_regex": member.subscribed_topic_regex,
        "assigned": _show([] if current is None else (place for place, _ in current.held())),
        "target": _show(state.targets.get(member_id, ())),
    }


def _describe_classic_member(member: ClassicGroupMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "classic_metadata": member.subscription,
        "classic_assignment": member.assignment,
    }


def _show(places: Iterable[Place]) -> list[dict[str, Any]]:
    named = sorted(
        (topic if isinstance(topic, str) else show_topic_id(topic), partition)
        for topic, partition in places
    )
    return [{"topic_id": topic_id, "partition": partition} for topic_id, partition in named]
