"""What a real Kafka 4.3.0 answered at the end of each step of each scenario, while it wrote its
log; and our own answers in the same form, so that the two can be compared.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from muster.v1 import admin_pb2, types_pb2
from tests.golden.kafka_log import decode_uuid
from tests.support.storage.golden import GOLDEN

CLASSIC, CONSUMER = "classic", "consumer"
UNKNOWN = "Unknown"
GROUP_TYPES = {CLASSIC: admin_pb2.GROUP_TYPE_CLASSIC, CONSUMER: admin_pb2.GROUP_TYPE_CONSUMER}

Shown = dict[str, Any]
"""Plain values without an order that a hash map gave them."""


class LiveGroup(NamedTuple):
    """A group at the end of a step. ``group_type`` is ``None`` where there was no such group.

    ``description`` and ``members`` have the fields that the client of the scenario saw, and
    ``stable`` is ``None`` where it did not ask for stable offsets.
    """

    group_id: str
    group_type: str | None
    description: Shown
    offsets: Shown
    stable: Shown | None


class LiveStep(NamedTuple):
    """``ts`` is the wall time (ms) at which the step had ended, before the questions were asked."""

    scenario: str
    name: str
    ts: int
    groups: list[LiveGroup]


def load_steps() -> list[LiveStep]:
    """All steps, scenario by scenario."""
    with gzip.open(GOLDEN / "truth" / "steps.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [_read_step(json.loads(line)) for line in lines]


def _read_step(row: dict[str, Any]) -> LiveStep:
    if "describe" in row:
        groups = [_read_go(row["scenario"], row)]
    elif "describe" in row["groups"][0]:
        groups = [_read_python(group) for group in row["groups"]]
    else:
        groups = [_read_java(group) for group in row["groups"]]
    return LiveStep(row["scenario"], row["step"], row["ts"], groups)


# ------------------------------------------------------------------- answers as they were recorded


def _read_java(group: dict[str, Any]) -> LiveGroup:
    group_type = None if group["listed"] is None else group["listed"]["type"]
    description: Shown = {}
    if group_type == CLASSIC:
        description = _read_classic(group["describeGroups.v6"])
    elif group_type == CONSUMER:
        description = _read_consumer(group["consumerGroupDescribe.v1"])
    plain, stable = (
        _read_offsets(group[name]) for name in ("offsetFetch.v9", "offsetFetch.v9.requireStable")
    )
    return LiveGroup(group["groupId"], group_type, description, plain, stable)


def _read_classic(group: dict[str, Any]) -> Shown:
    assert group["errorCode"] == 0
    return {
        "state": group["groupState"],
        "protocol_type": group["protocolType"],
        "protocol": group["protocolData"],
        "members": {
            member["memberId"]: {
                "instance_id": member["groupInstanceId"] or "",
                "client_id": member["clientId"],
                "client_host": member["clientHost"],
                "classic_metadata": base64.b64decode(member["memberMetadata"]),
                "classic_assignment": base64.b64decode(member["memberAssignment"]),
            }
            for member in group["members"]
        },
    }


def _read_consumer(group: dict[str, Any]) -> Shown:
    assert group["errorCode"] == 0
    return {
        "state": group["groupState"],
        "group_epoch": group["groupEpoch"],
        "assignment_epoch": group["assignmentEpoch"],
        "assignor_name": group["assignorName"],
        "members": {
            member["memberId"]: {
                "instance_id": member["instanceId"] or "",
                "rack_id": member["rackId"] or "",
                "member_epoch": member["memberEpoch"],
                "client_id": member["clientId"],
                "client_host": member["clientHost"],
                "subscribed_topic_names": set(member["subscribedTopicNames"]),
                "subscribed_topic_regex": member["subscribedTopicRegex"] or "",
                "assignment": _read_partitions(member["assignment"]),
                "target_assignment": _read_partitions(member["targetAssignment"]),
            }
            for member in group["members"]
        },
    }


def _read_partitions(assignment: dict[str, Any]) -> set[tuple[bytes, str, int]]:
    return {
        (decode_uuid(topic["topicId"]), topic["topicName"], partition)
        for topic in assignment["topicPartitions"]
        for partition in topic["partitions"]
    }


def _read_offsets(group: dict[str, Any]) -> Shown:
    if group["errorCode"]:
        return {"error": group["errorCode"]}
    return {
        f"{topic['name']}-{row['partitionIndex']}": (
            row["committedOffset"],
            row["committedLeaderEpoch"],
            row["metadata"],
            row["errorCode"],
        )
        for topic in group["topics"]
        for row in topic["partitions"]
    }


def _read_python(group: dict[str, Any]) -> LiveGroup:
    described = group["describe"]
    group_type = described["type"].rpartition(".")[2].lower()
    name = "protocol" if group_type == CLASSIC else "assignor_name"
    description = {
        "state": _camel(described["state"].rpartition(".")[2]),
        name: described["assignor"],
        "members": _read_members(described["members"], "host"),
    }
    return LiveGroup(
        group["groupId"], group_type, description, _read_plain_offsets(group["offsets"]), None
    )


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _read_go(group_id: str, row: dict[str, Any]) -> LiveGroup:
    """Its client saw groups of the classic protocol alone, and all others as dead."""
    described, offsets = row["describe"], _read_plain_offsets(row["offsets"])
    if described["state"] == "Dead":
        return LiveGroup(group_id, "not classic", {}, offsets, None)
    description = {
        "state": described["state"],
        "protocol_type": described["protocolType"],
        "protocol": described["protocol"],
        "members": _read_members(described["members"], "host"),
    }
    return LiveGroup(group_id, CLASSIC, description, offsets, None)


def _read_members(members: Iterable[dict[str, Any]] | None, host: str) -> Shown:
    return {
        member["memberId"]: {
            "instance_id": member["instanceId"] or "",
            "client_id": member["clientId"],
            "client_host": member[host],
            "partitions": set(member["assignment"] or ()),
        }
        for member in members or ()
    }


def _read_plain_offsets(offsets: dict[str, Any] | None) -> Shown:
    """Clients show null for what is empty, and for a leader epoch of -1."""
    return {
        name: (
            row["offset"],
            -1 if row["leaderEpoch"] is None else row["leaderEpoch"],
            row["metadata"] or "",
            0,
        )
        for name, row in (offsets or {}).items()
    }


# ------------------------------------------------------------------------------- answers of our own


def show_group(group: admin_pb2.Group, kafkas: Shown) -> Shown:
    """The fields that Kafka's answer has.

    librdkafka knows no states that only groups of the consumer protocol have.
    """
    state = _camel(admin_pb2.GroupState.Name(group.state).removeprefix("GROUP_STATE_"))
    if kafkas["state"] == UNKNOWN and state in ("Assigning", "Reconciling"):
        state = UNKNOWN
    shown = {name: getattr(group, name) for name in kafkas if name not in ("state", "members")}
    fields = next(iter(kafkas["members"].values()), {})
    members = {
        member.member_id: {name: _show_field(member, name) for name in fields}
        for member in group.members
    }
    return {"state": state, **shown, "members": members}


def _show_field(member: admin_pb2.GroupMember, name: str) -> object:
    """Kafka shows what a member has yet to give up as its assignment."""
    match name:
        case "assignment":
            return set(_list_partitions((*member.assignment, *member.pending_revocation)))
        case "target_assignment":
            return set(_list_partitions(member.target_assignment))
        case "partitions":
            held = _list_partitions((*member.assignment, *member.pending_revocation))
            return {f"{topic}-{partition}" for _, topic, partition in held}
        case "subscribed_topic_names":
            return set(member.subscribed_topic_names)
        case _:
            return getattr(member, name)


def _list_partitions(
    topics: Iterable[types_pb2.TopicPartitions],
) -> Iterator[tuple[bytes, str, int]]:
    for topic in topics:
        for partition in topic.partitions:
            yield topic.topic_id, topic.topic_name, partition


def show_offsets(topics: Iterable[types_pb2.CommittedTopic]) -> Shown:
    return {
        f"{topic.topic_name}-{row.partition}": (
            row.offset if row.HasField("offset") else -1,
            row.leader_epoch if row.HasField("leader_epoch") else -1,
            row.metadata,
            row.error.error_code,
        )
        for topic in topics
        for row in topic.partitions
    }
