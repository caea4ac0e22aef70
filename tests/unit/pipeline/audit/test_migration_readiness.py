"""Whether a classic group can become a consumer group, also for Kafka's own log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from model.log.records import ConsumerGroupMetadataKey, GroupMetadataKey
from muster.assignors.embedded import (
    Assignment,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
    make_subscription,
)
from pipeline.audit.migration_verdicts import make_candidate
from tests.pipeline.planted_groups import list_records, read_partition
from translator.readiness import (
    BLOCKING,
    Candidate,
    CandidateMember,
    Hindrance,
    MigrationRules,
    Verdict,
    compute_migration_readiness,
)

RULES = MigrationRules(max_size=2)
ASSIGNED = Assignment((TopicPartitions("t", (0, 1)),))
MANY_TOPICS = [f"t{number}" for number in range(10_001)]
MEMBER = CandidateMember(
    "member-1",
    None,
    "client-1",
    45_000,
    encode_subscription(make_subscription(["t"])),
    encode_assignment(ASSIGNED),
)
GROUP = Candidate("g", "consumer", "cooperative-sticky", (MEMBER,))


def judge(group: Candidate, rules: MigrationRules = RULES) -> tuple[Verdict, list[Hindrance]]:
    readiness = compute_migration_readiness(group, rules)
    return readiness.verdict, [reason.hindrance for reason in readiness.reasons]


def with_member(**changes: Any) -> Candidate:
    return replace(GROUP, members=(replace(MEMBER, **changes),))


def test_a_group_of_todays_clients_is_ready() -> None:
    assert judge(GROUP) == (Verdict.READY, [])


@pytest.mark.parametrize(
    ("group", "hindrance"),
    [
        (replace(GROUP, protocol_type="connect"), Hindrance.PROTOCOL_TYPE),
        (replace(GROUP, members=(MEMBER,) * 3), Hindrance.GROUP_SIZE),
        (
            with_member(
                subscription=encode_subscription(make_subscription(map(str, range(10_001))))
            ),
            Hindrance.SUBSCRIPTION_SIZE,
        ),
        (with_member(subscription=b"\0\3"), Hindrance.MALFORMED_SUBSCRIPTION),
        (with_member(subscription=b""), Hindrance.MALFORMED_SUBSCRIPTION),
        (
            # Readable as version 0, but the owned partitions of version 2 are cut off.
            with_member(subscription=b"\0\2" + MEMBER.subscription[2:9] + b"\xff\xff\xff\xff"),
            Hindrance.MALFORMED_SUBSCRIPTION,
        ),
        (with_member(assignment=b"\0"), Hindrance.MALFORMED_ASSIGNMENT),
        (
            with_member(assignment=encode_assignment(replace(ASSIGNED, user_data=b"x"))),
            Hindrance.ASSIGNMENT_USER_DATA,
        ),
    ],
)
def test_what_kafka_refuses_is_blocked(group: Candidate, hindrance: Hindrance) -> None:
    verdict, found = judge(group)
    assert verdict is Verdict.BLOCKED
    assert hindrance in found
    assert hindrance in BLOCKING


@pytest.mark.parametrize(
    ("group", "hindrance"),
    [
        (replace(GROUP, protocol_name="range"), Hindrance.EAGER_STRATEGY),
        (replace(GROUP, protocol_name="mine"), Hindrance.CUSTOM_STRATEGY),
        (
            with_member(subscription=encode_subscription(make_subscription(["t"]), version=2)),
            Hindrance.EMBEDDED_VERSION,
        ),
        (
            # Kafka refuses this one; its members own nothing when they join.
            with_member(subscription=b"\0\1" + MEMBER.subscription[2:9] + b"\xff\xff\xff\xff"),
            Hindrance.OWNED_LEFT_OUT,
        ),
        (replace(GROUP, protocol_type="connect", members=()), Hindrance.OTHER_TYPE),
        (with_member(session_timeout_ms=60_000), Hindrance.SESSION_TIMEOUT),
        (with_member(instance_id="i"), Hindrance.STATIC_MEMBER),
    ],
)
def test_what_needs_care_is_no_refusal(group: Candidate, hindrance: Hindrance) -> None:
    assert judge(group) == (Verdict.WARN, [hindrance])


def test_user_data_of_a_subscription_is_no_hindrance() -> None:
    subscription = encode_subscription(make_subscription(["t"], user_data=b"sticky"))
    assert judge(with_member(subscription=subscription)) == (Verdict.READY, [])


def test_neither_is_an_assignment_that_is_empty() -> None:
    unassigned = encode_assignment(replace(ASSIGNED, user_data=b""))
    for assignment in (b"", unassigned):
        assert judge(with_member(assignment=assignment)) == (Verdict.READY, [])


def test_the_policy_decides_where_there_are_members() -> None:
    rules = replace(RULES, allows_upgrade=False)
    assert judge(GROUP, rules) == (Verdict.BLOCKED, [Hindrance.POLICY])
    for none in ("consumer", None, ""):
        empty = replace(GROUP, protocol_type=none, members=())
        assert judge(empty, rules) == (Verdict.READY, [])


def test_patterns_are_those_of_re2() -> None:
    rules = replace(RULES, patterns={"client-1": "(?!x)t.*"})
    assert judge(GROUP, rules) == (Verdict.WARN, [Hindrance.PATTERN])
    assert judge(GROUP, replace(RULES, patterns={"client-1": "t.*"})) == (Verdict.READY, [])


def test_clients_that_block_come_first() -> None:
    old = encode_subscription(make_subscription(["t"]), version=1)
    warned = replace(MEMBER, client_id="warned", subscription=old)
    blocked = replace(MEMBER, client_id="blocked", assignment=b"\0")
    readiness = compute_migration_readiness(replace(GROUP, members=(warned, blocked)), RULES)
    assert readiness.clients_to_change() == ("blocked", "warned")


def test_no_group_that_kafka_has_converted_is_blocked() -> None:
    """The groups of three scenarios were converted in both directions twice."""
    converted = 0
    for partition in (5, 8, 20):
        for batch in read_partition(partition):
            found = list(list_records((batch,)))
            upgraded = {
                key.group_id
                for _, _, key, value in found
                if isinstance(key, ConsumerGroupMetadataKey) and value is not None
            }
            left = {
                key.group
                for _, _, key, value in found
                if isinstance(key, GroupMetadataKey) and value is None
            }
            for group_id in upgraded & left:
                before = [
                    value
                    for _, record, key, value in list_records(read_partition(partition))
                    if key == GroupMetadataKey(group_id)
                    and value is not None
                    and record.offset < batch.base_offset
                ][-1]
                readiness = compute_migration_readiness(
                    make_candidate(group_id, before), MigrationRules()
                )
                assert readiness.verdict is not Verdict.BLOCKED, readiness
                converted += 1
    assert converted == 9
