"""The state that Spark rebuilds: what a real Kafka showed, and what the server's own replay makes.

The steps and their answers are those of `tests/golden/test_as_of.py`, which says which of them
are of another moment than their `ts`, and which show what no record has.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.core.groups.group_description import describe_consumer_group, list_groups
from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.records import ClassicGroupMember
from model.responses.groups import DescribedConsumerGroup, NamedTopicPartitions
from model.topics import Topic, TopicImage
from pipeline.tables.histories.group_state import read_classic_places, show_topic_id
from tests.golden.kafka_log import LogInTime, decode_uuid, final_state, final_topics
from tests.golden.live_steps import CLASSIC, CONSUMER, UNKNOWN, LiveGroup, Shown, load_steps
from tests.golden.test_as_of import ASKED_AT_ANOTHER_MOMENT, SERVED, SOFT_STATE, list_moments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.tables.tables_job import TablesSummary

Row = dict[str, Any]
States = dict[tuple[str, int | None], Row]
Offsets = defaultdict[tuple[str, int | None], Shown]


def test_groups_are_those_of_the_live_broker_at_each_step(
    spark: SparkSession, golden_summary: TablesSummary, golden_out: Path
) -> None:
    moments: defaultdict[str, set[int]] = defaultdict(set)
    for step in load_steps():
        for group in step.groups:
            moments[group.group_id] |= {step.ts, *list_moments(group.group_id, step.ts)}
    states, offsets = rebuild(spark, golden_out, moments)
    check_steps(states, offsets)
    check_final_state({group: row for (group, time), row in states.items() if time is None})
    check_replay(states, moments)


def rebuild(spark: SparkSession, out: Path, moments: dict[str, set[int]]) -> tuple[States, Offsets]:
    """Groups and offsets at the moments, and in the end."""
    from pipeline.tables.histories.states import compute_group_states, compute_offsets_at

    records = spark.read.parquet(str(out / "records"))
    rows = compute_group_states(records, {group: [*at] for group, at in moments.items()}).collect()
    states = {(row["group_id"], to_ms(row["moment"])): row.asDict(recursive=True) for row in rows}
    asked = [(group, to_time(at)) for group, times in moments.items() for at in sorted(times)]
    commits = spark.read.parquet(str(out / "offset_commits"))
    at = spark.createDataFrame(asked, "group_id string, at timestamp")
    offsets: Offsets = defaultdict(dict)
    for row in compute_offsets_at(commits, at).collect():
        epoch = -1 if row["leader_epoch"] is None else row["leader_epoch"]
        place = f"{row['topic']}-{row['partition']}"
        shown = row["committed_offset"], epoch, row["metadata"], 0
        offsets[row["group_id"], to_ms(row["at"])][place] = shown
    return states, offsets


def check_steps(states: States, offsets: Offsets) -> None:
    differing = set()
    compared = 0
    for step in load_steps():
        for group in step.groups:
            if group.group_type not in SERVED:
                continue
            name = step.scenario, step.name
            compared += 1
            wanted = {"type": group.group_type, **group.description}, group.offsets
            times = [step.ts, *list_moments(group.group_id, step.ts)]
            found = [
                (
                    show_group(states.get((group.group_id, time)), group),
                    show_offsets(step.scenario, offsets[group.group_id, time], group.offsets),
                )
                for time in times
            ]
            if found[0] != wanted:
                differing.add(name)
            if name not in SOFT_STATE:
                for index, kafkas in enumerate(wanted):
                    assert kafkas in [each[index] for each in found], (name, group.group_id)
    assert compared == 327
    # Require-stable is not asked here, so some of those that differ there do not.
    assert differing <= ASKED_AT_ANOTHER_MOMENT.keys() | SOFT_STATE.keys()
    assert SOFT_STATE.keys() <= differing


def show_group(row: Row | None, group: LiveGroup) -> Shown:
    """What Kafka's client saw of it."""
    kafkas = group.description
    if row is None:
        # A group of nothing but offsets is a classic one, of which records say no more.
        is_simple = group.group_type == CLASSIC and kafkas["state"] == "Empty"
        return {"type": CLASSIC, **kafkas} if is_simple else {"type": None}
    if group.group_type == "not classic":
        return {"type": group.group_type if row["group_type"] == CONSUMER else row["group_type"]}
    if group.group_type is None:
        return {"type": row["group_type"]}
    names = {"assignor_name": "assignor"}
    shown = {
        name: row[names.get(name, name)] or ""
        for name in kafkas
        if name not in ("state", "members")
    }
    state = row["state"]
    if kafkas["state"] == UNKNOWN and state in ("Assigning", "Reconciling"):
        state = UNKNOWN
    fields = next(iter(kafkas["members"].values()), {})
    members = {
        member["member_id"]: {name: show_field(row, member, name) for name in fields}
        for member in row["members"]
    }
    return {"type": row["group_type"], "state": state, **shown, "members": members}


