"""What the page of a group shows of answers."""

from __future__ import annotations

import pytest

from console.live.group_sections import Answers, RowMaker, Timeline
from console.views.group_view import compute_facts, compute_member, compute_waits
from console.views.lag_history import SAMPLES_MAX, LagHistory
from console.views.partitions_view import (
    Owner,
    OwnerFinder,
    compute_partition,
    find_committed,
    sort_places,
)
from console.views.places import NO_PLACES, RANGES_MAX, compute_places, compute_ranges
from console.views.timeline_view import compute_timeline
from coordinator.runtime.loop.slices import run_at_once
from muster.v1 import admin_pb2, explain_pb2, reset_pb2, types_pb2
from wording.commands import quote_word

NOW_MS = 1_795_214_657_500


def of(topic: str, *partitions: int) -> types_pb2.TopicPartitions:
    return types_pb2.TopicPartitions(topic_name=topic, partitions=partitions)


@pytest.mark.parametrize(
    ("partitions", "ranges"),
    [
        ((), []),
        ((4,), ["4"]),
        ((0, 1, 2), ["0-2"]),
        ((0, 2, 3, 9), ["0", "2-3", "9"]),
    ],
)
def test_numbers_that_follow_each_other_are_one_range(
    partitions: tuple[int, ...], ranges: list[str]
) -> None:
    assert compute_ranges(partitions) == ranges


def test_long_lists_are_folded_and_bounded() -> None:
    assert compute_places([]) == NO_PLACES
    few = compute_places([of("a", 0, 1), of("b", 7)])
    assert (few.count, few.text, few.rest) == (3, "a 0-1; b 7", "")
    many = compute_places([of("a", *range(0, 20, 2)), of("b", 1)])
    assert many.text == "a 0, 2, 4, 6, 8, 10"
    assert many.rest == "a 12, 14, 16, 18; b 1"
    huge = compute_places([of("a", *range(0, 10 * RANGES_MAX, 2))])
    assert huge.count == 5 * RANGES_MAX
    assert huge.rest.count(",") < RANGES_MAX
    assert huge.rest.endswith("muster group describe lists all")


def make_group(**fields: object) -> admin_pb2.Group:
    defaults: dict[str, object] = {
        "group_id": "g",
        "group_type": admin_pb2.GROUP_TYPE_CONSUMER,
        "state": admin_pb2.GROUP_STATE_RECONCILING,
        "group_epoch": 5,
        "assignment_epoch": 5,
        "members": [
            admin_pb2.GroupMember(
                member_id="a",
                member_epoch=4,
                state=admin_pb2.MEMBER_STATE_UNREVOKED_PARTITIONS,
                assignment=[of("t", 0)],
                pending_revocation=[of("t", 1)],
                target_assignment=[of("t", 0)],
            ),
            admin_pb2.GroupMember(
                member_id="b",
                client_id="c",
                member_epoch=5,
                state=admin_pb2.MEMBER_STATE_UNRELEASED_PARTITIONS,
                target_assignment=[of("t", 1, 2)],
                waits=[
                    admin_pb2.MemberWait(
                        owner_id="a", partitions=[of("t", 1)], waited_ms=2_100, left_ms=9_000
                    )
                ],
            ),
        ],
    }
    return admin_pb2.Group(**(defaults | fields))  # type: ignore[arg-type]


def test_members_say_where_they_are_on_the_way() -> None:
    group = make_group()
    facts = compute_facts(group)
    assert (facts.state, facts.is_settled, facts.behind, facts.frozen) == (
        "Reconciling",
        False,
        2,
        "",
    )
    first, second = (compute_member(group, member) for member in group.members)
    assert (first.epoch, first.is_moving, first.state) == (4, True, "revoking partitions")
    assert (first.assigned.text, first.pending.text) == ("t 0", "t 1")
    assert (second.state, second.awaited.text, second.is_moving) == (
        "waits for partitions",
        "t 1",
        True,
    )


def test_waits_have_the_times_of_the_wall_clock() -> None:
    (wait,), more = compute_waits(make_group(), NOW_MS)
    assert (wait.member_id, wait.owner_id, wait.places.text, more) == ("b", "a", "t 1", 0)
    assert wait.since.endswith("44:15Z")
    assert wait.until.endswith("44:27Z")
    later, _ = compute_waits(make_group(), NOW_MS + 40)
    assert later == [wait], "a little later it is the same row"


