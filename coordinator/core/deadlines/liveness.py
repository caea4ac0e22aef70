"""Soft state: when members were last heard from, and which deadlines run.

Rebuilt on load, never in the log. Deadlines are data; the shell asks ``next_deadline_ms`` when to
come back. All times here are on a clock that stands still while the process does
(``coordinator.core.deadlines.stalls``). A member that is not heard from is put out, whatever the
load, after its timeout and a fifth of it, 2 s, and up to one pause in 10 s.

A member on a stream was promised a session timeout, and believes for so long after each renewal
that it owns its partitions (``muster.connection.lease``). No deadline takes them from it earlier:

- A session lasts as long as the longest timeout that the member was told.
- A member whose rebalance timeout has passed is renewed no more (``must_go``), which its stream
  tells it; it is put out when its lease has ended, or when it says that it has stopped.
- What was told before a restart is not known. Until so much has passed as it may have been told,
  neither deadline puts out who was a member when the process started.
"""

from __future__ import annotations

from collections.abc import Collection

from coordinator.core.deadlines.classic_deadlines import FAR_MS, ClassicDeadlines
from coordinator.core.deadlines.deadline_buckets import BUCKET_MS, DeadlineBuckets
from coordinator.core.deadlines.member_liveness import (
    NOT_HEARD_MS,
    MemberLiveness,
    RebalanceDeadline,
    compute_heard_ms,
    compute_lease_end_ms,
)
from coordinator.core.deadlines.stalls import Stalls
from model.commands import INTERNAL, ClassicDeadline, Deadline, ExpireClassicDeadline, ExpireMember
from model.ids import GroupId, MemberId

CLASSIC_AGAIN_MS = 5_000
"""When a deadline of a classic group passes again after it was refused."""

