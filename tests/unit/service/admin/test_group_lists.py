"""Lists of groups: what they show, in which order, page by page."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from coordinator.service.admin.group_lists import (
    GroupPage,
    compute_group_page,
    decode_group_filter,
)
from coordinator.service.wire.error_statuses import InvalidField
from coordinator.service.wire.paging import Page, compute_page, compute_page_token
from model.ids import GroupId
from model.responses.groups import ListedGroup
from muster.v1 import admin_pb2

ORDERS = [
    admin_pb2.GROUP_ORDER_UNSPECIFIED,
    admin_pb2.GROUP_ORDER_ID,
    admin_pb2.GROUP_ORDER_MEMBERS,
    admin_pb2.GROUP_ORDER_EPOCH,
    admin_pb2.GROUP_ORDER_STATE,
    admin_pb2.GROUP_ORDER_TYPE,
]
SORT_KEYS: dict[int, Callable[[ListedGroup], tuple[object, ...]]] = {
    admin_pb2.GROUP_ORDER_UNSPECIFIED: lambda group: (group.group_id,),
    admin_pb2.GROUP_ORDER_ID: lambda group: (group.group_id,),
    admin_pb2.GROUP_ORDER_MEMBERS: lambda group: (-group.members, group.group_id),
    admin_pb2.GROUP_ORDER_EPOCH: lambda group: (-group.group_epoch, group.group_id),
    admin_pb2.GROUP_ORDER_STATE: lambda group: (group.state, group.group_id),
    admin_pb2.GROUP_ORDER_TYPE: lambda group: (group.group_type, group.group_id),
}


def make_group(name: str, members: int = 0, protocol: str = "consumer") -> ListedGroup:
    state = "Stable" if members else "Empty"
    return ListedGroup(GroupId(name), protocol, state, "consumer", members, members)


def make_groups(count: int) -> list[ListedGroup]:
    rng = random.Random(7)
    groups = [
        ListedGroup(
            GroupId(f"g{number}"),
            rng.choice(["consumer", "connect", ""]),
            rng.choice(["Stable", "Empty", "Reconciling"]),
            rng.choice(["classic", "consumer"]),
            rng.choice([0, 1, 9, 10, 2**31 - 1]),
            rng.choice([-1, 0, 5, 2**31 - 1]),
        )
        for number in range(count)
    ]
    rng.shuffle(groups)
    return groups


def read_page(
    groups: Iterable[ListedGroup],
    page: Page,
    request: admin_pb2.ListGroupsRequest | None = None,
    may_see: Callable[[GroupId], bool] = lambda _: True,
) -> tuple[GroupPage, int]:
    """The page, and how many slices it took."""
    means = decode_group_filter(request or admin_pb2.ListGroupsRequest())
    steps = compute_group_page(list(groups), means, may_see, page)
    slices = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, slices
        slices += 1


def read_all(
    groups: list[ListedGroup], size: int, request: admin_pb2.ListGroupsRequest
) -> list[ListedGroup]:
    found: list[ListedGroup] = []
    after: str | None = None
    while True:
        page, _ = read_page(groups, Page(size, after), request)
        found += page.groups
        if page.last_key is None:
            return found
        assert len(page.groups) == size
        after = page.last_key


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [1, 7, 999, 1_000, 1_001, 5_000])
def test_pages_are_the_sorted_list_in_parts(order: admin_pb2.GroupOrder, size: int) -> None:
    groups = make_groups(3_000 if size > 1 else 40)
    request = admin_pb2.ListGroupsRequest(order=order)
    assert read_all(groups, size, request) == sorted(groups, key=SORT_KEYS[order])


def test_the_last_page_may_be_full() -> None:
    page, _ = read_page(map(make_group, "abcd"), Page(2, "b"))
    assert [group.group_id for group in page.groups] == ["c", "d"]
    assert page.last_key is None


def test_only_groups_that_are_frozen() -> None:
    groups = [make_group("a"), replace(make_group("b"), frozen_since_ms=7), make_group("c")]
    page, _ = read_page(groups, Page(10, None), admin_pb2.ListGroupsRequest(frozen=True))
    assert [group.group_id for group in page.groups] == ["b"]
    assert page.total == 1


def test_groups_that_come_and_go_move_no_other_to_another_page() -> None:
    first, _ = read_page(map(make_group, "bdfh"), Page(2, None))
    assert [group.group_id for group in first.groups] == ["b", "d"]
    # The last group of the page is gone, one came before it and one after it.
    second, _ = read_page(map(make_group, "abefh"), Page(3, first.last_key))
    assert [group.group_id for group in second.groups] == ["e", "f", "h"]


def test_a_pattern_matches_whole_ids_and_a_protocol_is_exact() -> None:
    groups = [make_group("pay-1"), make_group("pay-2", protocol="connect"), make_group("prepay-1")]
    for request, expected in (
        (admin_pb2.ListGroupsRequest(pattern="pay-.*"), ["pay-1", "pay-2"]),
        (admin_pb2.ListGroupsRequest(pattern="pay"), []),
        (admin_pb2.ListGroupsRequest(protocol_types=["connect"]), ["pay-2"]),
        (admin_pb2.ListGroupsRequest(protocol_types=["connect"], pattern=".*1"), []),
        (
            admin_pb2.ListGroupsRequest(protocol_types=["consumer"], pattern=".*1"),
            ["pay-1", "prepay-1"],
        ),
    ):
        page, _ = read_page(groups, Page(10, None), request)
        assert [group.group_id for group in page.groups] == expected


def test_a_page_is_full_although_some_groups_are_not_the_caller_s_to_see() -> None:
    page, _ = read_page(map(make_group, "abcdef"), Page(2, None), None, lambda name: name > "b")
    assert [group.group_id for group in page.groups] == ["c", "d"]
    assert page.last_key == "d"


@pytest.mark.parametrize("after", [None, "b", "f"])
def test_the_total_is_of_all_pages_and_of_what_the_caller_may_see(after: str | None) -> None:
    page, _ = read_page(map(make_group, "abcdef"), Page(2, after), None, lambda name: name > "b")
    assert page.total == 4


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (admin_pb2.ListGroupsRequest(pattern="("), "pattern"),
        (admin_pb2.ListGroupsRequest(pattern="a" * 100_000), "pattern"),
        (admin_pb2.ListGroupsRequest(pattern="(((a{99}){99}){99})"), "pattern"),
        (admin_pb2.ListGroupsRequest.FromString(b"\x38\x63"), "order"),  # 99, of a later version
    ],
)
def test_a_bad_filter_names_its_field(request_: admin_pb2.ListGroupsRequest, field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        decode_group_filter(request_)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "other",
    [
        admin_pb2.ListGroupsRequest(pattern="a"),
        admin_pb2.ListGroupsRequest(protocol_types=["consumer"]),
        admin_pb2.ListGroupsRequest(order=admin_pb2.GROUP_ORDER_MEMBERS),
        admin_pb2.ListGroupsRequest(states=[admin_pb2.GROUP_STATE_EMPTY]),
        admin_pb2.ListGroupsRequest(frozen=True),
    ],
)
def test_a_token_is_good_for_the_same_question_alone(other: admin_pb2.ListGroupsRequest) -> None:
    plain = decode_group_filter(admin_pb2.ListGroupsRequest()).as_values()
    by_id = decode_group_filter(
        admin_pb2.ListGroupsRequest(order=admin_pb2.GROUP_ORDER_ID)
    ).as_values()
    token = compute_page_token("g", plain)
    assert compute_page(0, token, by_id, 10, 100) == Page(10, "g")
    with pytest.raises(InvalidField):
        compute_page(0, token, decode_group_filter(other).as_values(), 10, 100)


def test_a_long_list_is_read_in_slices_and_a_dear_pattern_in_more() -> None:
    groups = [make_group(f"{number:0200d}") for number in range(5_000)]
    _, plain = read_page(groups, Page(10, None))
    assert plain == 10
    dear = "|".join(f".*{number}x" for number in range(100))
    _, slices = read_page(groups, Page(10, None), admin_pb2.ListGroupsRequest(pattern=dear))
    assert slices > 3 * plain
