"""Group histories that only look like a violation, and violations that are easy to miss."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from model.ids import GroupId, MemberId, TopicId
from model.log.records import (
    AssignedTopicPartitions,
    ClassicGroupMember,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    TopicPartitions,
)
from pipeline.audit.audit_rules import make_audit_observers
from pipeline.audit.findings import DELETIONS, EXPIRED, TOPIC_GONE, UNEXPLAINED, VIOLATIONS
from pipeline.tables.histories.rows import Rows
from pipeline.tables.histories.written_records import LoggedRecord
from storage.codec.record_codec import encode_key, encode_value
from tests.pipeline.logged import follow
from tests.support.pipeline.blocks import START_MS

DAY_MS = 24 * 60 * 60 * 1000
GROUP = GroupId("g")
IDS = {"t": TopicId(b"t" * 16), "u": TopicId(b"u" * 16)}


class Write(NamedTuple):
    """Records, or commits (``+t-0``) and deletions (``-t-0``) of offsets, in one write."""

    records: Sequence[Any]
    after_ms: int = 0


def make_events(writes: Sequence[Write]) -> list[LoggedRecord]:
    events: list[LoggedRecord] = []
    for write in writes:
        base_offset = len(events)
        for record in write.records:
            place = 0, GROUP, len(events), base_offset, START_MS + write.after_ms
            if isinstance(record, str):
                topic, _, partition = record[1:].partition("-")
                value = b"" if record[0] == "+" else None
                events.append(
                    LoggedRecord(*place, 1, None, value, False, topic, int(partition), START_MS)
                )
            else:
                key = encode_key(record[0])
                value = None if record[1] is None else encode_value(record[1])
                events.append(LoggedRecord(*place, int.from_bytes(key[:2], "big"), key, value))
    return events


def audit(*writes: Write, names: bool = False) -> tuple[list[str], list[tuple[str, int, str]]]:
    """The violated rules, and the explanations of deletions."""
    rows = Rows()
    known = {topic_id: name for name, topic_id in IDS.items()} if names else {}
    follow(make_events(writes), lambda *_: make_audit_observers(rows, 7 * DAY_MS, known))
    found = rows.take()
    return [row["rule"] for row in found.get(VIOLATIONS, [])], [
        (row["topic"], row["partition"], row["explanation"]) for row in found.get(DELETIONS, [])
    ]


# -------------------------------------------------------------------------------------- records


def classic(generation: int, *topics: str, held: dict[str, list[int]] | None = None) -> Any:
    """A generation with one member, or with none if there is no subscription."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    subscription = struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)
    shares = b"".join(
        struct.pack(">h", len(topic))
        + topic.encode()
        + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
        for topic, partitions in (held or {}).items()
    )
    assignment = struct.pack(">hi", 0, len(held or {})) + shares + struct.pack(">i", -1)
    member = ClassicGroupMember(
        MemberId("m"), None, "c", "/h", 1000, 1000, subscription, assignment
    )
    members = (member,) if topics else ()
    value = GroupMetadataValue(
        "consumer", generation, "range" if topics else None, None, START_MS, members
    )
    return GroupMetadataKey(GROUP), value


def member(*topics: str) -> Any:
    return ConsumerGroupMemberMetadataKey(GROUP, MemberId("m")), ConsumerGroupMemberMetadataValue(
        None, None, "c", "/h", topics, None, 1000, None, None
    )


def epoch(number: int) -> Any:
    return ConsumerGroupMetadataKey(GROUP), ConsumerGroupMetadataValue(number)


def target(held: dict[str, list[int]]) -> list[Any]:
    topics = tuple(TopicPartitions(IDS[name], tuple(found)) for name, found in held.items())
    return [
        (
            ConsumerGroupTargetAssignmentMemberKey(GROUP, MemberId("m")),
            ConsumerGroupTargetAssignmentMemberValue(topics),
        ),
        (
            ConsumerGroupTargetAssignmentMetadataKey(GROUP),
            ConsumerGroupTargetAssignmentMetadataValue(1),
        ),
    ]


def standing(held: dict[str, list[int]]) -> Any:
    assigned = tuple(
        AssignedTopicPartitions(IDS[name], tuple(found), (1,) * len(found))
        for name, found in held.items()
    )
    return (
        ConsumerGroupCurrentMemberAssignmentKey(GROUP, MemberId("m")),
        ConsumerGroupCurrentMemberAssignmentValue(1, 0, 0, assigned, ()),
    )


