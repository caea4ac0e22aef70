"""Requests for client-side assignments: which members can compute one, which is asked, how long.

A front end offers the members whose streams it holds and that name client-side assignors. Requests
are soft state: after a restart the group still lacks its target, and asks again. The time limit
runs from when the group began to wait; later epochs do not extend it. When it expires, or the
member reports a failure, the server computes the target, and the members are asked again for the
next epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import structlog

from coordinator.core.client_assignors.selection import compute_client_assignor_choice
from coordinator.core.deadlines.stalls import LATE_MS
from coordinator.core.state.consumer.client_assignor_state import ClientAssignmentRequest
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import EndClientAssignmentRequest
from coordinator.core.state.shard import Shard
from coordinator.runtime.clock import Cancellable, Scheduler, SteadyClock
from coordinator.runtime.loop.stats import Stats
from model.ids import GroupId, MemberId

log = structlog.get_logger()

SETTLE_MS = 1
"""After a stall, time for the loop to read what has arrived."""


class Offer:
    """A member that can compute an assignment, until its front end withdraws it."""

    def __init__(
        self,
        group_id: GroupId,
        member_id: MemberId,
        ask: Callable[[], None],
        on_withdrawn: Callable[[Offer], None],
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.ask = ask
        self._on_withdrawn = on_withdrawn

    def withdraw(self) -> None:
        """Withdraw: the member's stream ended, or it names no client-side assignor now."""
        self._on_withdrawn(self)