def test_a_frozen_group_says_since_when_and_by_whom() -> None:
    facts = compute_facts(make_group(frozen_since_ms=NOW_MS, frozen_by="User:a"))
    assert facts.frozen == "since 2026-11-20T22:44:18Z by User:a"


def test_a_partition_has_its_owner_and_who_is_to_get_it() -> None:
    owners = run_at_once(OwnerFinder().find(make_group().members))
    assert owners["t", 0] == Owner("a", "", "")
    assert owners["t", 1] == Owner("a", "", "b")
    assert owners["t", 2] == Owner("", "", "b")
    rows = {("t", 1): None, ("s", 7): None, ("t", 11): None}
    everything = [("s", 7), ("t", 0), ("t", 1), ("t", 2), ("t", 11)]
    assert run_at_once(sort_places([*owners, *rows])) == everything


def test_owners_are_found_again_as_at_first() -> None:
    finder = OwnerFinder()
    group = make_group()
    for change in (
        lambda: None,
        lambda: group.members[0].pending_revocation.pop(),
        lambda: group.members[1].assignment.extend(
            [types_pb2.TopicPartitions(topic_name="t", partitions=[1])]
        ),
        lambda: group.members.pop(0),
    ):
        change()
        found = run_at_once(finder.find(group.members))
        assert found == run_at_once(OwnerFinder().find(group.members))
    assert ("t", 0) not in found


def test_what_is_not_known_of_offsets_is_not_zero() -> None:
    rows = find_committed(
        [
            types_pb2.CommittedTopic(
                topic_name="t",
                partitions=[
                    types_pb2.CommittedOffset(partition=0, offset=5),
                    types_pb2.CommittedOffset(
                        partition=1, offset=5, end_offset=12_345, lag_ms=1_500
                    ),
                    types_pb2.CommittedOffset(partition=2, end_offset=5),
                    types_pb2.CommittedOffset(partition=3, offset=9, end_offset=8, lag_ms=0),
                ],
            )
        ]
    )
    shown = [
        compute_partition(place, Owner(), row, "")
        for place, row in [*rows.items(), (("t", 4), None)]
    ]
    assert [(row.committed, row.end, row.lag, row.lag_seconds) for row in shown] == [
        ("5", "", "", ""),
        ("5", "12345", "12,340", "1.5"),
        ("", "5", "", ""),
        ("9", "8", "0", "0.0"),
        ("", "", "", ""),
    ]


def test_a_trend_needs_time_and_is_in_words() -> None:
    history, place = LagHistory(), ("t", 0)
    history.add(0, {place: 600})
    history.add(5_000, {place: 500})
    assert history.describe_trend(place) == ""
    history.add(60_000, {place: 300})
    assert history.describe_trend(place) == "falls 300/min, none in 1 min"
    history.add(120_000, {place: 1_200})
    assert history.describe_trend(place) == "rises 300/min"
    history.add(121_000, {place: 600})
    assert history.describe_trend(place) == "steady"
    for number in range(1_000):
        history.add(200_000 + number * 2_000, {place: 0})
    assert history.describe_trend(place) == "none"
    assert len(history.total) == len(history.by_place[place]) == SAMPLES_MAX
    history.add(3_000_000, {})
    assert not history.by_place


def test_while_a_rebalance_goes_on_its_row_does_not_change_with_each_look() -> None:
    def tell(took_ms: int) -> explain_pb2.Rebalance:
        held = explain_pb2.HeldUp(
            member_id="a", step=explain_pb2.HELD_UP_STEP_REVOKING, took_ms=took_ms
        )
        return explain_pb2.Rebalance(
            began_ms=NOW_MS,
            epoch_before=4,
            epoch=5,
            cause=explain_pb2.REBALANCE_CAUSE_MEMBER_JOINED,
            member_id="b",
            ending=explain_pb2.REBALANCE_ENDING_GOES_ON,
            held_up=[held],
        )

    (row,) = compute_timeline([tell(1)])
    assert (row.epochs, row.kind, row.ending, row.held_up) == (
        "4 → 5",
        "member_joined",
        "… goes on",
        "a, revoking",
    )
    assert compute_timeline([tell(900)]) == [row]
    ended = tell(900)
    ended.ending = explain_pb2.REBALANCE_ENDING_CONVERGED
    ended.ended_ms = NOW_MS + 1_200
    (after,) = compute_timeline([ended])
    assert (after.ending, after.held_up, after.after) == (
        "converged after 1.2 s",
        "a, revoking, 900 ms",
        str(NOW_MS + 1_200),
    )