def make_consumer(held: dict[str, list[int]], *topics: str) -> list[Any]:
    return [member(*topics), epoch(1), *target(held), standing(held)]


def gone(records: Sequence[Any]) -> list[Any]:
    return [(key, None) for key, _ in reversed(records)]


# ------------------------------------------------------------------------------------------ S18

CLASSIC = [Write([classic(1, "t", "u")]), Write(["+u-0"]), Write(["+u-1"])]
CONSUMER = [Write(make_consumer({}, "t")), Write(["+t-0", "+t-1"])]


def test_a_deletion_between_the_join_phase_and_the_record_of_its_generation() -> None:
    """The member has joined with t alone, so u-0 may be deleted; its leader has yet to sync."""
    deleted = [*CLASSIC, Write(["-u-0"])]
    assert audit(*deleted) == ([], [("u", 0, UNEXPLAINED)])
    assert audit(*deleted, Write([classic(2, "t")])) == ([], [("u", 0, UNEXPLAINED)])
    # The subscription of generation 2, or of a generation without members, is unknown.
    for record in (classic(3, "t", "u"), classic(2)):
        assert audit(*deleted, Write([record])) == ([], [("u", 0, UNEXPLAINED)])


@pytest.mark.parametrize("generation", [1, 2])
def test_a_deletion_between_two_generations_that_subscribe(generation: int) -> None:
    found = audit(*CLASSIC, Write(["-u-0"]), Write([classic(generation, "u")]))
    assert found == (["S18"], [])


def test_a_deletion_under_a_live_member_though_the_rest_expires_later() -> None:
    found = audit(
        *CONSUMER,
        Write(["-t-0"], 1_000),
        Write([*gone([member("t")]), epoch(2)], 2_000),
        Write(["-t-1", (epoch(2)[0], None)], 9 * DAY_MS),
    )
    assert found == (["S18"], [("t", 1, EXPIRED)])


def test_two_deletions_under_a_live_member_far_apart() -> None:
    found = audit(*CONSUMER, Write(["-t-0"], 1_000), Write(["-t-1"], 9 * DAY_MS))
    assert found == (["S18"], [("t", 1, TOPIC_GONE)])


def test_the_deletion_of_a_topic_in_two_batches_of_one_append() -> None:
    found = audit(*CONSUMER, Write(["-t-0"], 1_000), Write(["-t-1"], 1_003))
    assert found == ([], [("t", 0, TOPIC_GONE), ("t", 1, TOPIC_GONE)])


def test_a_topic_that_is_deleted_and_committed_for_in_one_write() -> None:
    found = audit(*CONSUMER, Write(["-t-0", "-t-1", "+t-1"]), Write([epoch(2)]))
    assert found == ([], [("t", 0, TOPIC_GONE), ("t", 1, TOPIC_GONE)])


# ------------------------------------------------------------------------------------------ S21

HELD = {"t": [0, 2], "u": [0, 1]}


def downgrade_to(held: dict[str, list[int]], *, names: bool = False) -> list[str]:
    before = make_consumer(HELD, "t", "u")
    return audit(
        Write(before), Write([*gone(before), classic(1, "t", "u", held=held)]), names=names
    )[0]


def upgrade_to(held: dict[str, list[int]], *, names: bool = False) -> list[str]:
    before = classic(1, "t", "u", held=HELD)
    after = make_consumer(held, "t", "u")
    return audit(Write([before]), Write([*gone([before]), *after]), names=names)[0]


@pytest.mark.parametrize("names", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("convert", [upgrade_to, downgrade_to], ids=["upgrade", "downgrade"])
def test_a_conversion_leaves_out_a_topic_that_was_deleted(convert: Any, names: bool) -> None:
    assert convert(HELD, names=names) == []
    assert convert({"t": [0, 2]}, names=names) == []
    assert convert({}, names=names) == []


@pytest.mark.parametrize("names", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("convert", [upgrade_to, downgrade_to], ids=["upgrade", "downgrade"])
def test_a_conversion_that_changes_what_is_held(convert: Any, names: bool) -> None:
    assert convert({"t": [0], "u": [0, 1]}, names=names) == ["S21"]
    assert convert({"t": [0, 2, 3]}, names=names) == ["S21"]


@pytest.mark.parametrize("convert", [upgrade_to, downgrade_to], ids=["upgrade", "downgrade"])
def test_a_conversion_that_gives_as_many_of_another_topic(convert: Any) -> None:
    """Found if a commit has the topic's name and id."""
    assert convert({"u": [0, 2]}, names=True) == ["S21"]
    assert convert({"u": [0, 2]}) == []