class ClientAssignments:
    """The requests of all groups. ``mark`` schedules a target, whoever computes it."""

    def __init__(
        self,
        scheduler: Scheduler,
        clock: SteadyClock,
        stats: Stats,
        time_limit_ms: int,
        *,
        shard_of: Callable[[GroupId], Shard],
        mark: Callable[[GroupId], None],
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._stats = stats
        self._time_limit_ms = time_limit_ms
        self._shard_of = shard_of
        self._mark = mark
        self._offers: dict[GroupId, dict[MemberId, Offer]] = {}
        self._timers: dict[GroupId, Cancellable] = {}
        self._failures: dict[GroupId, dict[MemberId, int]] = {}
        """Failed requests per member; the member with the fewest is asked first."""

    def stop(self) -> None:
        """Cancel all time limits."""
        for group_id in tuple(self._timers):
            self._disarm(group_id)

    # ----------------------------------------------------------------------------------- offers

    def offer(self, group_id: GroupId, member_id: MemberId, ask: Callable[[], None]) -> Offer:
        """Offer a member; ``ask`` is called at once if its group waits for a member to ask.

        A newer offer replaces an older one of the same member.
        """
        offer = Offer(group_id, member_id, ask, self._withdraw)
        self._offers.setdefault(group_id, {})[member_id] = offer
        request = self._shard_of(group_id).soft.client_assignment_requests.get(group_id)
        if request is not None and request.member_id in (None, member_id):
            self._ask_somebody(request)
        return offer

    def _withdraw(self, offer: Offer) -> None:
        """Remove the offer. If this member was asked, ask another; the time limit keeps running."""
        group_id, offers = offer.group_id, self._offers.get(offer.group_id, {})
        if offers.get(offer.member_id) is not offer:
            return
        del offers[offer.member_id]
        if not offers:
            del self._offers[group_id]
        request = self._shard_of(group_id).soft.client_assignment_requests.get(group_id)
        if request is not None and request.member_id == offer.member_id:
            self._ask_somebody(replace(request, member_id=None))

    # -------------------------------------------------------------------------------- requests

    def takes(self, group_id: GroupId) -> bool:
        """Whether members compute the target that the group lacks; ``False`` if it lacks none.

        Nobody computes that of a frozen group.
        """
        shard = self._shard_of(group_id)
        group = shard.consumer_groups.get(group_id)
        if (
            group is None
            or group.client_assignor_state is None
            or group.target_epoch >= group.group_epoch
            or group_id in shard.freezes
        ):
            self._forget(shard, group_id)
            return False
        request = shard.soft.client_assignment_requests.get(group_id)
        if request is not None and request.group_epoch == group.group_epoch:
            return not request.is_given_up
        return self._begin(shard, group, request)

    def _begin(
        self, shard: Shard, group: ConsumerGroup, before: ClientAssignmentRequest | None
    ) -> bool:
        choice, group_id = compute_client_assignor_choice(group), group.group_id
        if choice is None:
            self._forget(shard, group_id)
            return False
        if group_id in self._failures:
            known = self._failures[group_id].items()
            self._failures[group_id] = {one: count for one, count in known if group.member(one)}
        deadline_ms = self._clock.monotonic_ms() + self._time_limit_ms
        if before is not None and not before.is_given_up:
            deadline_ms = before.deadline_ms
        request = ClientAssignmentRequest(
            group_id, group.group_epoch, choice.name, choice.version, deadline_ms
        )
        if group_id not in self._timers:
            self._arm(group_id, self._time_limit_ms)
        self._ask_somebody(request)
        return True

    def _ask_somebody(self, request: ClientAssignmentRequest) -> None:
        """Ask the offered member with the fewest failures, in the order of the choice."""
        group_id = request.group_id
        shard = self._shard_of(group_id)
        group = shard.consumer_groups.get(group_id)
        choice = None if group is None else compute_client_assignor_choice(group)
        if group is None or choice is None or request.is_given_up:
            return
        offers, failures = self._offers.get(group_id, {}), self._failures.get(group_id, {})
        there = [member_id for member_id in choice.member_ids if member_id in offers]
        chosen = min(there, key=lambda member_id: failures.get(member_id, 0), default=None)
        shard.soft.client_assignment_requests[group_id] = replace(request, member_id=chosen)
        if chosen is not None:
            offers[chosen].ask()

    def end(self, effect: EndClientAssignmentRequest) -> None:
        """End a request: the assignment is installed, or failed and the server computes."""
        shard, group_id = self._shard_of(effect.group_id), effect.group_id
        request = shard.soft.client_assignment_requests.get(group_id)
        if request is None or request.group_epoch != effect.group_epoch:
            return
        if effect.reason is not None:
            self._give_up(shard, request, effect.reason, effect.cause)
            return
        self._stats.targets_installed += 1
        if request.member_id is not None:
            self._failures.get(group_id, {}).pop(request.member_id, None)
        self._forget(shard, group_id)

    def _give_up(
        self, shard: Shard, request: ClientAssignmentRequest, reason: str, cause: str
    ) -> None:
        group_id, member_id = request.group_id, request.member_id
        if member_id is not None:
            failures = self._failures.setdefault(group_id, {})
            failures[member_id] = failures.get(member_id, 0) + 1
        counts = self._stats.assignor_failures_by_reason
        counts[reason] = counts.get(reason, 0) + 1
        log.error(
            "assignor_failed",
            group_id=group_id,
            assignor=request.assignor,
            member_id=member_id,
            group_epoch=request.group_epoch,
            reason=reason,
            cause=cause,
        )
        self._disarm(group_id)
        shard.soft.client_assignment_requests[group_id] = replace(request, is_given_up=True)
        self._mark(group_id)

    def _forget(self, shard: Shard, group_id: GroupId) -> None:
        self._disarm(group_id)
        shard.soft.client_assignment_requests.pop(group_id, None)
        if group_id not in shard.consumer_groups:
            self._failures.pop(group_id, None)

    # ---------------------------------------------------------------------------------- time

    def _arm(self, group_id: GroupId, wait_ms: int) -> None:
        due_ms = self._clock.monotonic_ms() + wait_ms
        self._timers[group_id] = self._scheduler.call_later_ms(
            wait_ms, lambda: self._look_at_time(group_id, due_ms)
        )

    def _disarm(self, group_id: GroupId) -> None:
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()

    def _look_at_time(self, group_id: GroupId, due_ms: int) -> None:
        """Give up on a request whose time is over.

        If the timer fires late (the process stalled), the deadline moves: the answer may be unread.
        """
        del self._timers[group_id]
        shard, now_ms = self._shard_of(group_id), self._clock.monotonic_ms()
        request = shard.soft.client_assignment_requests.get(group_id)
        if request is None or request.is_given_up:
            return
        if now_ms - due_ms > LATE_MS:
            deadline_ms = request.deadline_ms + now_ms - due_ms
            request = replace(request, deadline_ms=max(deadline_ms, now_ms + SETTLE_MS))
            shard.soft.client_assignment_requests[group_id] = request
        left_ms = request.deadline_ms - now_ms
        if left_ms > 0:
            self._arm(group_id, left_ms)
            return
        group = shard.consumer_groups.get(group_id)
        if group is None or group.target_epoch >= group.group_epoch:
            self._forget(shard, group_id)
            return
        cause = f"no member sent an assignment within {self._time_limit_ms} ms"
        self._give_up(shard, request, "late", cause)