def show_field(row: Row, member: Row, name: str) -> object:
    match name:
        case "assignment" | "target_assignment":
            column = "assigned" if name == "assignment" else "target"
            return {
                (decode_uuid(p["topic_id"]), topic_name(p), p["partition"])
                for p in member[column] or ()
            }
        case "partitions" if row["group_type"] == CONSUMER:
            return {f"{topic_name(p)}-{p['partition']}" for p in member["assigned"] or ()}
        case "partitions":
            return {f"{topic}-{partition}" for topic, partition in read_places(member)}
        case "subscribed_topic_names":
            return set(member[name] or ())
        case "classic_metadata" | "classic_assignment":
            return bytes(member[name] or b"")
        case _:
            return member[name] if name == "member_epoch" else member[name] or ""


def read_places(member: Row) -> frozenset[tuple[Any, int]]:
    classic = ClassicGroupMember(
        MemberId(member["member_id"]),
        None,
        "",
        "",
        0,
        0,
        bytes(member["classic_metadata"] or b""),
        bytes(member["classic_assignment"] or b""),
    )
    return read_classic_places(classic)


def show_offsets(scenario: str, ours: Shown, kafkas: Shown) -> Shown:
    """As Kafka's client showed them; partitions that it asked for without an offset have none."""
    nothing = {place: row for place, row in kafkas.items() if row[0] == -1}
    if "rdkafka" in scenario:
        ours = {
            place: (offset, epoch, metadata.partition("\0")[0], error)
            for place, (offset, epoch, metadata, error) in ours.items()
        }
    return {**nothing, **ours}


@cache
def topic_names() -> dict[str, str]:
    """By id, of all topics that any answer has named."""
    names = {show_topic_id(topic.topic_id): str(topic.name) for topic in final_topics()}
    for step in load_steps():
        for group in step.groups:
            for member in group.description.get("members", {}).values():
                for topic_id, name, _ in member.get("assignment", ()):
                    names[show_topic_id(topic_id)] = name
    return names


def topic_name(place: Row) -> str:
    return topic_names()[place["topic_id"]]


def to_ms(time: datetime | None) -> int | None:
    return None if time is None else round(time.replace(tzinfo=UTC).timestamp() * 1000)


def to_time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def check_final_state(states: dict[str, Row]) -> None:
    """Every group as the broker showed it after a restart; nobody was a member any more."""
    compared = 0
    for group in final_state()["groups"]:
        listed, row = group["listed"], states.pop(group["groupId"], None)
        if listed["type"] == CONSUMER:
            described = group["consumerGroupDescribe.v1"]
            assert row is not None
            assert (row["state"], row["group_epoch"], row["assignment_epoch"], row["assignor"]) == (
                described["groupState"],
                described["groupEpoch"],
                described["assignmentEpoch"],
                described["assignorName"],
            )
            assert row["members"] == described["members"] == []
        elif listed["type"] == CLASSIC:
            protocol_type = "" if row is None else row["protocol_type"]
            assert (listed["state"], listed["protocolType"]) == ("Empty", protocol_type)
            assert row is None or (row["state"], row["members"]) == ("Empty", [])
        else:
            assert row is not None
            assert row["group_type"] == listed["type"]
        compared += 1
    assert compared == len(final_state()["groups"]) == 46
    assert not states


def check_replay(states: States, moments: dict[str, set[int]]) -> None:
    """Every group at every moment is what the server's own replay makes of the log up to there."""
    topics = [Topic(TopicName(n), TopicId(decode_uuid(i)), 100) for i, n in topic_names().items()]
    log = LogInTime(TopicImage(1, {}, {topic.topic_id: topic for topic in topics}))
    compared = 0
    for moment, group_id in sorted((at, group) for group, times in moments.items() for at in times):
        shard = log.shard_of(GroupId(group_id))
        while log.advance(int(shard.partition), moment):
            pass
        row = states.get((group_id, moment))
        listed = {group.group_id: group for group in list_groups(shard)}.get(GroupId(group_id))
        if row is None:
            # Of nothing but offsets, which are no part of this.
            assert listed is None or not listed.protocol_type, (group_id, moment)
            continue
        assert listed is not None, (group_id, moment)
        assert row["group_type"] == listed.group_type
        if listed.group_type in (CONSUMER, CLASSIC):
            found = row["group_epoch"], len(row["members"])
            assert found == (listed.group_epoch, listed.members), (group_id, moment)
        if listed.group_type == CONSUMER:
            check_description(row, describe_consumer_group(shard, GroupId(group_id)))
        compared += 1
    assert compared > 400


def check_description(row: Row, described: DescribedConsumerGroup) -> None:
    assert row["state"] == described.state
    assert row["assignment_epoch"] == described.assignment_epoch
    ours = {
        member["member_id"]: (member["member_epoch"], member["instance_id"], places(member))
        for member in row["members"]
    }
    assert ours == {
        member.member_id: (
            member.member_epoch,
            member.instance_id,
            (
                list_places((*member.assignment, *member.pending_revocation)),
                list_places(member.target_assignment),
            ),
        )
        for member in described.members
    }


def places(member: Row) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    assigned, target = (
        {(place["topic_id"], place["partition"]) for place in member[column]}
        for column in ("assigned", "target")
    )
    return assigned, target


def list_places(topics: tuple[NamedTopicPartitions, ...]) -> set[tuple[str, int]]:
    return {(show_topic_id(topic.topic_id), p) for topic in topics for p in topic.partitions}
