"""What is found in the logs of members, where there is something to be found."""

from __future__ import annotations

from typing import Any

from tests.migration.check_logs import (
    AFTER_KILL_MS,
    Standstill,
    compute_closes,
    compute_standstills,
    find_double_owners,
    find_unread,
)


def say(event: str, member: str, at_ms: int, **fields: Any) -> dict[str, Any]:
    return {"event": event, "member": member, "at_ms": at_ms, **fields}


def read(member: str, at_ms: int, first: int, last: int) -> dict[str, Any]:
    return say("records", member, at_ms, spans={"t-0": (first, last)})


def test_a_partition_that_is_taken_before_it_is_given_up_has_two_owners() -> None:
    taken, given_up = say("assigned", "b", 5, partitions=["t-0"]), {"partitions": ["t-0"]}
    first = say("assigned", "a", 1, partitions=["t-0"])
    assert find_double_owners([first, say("revoked", "a", 5, **given_up), taken]) == []
    assert find_double_owners([first, say("lost", "a", 4, **given_up), taken]) == []
    assert find_double_owners([first, taken, say("revoked", "a", 6, **given_up)]) == [
        "t-0 at 5: a and b"
    ]


def test_messages_that_nobody_has_read_are_found_at_the_end_and_in_between() -> None:
    events = [read("a", 1, 0, 4), read("b", 2, 3, 6), read("b", 3, 9, 9)]
    assert find_unread(events, {"t-0": 10}) == ["t-0: 7 to 8"]
    assert find_unread([*events, read("a", 4, 7, 8)], {"t-0": 10}) == []
    assert find_unread(events[:2], {"t-0": 10}) == ["t-0: 7 to 9"]


def test_a_standstill_ends_with_a_read_and_is_not_that_of_a_member_that_closes() -> None:
    events = [
        read("a", 0, 0, 0),
        read("b", 0, 0, 0),
        say("closing", "b", 50),
        read("a", 100, 1, 1),
        read("a", 3_000, 2, 2),
        read("b", 9_000, 3, 3),
    ]
    assert compute_standstills(events, []) == [
        Standstill("a", 100, 3_000),
        Standstill("a", 0, 100),
    ]


def test_the_time_after_a_kill_is_cut_out_of_a_standstill() -> None:
    kill_ms = 1_000
    events = [read("a", 500, 0, 0), read("a", kill_ms + AFTER_KILL_MS + 300, 1, 1)]
    assert [each.took_ms for each in compute_standstills(events, [kill_ms])] == [500, 300]


def test_a_close_lasts_from_the_command_to_the_end() -> None:
    events = [say("closing", "a", 5), say("closing", "b", 6), say("closed", "a", 9)]
    assert compute_closes([*events, say("closed", "b", 66)]) == [
        Standstill("b", 6, 66),
        Standstill("a", 5, 9),
    ]
