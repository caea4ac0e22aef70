"""Liveness of members (soft state): when they were last heard from, and their deadlines.

It is rebuilt on load and never written to the log. Deadlines are data: the runtime polls
``next_deadline_ms``. All times are on a clock that stops while the process is stalled
(``coordinator.core.deadlines.stalls``). Whatever the load, a silent member is removed within its
session timeout plus a fifth of it, 2 s, and at most one stall in 10 s.

A member on a gRPC stream holds a lease: it was promised a session timeout, and assumes for that
long after each renewal that it owns its partitions (``muster.connection.lease``). No deadline
removes it earlier:

- Its session lasts as long as the longest timeout it was sent.
- Once its rebalance timeout has passed, its lease is not renewed (``must_go``), and its stream
  tells it so. The member is removed when its lease ends or when it confirms that it has stopped.
- The timeouts sent before a restart are not known. Members that are loaded at start-up are not
  removed until the longest timeout that they may have been sent has passed.
"""

from __future__ import annotations

from collections.abc import Collection

from coordinator.core.deadlines.classic_deadlines import FAR_MS, ClassicDeadlines
from coordinator.core.deadlines.deadline_buckets import BUCKET_MS, DeadlineBuckets
from coordinator.core.deadlines.member_liveness import (
    NOT_HEARD_MS,
    MemberLiveness,
    RebalanceDeadline,
    Reservation,
    compute_heard_ms,
    compute_lease_end_ms,
)
from coordinator.core.deadlines.stalls import Stalls
from model.caller import INTERNAL
from model.commands.classic import ClassicDeadline, ExpireClassicDeadline
from model.commands.consumer import Deadline, ExpireMember
from model.ids import GroupId, MemberId

CLASSIC_AGAIN_MS = 5_000
"""The delay until a deadline of a classic group expires again after its expiry was refused."""

LOOKS_MAX = 500
"""The most deadlines of one kind examined in one event-loop iteration. After a restart or a network
partition those of very many members may expire together, and each expiry is a command.
"""