LOOKS_MAX = 500
"""Deadlines of one kind that are looked at in one turn. After a start, or a cut network, those of
very many members may pass together; each that ends is a command.
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
        """What else ran for members whose session has ended, until it is known that they go."""
        self._heard_ms = 0
        self._promised_until_ms = 0
        self.classic = ClassicDeadlines()
        """Those of classic groups, on the clock of ``stalls``."""
        self.stalls = Stalls()

    # -------------------------------------------------------------------------------- members

    def session_timeout_ms(self, group_id: GroupId) -> int:
        """That of the group's members."""
        return self._own_timeouts_ms.get(group_id, self._session_timeout_ms)

    def note_longest_timeout(self, group_id: GroupId, timeout_ms: int) -> None:
        """Members of the group may have been promised so much before the process started."""
        self._longest_timeouts_ms[group_id] = timeout_ms

    def set_session_timeout(self, group_id: GroupId, timeout_ms: int, now_ms: int) -> None:
        """A longer one holds at once, a shorter one for a member from when it is heard from next.

        Until then a member does not know how often it is to be heard from, and one that was
        promised a longer timeout may never know (``renew_lease``).
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
        """The entry of a member that is alive."""
        members = self._members.get(group_id)
        return None if members is None else members.get(member_id)

    def heard(self, group_id: GroupId, member_id: MemberId, now_ms: int) -> MemberLiveness:
        """The member was heard from; it is entered if it is new."""
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

    def note_loaded(self, entry: MemberLiveness, now_ms: int) -> None:
        """The member was one when the process started; it may hold a lease that began before."""
        timeout_ms = self.session_timeout_ms(entry.group_id)
        longest_ms = max(timeout_ms, self._longest_timeouts_ms.get(entry.group_id, 0))
        promised_until_ms = now_ms - self.stalls.stalled_ms + longest_ms
        if promised_until_ms != self._promised_until_ms:
            self._promised_until_ms = promised_until_ms
        entry.promised_until_ms = self._promised_until_ms

    def touch(self, entry: MemberLiveness, now_ms: int) -> None:
        """``heard`` for an entry at hand."""
        stalls = self.stalls
        if now_ms > stalls.late_after_ms:
            stalls.catch_up(now_ms)
        now_ms -= stalls.stalled_ms
        if now_ms != self._heard_ms:
            self._heard_ms = now_ms
        entry.last_heard_ms = self._heard_ms

    def note_lease(self, entry: MemberLiveness) -> bool:
        """The member is about to be told its session timeout, and counts on it from then on.

        A client over a stream stops by itself when so long has passed since it was renewed.
        ``False``, and nothing promised, to one that must go.
        """
        if entry.must_go:
            return False
        entry.lease_ms = max(entry.lease_ms, self.session_timeout_ms(entry.group_id))
        return True

    def renew_lease(self, entry: MemberLiveness, now_ms: int) -> bool:
        """``touch`` for a member on a stream. ``False``, and nothing done, to one that must go."""
        if not self.note_lease(entry):
            return False
        self.touch(entry, now_ms)
        return True

    def session_deadline_ms(self, entry: MemberLiveness) -> int:
        """When the member's session ends, if nothing is heard until then."""
        timeout_ms = max(self.session_timeout_ms(entry.group_id), entry.lease_ms)
        deadline_ms = max(compute_heard_ms(entry) + timeout_ms, entry.promised_until_ms)
        if entry.last_heard_ms == NOT_HEARD_MS:
            return max(deadline_ms, entry.kept_until_ms)
        return deadline_ms

    def remove(self, group_id: GroupId, member_id: MemberId) -> None:
        """The member is gone; what is left of it in the buckets does nothing."""
        members = self._members.get(group_id)
        entry = None if members is None else members.pop(member_id, None)
        if entry is not None:
            entry.is_gone = True
            if not members:
                del self._members[group_id]

    def arm_rebalance(
        self, group_id: GroupId, member_id: MemberId, epoch: int, timeout_ms: int, now_ms: int
    ) -> None:
        """The member must leave ``epoch`` within the timeout. Replaces what was armed.

        A timeout below 0, which an imported log may have, passes at once, as in Kafka.
        """
        self.stalls.catch_up(now_ms)
        entry = self.get(group_id, member_id)
        if entry is not None:
            now_ms -= self.stalls.stalled_ms
            self._put_rebalance(entry, now_ms + max(timeout_ms, 0), epoch, now_ms)
            entry.must_go = False

    def cancel_rebalance(self, group_id: GroupId, member_id: MemberId) -> None:
        """The member has moved on."""
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
        """A deadline of a classic group passes so much later than now."""
        self.stalls.catch_up(now_ms)
        now_ms -= self.stalls.stalled_ms
        self.classic.arm(group_id, deadline, member_id, now_ms + timeout_ms, now_ms)

    def begin_classic_sessions(
        self, group_id: GroupId, sessions: Collection[tuple[MemberId, int]], now_ms: int
    ) -> None:
        """These members, which may be very many, speak the classic protocol from now on.

        Each has its session timeout, in ms, and nothing else runs for it.
        """
        for member_id, _ in sessions:
            if group_id in self._members:
                self.remove(group_id, member_id)
            self.classic.cancel_member(group_id, member_id)
        self.renew_classic_sessions(group_id, sessions, now_ms)

    def renew_classic_sessions(
        self, group_id: GroupId, sessions: Collection[tuple[MemberId, int]], now_ms: int
    ) -> None:
        """These members, which may be very many, were heard from; with session timeouts in ms."""
        self.stalls.catch_up(now_ms)
        self.classic.arm_sessions(group_id, sessions, now_ms - self.stalls.stalled_ms)

    def is_armed_anew(self, command: ExpireMember | ExpireClassicDeadline) -> bool:
        """Whether what was handled since this expiry became due has put it off.

        That is what its member had said before, or another expiry: a rebalance that the session of
        one member ends renews those of all who waited.
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
        """What else ran for a member whose session goes on after all."""
        kept = self._kept.pop((entry.group_id, entry.member_id), None)
        if kept is not None and entry.rebalance is None:
            (at_ms, epoch, _), entry.must_go = kept
            # The next tick looks at it, and knows what time it is.
            self._put_rebalance(entry, at_ms, epoch, now_ms=0)

    def note_expired(self, command: ExpireMember | ExpireClassicDeadline) -> None:
        """The expiry was not refused."""
        if isinstance(command, ExpireMember) and command.deadline is Deadline.SESSION:
            self._kept.pop((command.group_id, command.member_id), None)

    def expire_again(self, command: ExpireMember | ExpireClassicDeadline, now_ms: int) -> None:
        """The expiry was refused: let the deadline pass once more, a session after now.

        Its refusal may come late: what the member has to leave since stays as it is.
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
        """When to call ``due``; ``None`` where nothing runs. It may find nothing due then."""
        soonest_ms = self.classic.next_ms()
        next_ms = self._buckets.next_ms()
        if next_ms is not None and (soonest_ms is None or next_ms < soonest_ms):
            soonest_ms = next_ms
        return None if soonest_ms is None else soonest_ms + self.stalls.stalled_ms

    def due(self, now_ms: int) -> list[ExpireMember | ExpireClassicDeadline]:
        """Commands for what has passed. Each comes once; the core checks that it still holds.

        They are of ``LOOKS_MAX`` deadlines of a kind at most: ``next_deadline_ms`` is in the past
        until all have been looked at.
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
        """At what of a member was entered in a bucket that has begun."""
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
        """Expire, or let the lease end first: what is heard from now on does not renew it."""
        lease_end_ms = compute_lease_end_ms(entry)
        if lease_end_ms > now_ms and not entry.must_go:
            entry.must_go = True
            self._put_rebalance(entry, lease_end_ms, epoch, now_ms)
            return
        found.append(self._expire(entry, Deadline.REBALANCE, epoch))
        entry.rebalance = None

    def _look_at_session(
        self,
        entry: MemberLiveness,
        bucket: int,
        now_ms: int,
        found: list[ExpireMember | ExpireClassicDeadline],
    ) -> None:
        """Expire, or look again when the timeout has passed since it was last heard from."""
        deadline_ms = self.session_deadline_ms(entry)
        if deadline_ms <= now_ms:
            # Should the core disagree, the next heartbeat enters the member anew.
            self.remove(entry.group_id, entry.member_id)
            if entry.rebalance is not None:
                kept = entry.rebalance, entry.must_go
                self._kept[entry.group_id, entry.member_id] = kept
            found.append(self._expire(entry, Deadline.SESSION, None))
            return
        if entry.last_heard_ms == NOT_HEARD_MS:
            # It may be heard from any time, and has the shorter timeout from then on.
            soonest_ms = now_ms + self.session_timeout_ms(entry.group_id)
            deadline_ms = min(deadline_ms, soonest_ms)
        if deadline_ms // BUCKET_MS == bucket:
            self._buckets.put_near(entry, bucket, deadline_ms)
        else:
            entry.session_bucket = self._buckets.put(entry, deadline_ms)

    @staticmethod
    def _expire(entry: MemberLiveness, deadline: Deadline, epoch: int | None) -> ExpireMember:
        return ExpireMember(INTERNAL, entry.group_id, entry.member_id, deadline, epoch)
