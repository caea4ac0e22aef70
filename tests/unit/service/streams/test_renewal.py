"""Renewing members by tickets while nothing changes, and by name when it does."""

from __future__ import annotations

from typing import cast

from coordinator.runtime.api import Coordinator
from coordinator.service.streams.renewal import Renewal
from coordinator.service.streams.sessions import MemberKey
from model.ids import GroupId, MemberId

KEYS: list[MemberKey] = [(GroupId("g"), MemberId(name)) for name in "abc"]


class Ticket:
    def __init__(self) -> None:
        self.is_valid = True
        self.touched_ms: list[int] = []

    def touch(self, monotonic_ms: int) -> bool:
        if self.is_valid:
            self.touched_ms.append(monotonic_ms)
        return self.is_valid


class Members:
    """A coordinator that knows who is a member, and counts how it is asked."""

    def __init__(self) -> None:
        self.present = set(KEYS)
        self.undurable: set[MemberKey] = set()
        self.tickets: dict[MemberKey, Ticket] = {}
        self.touches = 0

    def touch(self, group_id: GroupId, member_id: MemberId) -> bool:
        self.touches += 1
        return (group_id, member_id) in self.present

    def ticket(self, group_id: GroupId, member_id: MemberId) -> Ticket | None:
        key = (group_id, member_id)
        if key not in self.present - self.undurable:
            return None
        self.tickets[key] = Ticket()
        return self.tickets[key]


def make() -> tuple[Members, Renewal]:
    members = Members()
    return members, Renewal(cast("Coordinator", members))


def test_at_rest_members_are_renewed_by_their_tickets() -> None:
    members, renewal = make()
    assert renewal.renew(KEYS, 1) == []
    assert members.touches == 3
    assert renewal.renew(KEYS, 2) == renewal.renew(KEYS, 3) == []
    assert members.touches == 3
    assert {tuple(ticket.touched_ms) for ticket in members.tickets.values()} == {(2, 3)}


def test_a_ticket_that_died_is_replaced() -> None:
    members, renewal = make()
    renewal.renew(KEYS, 1)
    members.tickets[KEYS[1]].is_valid = False
    assert renewal.renew(KEYS, 2) == []
    assert members.touches == 6
    renewal.renew(KEYS, 3)
    assert members.touches == 6


def test_who_is_gone_is_said() -> None:
    members, renewal = make()
    renewal.renew(KEYS, 1)
    members.present.discard(KEYS[2])
    members.tickets[KEYS[2]].is_valid = False
    assert renewal.renew(KEYS, 2) == [KEYS[2]]


def test_members_without_a_ticket_are_renewed_all_the_same() -> None:
    members, renewal = make()
    members.undurable.add(KEYS[0])
    for now in (1, 2):
        assert renewal.renew(KEYS, now) == []
    assert members.touches == 6
    renewal.forget()
    members.undurable.clear()
    renewal.renew(KEYS[:2], 3)
    renewal.renew(KEYS[:2], 4)
    assert members.touches == 8
