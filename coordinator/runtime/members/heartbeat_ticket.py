"""Heartbeat tickets: make repeated heartbeats cheap (``coordinator.runtime.api.MemberTicket``)."""

from __future__ import annotations

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.deadlines.member_liveness import MemberLiveness
from coordinator.core.state.consumer.consumer_group import ConsumerGroup


class Ticket:
    """A member whose heartbeats get the same response as long as its group does not change."""

    __slots__ = ("_entry", "_group", "_liveness", "_revision")

    def __init__(self, group: ConsumerGroup, entry: MemberLiveness, liveness: Liveness) -> None:
        self._group = group
        self._revision = group.revision
        self._entry = entry
        self._liveness = liveness

    def touch(self, monotonic_ms: int) -> bool:
        entry = self._entry
        if self._group.revision != self._revision or entry.is_gone or entry.must_go:
            return False
        self._liveness.touch(entry, monotonic_ms)
        return True

    def is_valid(self) -> bool:
        return self._group.revision == self._revision and not self._entry.is_gone


def make_ticket(
    group: ConsumerGroup | None, entry: MemberLiveness | None, liveness: Liveness
) -> Ticket | None:
    """A ticket for a current member.

    ``None`` while the group lacks a target: every heartbeat must ask for it again, because the last
    attempt may have failed.
    """
    if group is None or entry is None or group.target_epoch < group.group_epoch:
        return None
    return Ticket(group, entry, liveness)
