"""The differences of two descriptions of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cli.admin.watch.group_changes import compute_changes
from muster.v1 import admin_pb2, types_pb2

STABLE = admin_pb2.MEMBER_STATE_STABLE
UNREVOKED = admin_pb2.MEMBER_STATE_UNREVOKED_PARTITIONS
UNRELEASED = admin_pb2.MEMBER_STATE_UNRELEASED_PARTITIONS


def topics(*partitions: int) -> list[types_pb2.TopicPartitions]:
    return [types_pb2.TopicPartitions(topic_name="orders", partitions=partitions)]


def member(
    name: str,
    owned: Sequence[int] = (),
    *,
    epoch: int = 5,
    state: admin_pb2.MemberState = STABLE,
    revoked: Sequence[int] = (),
    waits: Sequence[tuple[str, Sequence[int]]] = (),
    names: Sequence[str] = ("orders",),
    instance: str = "",
) -> admin_pb2.GroupMember:
    return admin_pb2.GroupMember(
        member_id=name,
        client_id="app",
        client_host="/10.0.0.1",
        instance_id=instance,
        member_epoch=epoch,
        state=state,
        subscribed_topic_names=names,
        assignment=topics(*owned) if owned else (),
        pending_revocation=topics(*revoked) if revoked else (),
        waits=[
            admin_pb2.MemberWait(owner_id=owner, partitions=topics(*held)) for owner, held in waits
        ],
    )


def group(*members: admin_pb2.GroupMember, epoch: int = 5, **values: Any) -> admin_pb2.Group:
    fields: dict[str, Any] = {
        "group_id": "g",
        "group_type": admin_pb2.GROUP_TYPE_CONSUMER,
        "state": admin_pb2.GROUP_STATE_STABLE,
        "assignment_epoch": epoch,
        "assignor_name": "uniform",
    } | values
    return admin_pb2.Group(group_epoch=epoch, members=members, **fields)


def texts(before: admin_pb2.Group, after: admin_pb2.Group) -> list[str]:
    return [change.text for change in compute_changes(before, after)]


def test_nothing_has_changed() -> None:
    same = group(member("m1", [0, 1], waits=[("m2", [2])]))
    assert texts(same, same) == []


def test_a_member_joins_and_waits() -> None:
    before = group(member("m1", [0, 1]))
    after = group(
        member("m1", [0], epoch=5, state=UNREVOKED, revoked=[1]),
        member("m2", epoch=6, state=UNRELEASED, waits=[("m1", [1])]),
        epoch=6,
        state=admin_pb2.GROUP_STATE_RECONCILING,
    )
    assert texts(before, after) == [
        "state Stable -> Reconciling",
        "group epoch 5 -> 6",
        "target assignment epoch 5 -> 6",
        "m1 STABLE -> UNREVOKED_PARTITIONS",
        "m2 joined (client app on /10.0.0.1)",
        "m1 has to give up orders-1",
        "m2 waits for orders-1 from m1",
    ]


def test_a_partition_is_with_its_owner_until_it_is_given_up() -> None:
    before = group(
        member("m1", [0], state=UNREVOKED, revoked=[1]),
        member("m2", epoch=6, state=UNRELEASED, waits=[("m1", [1])]),
        epoch=6,
    )
    free = group(member("m1", [0], epoch=6), member("m2", epoch=6, state=UNRELEASED), epoch=6)
    assert texts(before, free) == ["m1 epoch 5 -> 6, STABLE", "orders-1: m1 -> nobody"]
    given = group(member("m1", [0], epoch=6), member("m2", [1], epoch=6), epoch=6)
    assert texts(free, given) == ["m2 UNRELEASED_PARTITIONS -> STABLE", "orders-1: nobody -> m2"]
    # Between two looks a partition may have gone the whole way.
    assert "orders-1: m1 -> m2" in texts(before, given)


def test_a_member_that_is_gone_leaves_its_partitions() -> None:
    before = group(member("m1", [0, 1]), member("m2", [2]))
    after = group(member("m2", [2], epoch=6), epoch=6)
    assert texts(before, after)[2:] == [
        "m1 is gone; it had orders-0, orders-1",
        "m2 epoch 5 -> 6, STABLE",
        "orders-0, orders-1: m1 -> nobody",
    ]


def test_moves_between_the_same_two_are_one_line() -> None:
    before = group(member("m1", [0, 1, 2, 3]), member("m2"))
    after = group(member("m1", [0]), member("m2", [1, 2, 3]))
    (change,) = compute_changes(before, after)
    assert change.name == "partitions_moved"
    assert change.values == {
        "partitions": ["orders-1", "orders-2", "orders-3"],
        "before": "m1",
        "after": "m2",
    }


def test_a_static_member_that_is_away_keeps_its_partitions() -> None:
    before = group(member("m1", [0], instance="i1"))
    after = group(member("m1", [0], epoch=-2, instance="i1"))
    assert texts(before, after) == ["m1 is away; its partitions are kept for i1"]
    back = group(member("m9", [0], instance="i1"))
    assert texts(after, back) == [
        "m1 is gone; it had orders-0",
        "m9 joined (client app on /10.0.0.1, instance i1)",
        "orders-0: m1 -> m9",
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"assignor_name": "range"}, "assignor uniform -> range"),
        ({"assignor_name": ""}, "assignor uniform -> -"),
        ({"group_type": admin_pb2.GROUP_TYPE_CLASSIC}, "type Consumer -> Classic"),
        ({"state": admin_pb2.GROUP_STATE_EMPTY}, "state Stable -> Empty"),
    ],
)
def test_the_group_itself_changes(values: dict[str, Any], text: str) -> None:
    assert texts(group(), group(**values)) == [text]


def test_a_classic_group_has_generations_and_its_members_no_epochs() -> None:
    classic: dict[str, Any] = {"group_type": admin_pb2.GROUP_TYPE_CLASSIC, "assignment_epoch": 0}
    before = group(member("m1", [0], epoch=0), **classic)
    after = group(member("m1", [0, 1], epoch=0), **classic, epoch=6)
    assert texts(before, after) == ["generation 5 -> 6", "orders-1: nobody -> m1"]


def test_subscriptions_change_unless_they_are_not_shown() -> None:
    before, hidden = group(member("m1")), group(member("m1", names=()))
    after = group(member("m1", names=("orders", "payments")))
    assert texts(before, after) == ["m1 subscribes to orders,payments"]
    assert texts(before, hidden) == texts(hidden, before) == []


def test_only_waits_that_are_new_are_told() -> None:
    before = group(member("m2", waits=[("m1", [1]), ("m3", [2])]))
    after = group(member("m2", waits=[("m1", [1]), ("m3", [2, 4])]))
    assert texts(before, after) == ["m2 waits for orders-2, orders-4 from m3"]
    assert texts(after, group(member("m2"))) == []


def test_a_freeze_and_its_end_are_told() -> None:
    frozen = group(frozen_since_ms=1_700_000_000_000, frozen_by="User:ann")
    said = "since 2023-11-14T22:13:20Z by User:ann"
    assert texts(group(), frozen) == [f"frozen no -> {said}"]
    assert texts(frozen, group()) == [f"frozen {said} -> no"]
