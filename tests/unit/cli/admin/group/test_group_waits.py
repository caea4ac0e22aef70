"""`muster group describe` says who waits for whom."""

from __future__ import annotations

import pytest

from cli.admin.group.group_views import compute_description
from cli.admin.group.group_waits import LINES_MAX, render_waits
from cli.output import Format, print_listing
from muster.v1 import admin_pb2, types_pb2


def waiting(partitions: list[int], **fields: int) -> admin_pb2.GroupMember:
    orders = types_pb2.TopicPartitions(topic_name="orders", partitions=partitions)
    wait = admin_pb2.MemberWait(owner_id="m1", partitions=[orders], **fields)
    return admin_pb2.GroupMember(member_id="m2", waits=[wait])


@pytest.mark.parametrize(
    ("member", "line"),
    [
        (waiting([3], waited_ms=4_900), "m2 waits for orders-3 from m1, 4 s"),
        (
            waiting([3], waited_ms=4_000, left_ms=55_001),
            "m2 waits for orders-3 from m1, 4 s (m1 may keep it for 56 s more)",
        ),
        (
            waiting([3, 4], waited_ms=0, left_ms=0),
            "m2 waits for orders-3, orders-4 from m1, 0 s (m1 may keep them for 0 s more)",
        ),
        (waiting([3]), "m2 waits for orders-3 from m1"),
        (
            waiting(list(range(10))),
            f"m2 waits for {', '.join(f'orders-{n}' for n in range(8))} and 2 more from m1",
        ),
    ],
)
def test_a_wait_is_one_line(member: admin_pb2.GroupMember, line: str) -> None:
    assert render_waits([member]) == [line]


def test_many_waits_are_cut_short() -> None:
    lines = render_waits([waiting([3])] * (LINES_MAX + 5))
    assert len(lines) == LINES_MAX + 1
    assert lines[-1] == "and 5 more waits; -o json shows all"


def test_what_clients_chose_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    member = waiting([3])
    member.waits[0].owner_id = "m1\x1b[2J\nall is well"
    group = admin_pb2.Group(
        group_id="g", group_type=admin_pb2.GROUP_TYPE_CONSUMER, members=[member]
    )
    print_listing(compute_description(group), Format.TABLE)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"m2 waits for orders-3 from m1\x1b[2J\nall is well" in shown.splitlines()