def test_changes_of_offsets_are_among_the_rebalances() -> None:
    def change(at_ms: int, first: int, **fields: object) -> reset_pb2.OffsetChange:
        return reset_pb2.OffsetChange(
            log_offset=first,
            last_log_offset=first + 2,
            changed_ms=at_ms,
            offsets=3,
            **fields,  # type: ignore[arg-type]
        )

    changes = [
        change(
            NOW_MS + 20,
            40,
            kind=reset_pb2.OFFSET_CHANGE_KIND_UNDO,
            principal="User:a",
            undoes=30,
        ),
        change(NOW_MS - 20, 0, kind=reset_pb2.OFFSET_CHANGE_KIND_GROUP_DELETED),
    ]
    rows = compute_timeline([explain_pb2.Rebalance(began_ms=NOW_MS, epoch=2)], changes)
    assert [row.key for row in rows] == ["change.40", f"{NOW_MS}.2", "change.0"]
    undone, _, deleted = rows
    assert (undone.kind, undone.cause) == (
        "offsets_undone",
        "3 offsets, by User:a, change 40, undoes 30",
    )
    assert (undone.before, undone.after) == ("offset:39", "offset:42")
    # There is no group to look at before the log begins, nor after its end.
    assert (deleted.kind, deleted.before, deleted.after) == ("group_deleted", "", "")


def test_before_its_first_rebalance_there_was_no_group_to_look_at() -> None:
    def tell(epoch_before: int, *, is_classic: bool) -> explain_pb2.Rebalance:
        return explain_pb2.Rebalance(
            began_ms=NOW_MS, epoch_before=epoch_before, epoch=9, is_classic=is_classic
        )

    rebalances = [tell(0, is_classic=True), tell(1, is_classic=False), tell(0, is_classic=False)]
    assert [row.before for row in compute_timeline(rebalances)] == ["", "", ""]
    later = [tell(1, is_classic=True), tell(2, is_classic=False)]
    assert [row.before for row in compute_timeline(later)] == [str(NOW_MS)] * 2


def test_a_member_that_is_as_before_is_not_looked_at_again() -> None:
    maker = RowMaker()

    def make(group: admin_pb2.Group) -> list[object]:
        sections = dict(run_at_once(maker.make(Answers(group, {}, Timeline(), NOW_MS))))
        return [view for _, view in sections["members"]]

    first = make(make_group())
    again = make(make_group())
    assert [a is b for a, b in zip(first, again, strict=True)] == [True, True]
    group = make_group()
    group.members[0].member_epoch = 5
    changed = make(group)
    assert [a is b for a, b in zip(first, changed, strict=True)] == [False, True]
    assert make(make_group(group_epoch=6, assignment_epoch=6))[1] is first[1]
    classic = admin_pb2.GROUP_TYPE_CLASSIC
    before = make(make_group(group_type=classic))
    assert make(make_group(group_type=classic, group_epoch=6))[1] != before[1]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("billing", "billing"),
        ("a b", "'a b'"),
        ("it's", "'it'\"'\"'s'"),
        ("\x1b[2J", "$'\\x1b[2J'"),
        ("a\nrm -rf '", "$'a\\x0arm -rf \\x27'"),
    ],
)
def test_an_id_in_a_command_is_one_word_and_no_escape(text: str, word: str) -> None:
    assert quote_word(text) == word


def test_a_page_has_at_most_a_thousand_members_and_says_of_how_many() -> None:
    members = [admin_pb2.GroupMember(member_id=f"m-{number:04}") for number in range(1_500)]
    group = make_group(members=members)
    for page, first, count in ((1, "m-0000", 1_000), (2, "m-1000", 500), (3, "", 0)):
        steps = RowMaker().make(Answers(group, {}, Timeline(), NOW_MS, page))
        sections = dict(run_at_once(steps))
        keys = [key for key, _ in sections["members"]]
        assert (len(keys), keys[0] if keys else "") == (count, first)
        assert sections["counts"] == [("counts", (1_500, 0, page))]
