"""The rebalances of single groups, and the clients behind their members."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.functions import col

from model.log.records import RecordType
from pipeline.report.figures import (
    UNKNOWN_CAUSE,
    BusyGroup,
    GroupDetails,
    Lanes,
    Member,
    OneRebalance,
)

MOST_REBALANCES = 25
MOST_NAMED = 6
"""Partitions that a rebalance names."""

_Clients = Mapping[tuple[str, str], str]
_Shown = TypeVar("_Shown", BusyGroup, Lanes)


def compute_clients(
    records: DataFrame, generations: DataFrame, groups: Sequence[str]
) -> dict[tuple[str, str], str]:
    """The last client id of each member of these groups, by group and member id."""
    chosen = col("group_id").isin(list(groups))
    of_consumers = records.where(
        chosen
        & (col("type_id") == int(RecordType.CONSUMER_GROUP_MEMBER_METADATA))
        & col("value_json").isNotNull()
    ).select(
        "group_id",
        "member_id",
        sql.get_json_object("value_json", "$.clientId").alias("client_id"),
        "offset",
    )
    of_classic = (
        generations.where(chosen)
        .select("group_id", "offset", sql.explode("members").alias("member"))
        .select("group_id", "member.member_id", "member.client_id", "offset")
    )
    rows = (
        of_consumers.unionByName(of_classic)
        .groupBy("group_id", "member_id")
        .agg(sql.max_by("client_id", "offset").alias("client_id"))
        .collect()
    )
    return {(row["group_id"], row["member_id"]): row["client_id"] or "" for row in rows}


def name_members(shown: Sequence[_Shown], clients: _Clients) -> list[_Shown]:
    """The same figures with the client ids of the members."""
    return [_name_members_of(figure, clients) for figure in shown]


def _name_members_of(figure: _Shown, clients: _Clients) -> _Shown:
    if isinstance(figure, Lanes):
        named = [_name_member(figure.group_id, each, clients) for each in figure.members]
        return replace(figure, members=named)
    if figure.worst_member is None:
        return figure
    worst = _name_member(figure.group_id, figure.worst_member, clients)
    return replace(figure, worst_member=worst)


def _name_member(group_id: str, member: Member, clients: _Clients) -> Member:
    return Member(member.member_id, clients.get((group_id, member.member_id), ""))


def compute_details(
    rebalances: DataFrame, ownership: DataFrame, groups: Sequence[str], clients: _Clients
) -> list[GroupDetails]:
    """The last rebalances of these groups, in their order; none for those without any."""
    chosen = col("group_id").isin(list(groups))
    backwards = Window.partitionBy("group_id").orderBy(sql.desc("offset"))
    last = (
        rebalances.where(chosen)
        .withColumn("number", sql.row_number().over(backwards))
        .withColumn("total", sql.count("*").over(Window.partitionBy("group_id")))
        .where(col("number") <= MOST_REBALANCES)
    )
    moved = (
        ownership.where(chosen)
        .groupBy("group_id", col("assignment_epoch").alias("to_epoch"))
        .agg(
            sql.slice(
                sql.sort_array(
                    sql.collect_list(sql.struct(sql.coalesce("topic", "topic_id"), "partition"))
                ),
                1,
                MOST_NAMED,
            ).alias("moved")
        )
    )
    rows = (
        last.join(moved, ["group_id", "to_epoch"], "left")
        .withColumn("at_ms", sql.unix_millis(sql.coalesce("started_at", "ts")))
        .orderBy("group_id", "number")
        .collect()
    )
    by_group: defaultdict[str, list[Any]] = defaultdict(list)
    for row in rows:
        by_group[row["group_id"]].append(row)
    return [
        GroupDetails(
            group_id,
            found[0]["protocol"],
            [_make_rebalance(row, clients) for row in found],
            found[0]["total"] - len(found),
        )
        for group_id in groups
        if (found := by_group.get(group_id))
    ]


def _make_rebalance(row: Any, clients: _Clients) -> OneRebalance:
    member_id = row["cause_member_id"]
    member = None
    if member_id is not None:
        member = Member(member_id, clients.get((row["group_id"], member_id), ""))
    return OneRebalance(
        row["at_ms"],
        row["from_epoch"],
        row["to_epoch"],
        row["cause"] or UNKNOWN_CAUSE,
        member,
        row["members_moved"] or 0,
        row["partitions_moved"] or 0,
        [f"{topic}-{partition}" for topic, partition in row["moved"] or ()],
        row["duration_ms"],
        row["started_at"] is not None,
    )