class Liveness:
    """Deadlines of all members. Times given and returned are monotonic milliseconds."""

    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._own_timeouts_ms: dict[GroupId, int] = {}
        self._longest_timeouts_ms: dict[GroupId, int] = {}
        self._members: dict[GroupId, dict[MemberId, MemberLiveness]] = {}
        self._buckets = DeadlineBuckets()
        self._kept: dict[tuple[GroupId, MemberId], tuple[RebalanceDeadline, bool]] = {}
        """Rebalance deadlines of members whose session expired, until the expiry is accepted."""
        self._heard_ms = 0
        self._promised_until_ms = 0
        self.classic = ClassicDeadlines()
        """The deadlines of classic groups, on the clock of ``stalls``."""
        self.stalls = Stalls()

    # -------------------------------------------------------------------------------- members

    def session_timeout_ms(self, group_id: GroupId) -> int:
        """The session timeout of the group's members."""
        return self._own_timeouts_ms.get(group_id, self._session_timeout_ms)

    def note_longest_timeout(self, group_id: GroupId, timeout_ms: int) -> None:
        """Note the longest timeout that members may have been sent before the process started."""
        self._longest_timeouts_ms[group_id] = timeout_ms

    def set_session_timeout(self, group_id: GroupId, timeout_ms: int, now_ms: int) -> None:
        """Change the session timeout of a group.

        A longer timeout applies at once. A shorter one applies to a member from its next
        heartbeat on, whose response brings it, and never to a lease that promised a longer one
        (``renew_lease``).
        """
        self.stalls.catch_up(now_ms)
        members = self._members.get(group_id, {}).values()
        for entry in members:
            entry.kept_until_ms = self.session_deadline_ms(entry)
            entry.last_heard_ms, entry.kept_since_ms = NOT_HEARD_MS, compute_heard_ms(entry)
        if timeout_ms == self._session_timeout_ms:
            self._own_timeouts_ms.pop(group_id, None)
        else:
            self._own_timeouts_ms[group_id] = timeout_ms
        soonest_ms = now_ms - self.stalls.stalled_ms + timeout_ms
        for entry in members:
            deadline_ms = self.session_deadline_ms(entry)
            entry.session_bucket = self._buckets.put(entry, min(deadline_ms, soonest_ms))

    def get(self, group_id: GroupId, member_id: MemberId) -> MemberLiveness | None:
        """The entry of a member; ``None`` if it has no session."""
        members = self._members.get(group_id)
        return None if members is None else members.get(member_id)

    def heard(self, group_id: GroupId, member_id: MemberId, now_ms: int) -> MemberLiveness:
        """Renew the session of a member; adds an entry for a new one."""
        self.stalls.catch_up(now_ms)
        now_ms -= self.stalls.stalled_ms
        members = self._members.setdefault(group_id, {})
        entry = members.get(member_id)
        if entry is None:
            entry = members[member_id] = MemberLiveness(group_id, member_id, now_ms)
            timeout_ms = self.session_timeout_ms(group_id)
            entry.session_bucket = self._buckets.put(entry, now_ms + timeout_ms)
        else:
            entry.last_heard_ms = now_ms
        return entry

    def reserve(
        self,
        group_id: GroupId,
        member_id: MemberId,
        grace_ms: int,
        now_ms: int,
        silent_ms: int | None = None,
    ) -> None:
        """End the member's session, and expire it when its grace period ends.

        ``silent_ms`` is how long nothing has been heard from it; ``None`` if it has left.
        """
        self.stalls.catch_up(now_ms)
        self.remove(group_id, member_id)
        entry = self.heard(group_id, member_id, now_ms)
        entry.last_heard_ms -= silent_ms or 0
        until_ms = now_ms - self.stalls.stalled_ms + grace_ms
        entry.reservation = Reservation(until_ms, has_left=silent_ms is None)
        entry.session_bucket = self._buckets.put(entry, until_ms)

    def note_loaded(self, entry: MemberLiveness, now_ms: int) -> None:
        """Mark a member loaded at start-up: it may hold a lease from before the restart."""
        timeout_ms = self.session_timeout_ms(entry.group_id)
        longest_ms = max(timeout_ms, self._longest_timeouts_ms.get(entry.group_id, 0))
        promised_until_ms = now_ms - self.stalls.stalled_ms + longest_ms
        if promised_until_ms != self._promised_until_ms:
            self._promised_until_ms = promised_until_ms
        entry.promised_until_ms = self._promised_until_ms

    def touch(self, entry: MemberLiveness, now_ms: int) -> None:
        """``heard`` for a known entry."""
        stalls = self.stalls
        if now_ms > stalls.late_after_ms:
            stalls.catch_up(now_ms)
        now_ms -= stalls.stalled_ms
        if now_ms != self._heard_ms:
            self._heard_ms = now_ms
        entry.last_heard_ms = self._heard_ms

    def note_lease(self, entry: MemberLiveness) -> bool:
        """Note that the session timeout is about to be sent to the member as its lease.

        A client on a stream stops by itself when its lease ends. Returns ``False``, and promises
        nothing, if the member must go.
        """
        if entry.must_go:
            return False
        entry.lease_ms = max(entry.lease_ms, self.session_timeout_ms(entry.group_id))
        return True

    def renew_lease(self, entry: MemberLiveness, now_ms: int) -> bool:
        """``touch`` for a member on a stream; ``False``, without renewal, if it must go."""
        if not self.note_lease(entry):
            return False
        self.touch(entry, now_ms)
        return True

    def session_deadline_ms(self, entry: MemberLiveness) -> int:
        """When the member's session expires, unless it is renewed until then."""
        if entry.reservation is not None:
            return entry.reservation.until_ms
        timeout_ms = max(self.session_timeout_ms(entry.group_id), entry.lease_ms)
        deadline_ms = max(compute_heard_ms(entry) + timeout_ms, entry.promised_until_ms)
        if entry.last_heard_ms == NOT_HEARD_MS:
            return max(deadline_ms, entry.kept_until_ms)
        return deadline_ms

    def remove(self, group_id: GroupId, member_id: MemberId) -> None:
        """Remove a member; its entries in the buckets are ignored later."""
        members = self._members.get(group_id)
        entry = None if members is None else members.pop(member_id, None)
        if entry is not None:
            entry.is_gone = True
            if not members:
                del self._members[group_id]

    def arm_rebalance(
        self, group_id: GroupId, member_id: MemberId, epoch: int, timeout_ms: int, now_ms: int
    ) -> None:
        """Arm the rebalance timeout: the member must leave ``epoch`` in time. Replaces another.

        A negative timeout, which an imported log may have, expires at once, as in Kafka.
        """
        self.stalls.catch_up(now_ms)
        entry = self.get(group_id, member_id)
        if entry is not None:
            now_ms -= self.stalls.stalled_ms
            self._put_rebalance(entry, now_ms + max(timeout_ms, 0), epoch, now_ms)
            entry.must_go = False

    def compute_rebalance_left_ms(
        self, group_id: GroupId, member_id: MemberId, now_ms: int
    ) -> int | None:
        """How long the member may still take to leave its epoch; ``None`` if it need not leave."""
        entry = self.get(group_id, member_id)
        if entry is None or entry.rebalance is None:
            return None
        return max(0, entry.rebalance.at_ms - (now_ms - self.stalls.stalled_ms))

    def cancel_rebalance(self, group_id: GroupId, member_id: MemberId) -> None:
        """Cancel the rebalance timeout: the member has left the epoch."""
        entry = self.get(group_id, member_id)
        if entry is not None:
            entry.rebalance = None
            entry.must_go = False

    def arm_classic(
        self,
        group_id: GroupId,
        deadline: ClassicDeadline,
        member_id: MemberId,
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """Arm a deadline of a classic group, ``timeout_ms`` from now."""
        self.stalls.catch_up(now_ms)
        now_ms -= self.stalls.stalled_ms
        self.classic.arm(group_id, deadline, member_id, now_ms + timeout_ms, now_ms)

    def begin_classic_sessions(
        self, group_id: GroupId, sessions: Collection[tuple[MemberId, int]], now_ms: int
    ) -> None:
        """Begin the sessions of members that use the classic protocol from now on (timeouts in ms).

        Their other deadlines are cancelled. There may be very many members.
        """
        for member_id, _ in sessions:
            if group_id in self._members:
                self.remove(group_id, member_id)
            self.classic.cancel_member(group_id, member_id)
        self.renew_classic_sessions(group_id, sessions, now_ms)

    def renew_classic_sessions(
        self, group_id: GroupId, sessions: Collection[tuple[MemberId, int]], now_ms: int
    ) -> None:
        """Renew the sessions of members, which may be very many, with their timeouts in ms."""
        self.stalls.catch_up(now_ms)
        self.classic.arm_sessions(group_id, sessions, now_ms - self.stalls.stalled_ms)

    def is_armed_anew(self, command: ExpireMember | ExpireClassicDeadline) -> bool:
        """Whether a command that was handled after this expiry became due has moved the deadline.

        That is an earlier request of the member, or another expiry: a rebalance that follows the
        expiry of one member renews the sessions of all parked members.
        """
        group_id, member_id = command.group_id, command.member_id
        if isinstance(command, ExpireClassicDeadline):
            return self.classic.get(group_id, command.deadline, member_id) is not None
        entry = self.get(group_id, member_id)
        if entry is None or command.deadline is not Deadline.SESSION:
            return False
        self._restore(entry)
        return True

    def _restore(self, entry: MemberLiveness) -> None:
        """Restore the rebalance deadline of a member whose session continues after all."""
        kept = self._kept.pop((entry.group_id, entry.member_id), None)
        if kept is not None and entry.rebalance is None:
            (at_ms, epoch, _), entry.must_go = kept
            # The time is not known here: due at once, so that the next ``due`` examines it.
            self._put_rebalance(entry, at_ms, epoch, now_ms=0)

    def note_expired(self, command: ExpireMember | ExpireClassicDeadline) -> None:
        """Note that the expiry was accepted."""
        if isinstance(command, ExpireMember) and command.deadline is Deadline.SESSION:
            self._kept.pop((command.group_id, command.member_id), None)

    def expire_again(self, command: ExpireMember | ExpireClassicDeadline, now_ms: int) -> None:
        """Arm the deadline of a refused expiry again, one session timeout from now.

        The refusal may come late: a rebalance deadline that was armed since stays as it is.
        """
        if isinstance(command, ExpireClassicDeadline):
            group_id, member_id = command.group_id, command.member_id
            self.arm_classic(group_id, command.deadline, member_id, CLASSIC_AGAIN_MS, now_ms)
            return
        entry = self.heard(command.group_id, command.member_id, now_ms)
        if command.deadline is Deadline.SESSION:
            self._restore(entry)
        elif command.member_epoch is not None and entry.rebalance is None:
            epoch, timeout_ms = command.member_epoch, self.session_timeout_ms(command.group_id)
            must_go = entry.must_go
            self.arm_rebalance(entry.group_id, entry.member_id, epoch, timeout_ms, now_ms)
            entry.must_go = must_go

    # ------------------------------------------------------------------------------ deadlines

    def _put_rebalance(self, entry: MemberLiveness, at_ms: int, epoch: int, now_ms: int) -> None:
        bucket = self._buckets.put(entry, min(at_ms, now_ms + FAR_MS))
        entry.rebalance = RebalanceDeadline(at_ms, epoch, bucket)

    def next_deadline_ms(self) -> int | None:
        """When to call ``due``, which may find nothing then; ``None`` if no deadline is armed."""
        soonest_ms = self.classic.next_ms()
        next_ms = self._buckets.next_ms()
        if next_ms is not None and (soonest_ms is None or next_ms < soonest_ms):
            soonest_ms = next_ms
        return None if soonest_ms is None else soonest_ms + self.stalls.stalled_ms

    def due(self, now_ms: int) -> list[ExpireMember | ExpireClassicDeadline]:
        """Commands for expired deadlines. Each is returned once; its handler checks it again.

        Examines at most ``LOOKS_MAX`` deadlines of a kind; ``next_deadline_ms`` is in the past if
        there are more.
        """
        now_ms -= self.stalls.stalled_ms
        found: list[ExpireMember | ExpireClassicDeadline] = [*self.classic.due(now_ms, LOOKS_MAX)]
        left = LOOKS_MAX
        while left and (taken := self._buckets.take(left, now_ms)) is not None:
            bucket, entries = taken
            left -= len(entries)
            for entry in entries:
                self._look(entry, bucket, now_ms, found)
        while left and (near := self._buckets.take_near(now_ms)) is not None:
            bucket, entry = near
            self._look(entry, bucket, now_ms, found)
            left -= 1
        return found

    def _look(
        self,
        entry: MemberLiveness,
        bucket: int,
        now_ms: int,
        found: list[ExpireMember | ExpireClassicDeadline],
    ) -> None:
        """Examine the deadlines of a member that are in a bucket that has begun."""
        if entry.is_gone:
            return
        rebalance = entry.rebalance
        if rebalance is not None:
            if rebalance.at_ms <= now_ms:
                self._look_at_rebalance(entry, rebalance.epoch, now_ms, found)
            elif rebalance.at_ms // BUCKET_MS == bucket:
                self._buckets.put_near(entry, bucket, rebalance.at_ms)
            elif rebalance.bucket == bucket:
                self._put_rebalance(entry, rebalance.at_ms, rebalance.epoch, now_ms)
        if bucket == entry.session_bucket:
            self._look_at_session(entry, bucket, now_ms, found)

    def _look_at_rebalance(
        self,
        entry: MemberLiveness,
        epoch: int,
        now_ms: int,
        found: list[ExpireMember | ExpireClassicDeadline],
    ) -> None:
        """Expire the member, or stop renewing its lease and expire it when the lease ends."""
        lease_end_ms = compute_lease_end_ms(entry)
        if lease_end_ms > now_ms and not entry.must_go:
            entry.must_go = True
            self._put_rebalance(entry, lease_end_ms, epoch, now_ms)
            return
        who = INTERNAL, entry.group_id, entry.member_id
        found.append(ExpireMember(*who, Deadline.REBALANCE, epoch))
        entry.rebalance = None

    def _look_at_session(
        self,
        entry: MemberLiveness,
        bucket: int,
        now_ms: int,
        found: list[ExpireMember | ExpireClassicDeadline],
    ) -> None:
        """Expire the member, or examine it again when its current session would expire."""
        deadline_ms = self.session_deadline_ms(entry)
        if deadline_ms <= now_ms:
            # If the handler refuses the expiry, ``expire_again`` or a heartbeat adds it again.
            self.remove(entry.group_id, entry.member_id)
            if entry.rebalance is not None:
                kept = entry.rebalance, entry.must_go
                self._kept[entry.group_id, entry.member_id] = kept
            silent_ms = max(now_ms - compute_heard_ms(entry), 0)
            expired = INTERNAL, entry.group_id, entry.member_id, Deadline.SESSION
            has_left = entry.reservation is not None and entry.reservation.has_left
            found.append(ExpireMember(*expired, silent_ms=silent_ms, has_left=has_left))
            return
        if entry.last_heard_ms == NOT_HEARD_MS:
            # A heartbeat may come any time, and the shorter timeout applies from then on.
            soonest_ms = now_ms + self.session_timeout_ms(entry.group_id)
            deadline_ms = min(deadline_ms, soonest_ms)
        if deadline_ms // BUCKET_MS == bucket:
            self._buckets.put_near(entry, bucket, deadline_ms)
        else:
            entry.session_bucket = self._buckets.put(entry, deadline_ms)
