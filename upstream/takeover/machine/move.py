"""The state of a group's move between the cluster and Muster, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from model.places import Place
from upstream.sentinel.sentinel_seat import Seat
from upstream.takeover.machine.group_view import STOCK_PROTOCOLS, GroupView, Stranger, ViewedMember
from upstream.takeover.machine.takeover_events import MemberTimes
from upstream.takeover.machine.takeover_steps import Step

NEVER_MS: Final = 1 << 62
HEARD_MAX: Final = 10_000
"""Member ids that are noted as heard: more than groups have, and a client may say ever new ones."""
_UNKNOWN: Final = MemberTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRules:
    """What holds for the moves of all groups.

    ``uuid`` is that of this Muster's store, ``principal`` who it is in the cluster. A member that
    nobody knows is a stranger after ``grace_ms``. A known member that stays silent is waited for,
    for its session timeout, at most ``silent_max_ms``. The longest session timeouts are tried
    first.
    """

    uuid: str
    principal: str = "User:NAME"
    grace_ms: int = 5_000
    silent_max_ms: int = 60_000
    take_max_ms: int = 300_000
    return_max_ms: int = 600_000
    rebalance_timeout_ms: int = 60_000
    join_wait_ms: int = 10_000
    poll_ms: int = 100
    pause_ms: int = 1_000
    tries_max: int = 6
    session_timeouts_ms: tuple[int, ...] = (1_800_000, 300_000, 45_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The state of a group's move.

    ``place`` is the one in the log. ``heard`` are the members heard here since it is TAKING.
    ``members`` are those of the cluster's group when they were last described before their removal.
    ``settled`` are all members of the cluster's group while it was Stable at ``generation``, until
    anything shows that it is another group by now.
    ``noted_generation`` is that of the sentinel when RETURNING was noted, before a restart.
    ``seat`` is set from the first answer to the sentinel's JoinGroup. ``has_joined``: a JoinGroup
    of the sentinel was sent, so that it may be in. ``since_ms`` is when the step began,
    ``began_ms`` when the place was noted, ``deadline_ms`` when ``TimePassed`` is due.
    """

    # More than 15 attributes: one value holds the whole move, so that a step is one comparison.

    group_id: str
    step: Step = Step.UPSTREAM
    place: Place = Place.UPSTREAM
    cause: str = ""
    error: str = ""
    strangers: tuple[Stranger, ...] = ()
    may_replace: bool = False
    view: GroupView | None = None
    known: Mapping[str, MemberTimes] = field(default_factory=dict)
    heard: frozenset[str] = frozenset()
    generation: int = -1
    noted_generation: int = 0
    members: tuple[ViewedMember, ...] = ()
    settled: frozenset[str] = frozenset()
    protocol: str = ""
    protocols: tuple[str, ...] = ()
    seat: Seat | None = None
    has_joined: bool = False
    session_index: int = 0
    tries: int = 0
    since_ms: int = 0
    began_ms: int = 0
    deadline_ms: int = NEVER_MS

    @property
    def member_id(self) -> str:
        """The sentinel's member id; empty if it has none, or it is not known."""
        return "" if self.seat is None else self.seat.member_id

    def find_leader(self) -> str:
        """The leader of the members that were removed, if they may go on as if their coordinator
        had moved; empty if they have to join again.

        The leader's client is the only one that looks whether topics grow: without it new
        partitions would be nobody's.
        """
        removed = frozenset(member.member_id for member in self.members)
        if not removed or self.settled != removed:
            return ""
        leaders = (each for each in removed if self._leads(each))
        return next(leaders, "")

    def _leads(self, member_id: str) -> bool:
        known = self.known.get(member_id)
        return known is not None and known.led_generation == self.generation

    @property
    def open_protocols(self) -> tuple[str, ...]:
        """The protocols with which the sentinel can be in a group together with the members."""
        named = (self.protocol, *self.protocols) if self.protocol else self.protocols
        return tuple(dict.fromkeys((*named, *STOCK_PROTOCOLS)))

    def hear(self, member_id: str, generation: int) -> Move:
        """A client says that it is this member: it may say any id and any generation.

        The same move if that changes nothing.
        """
        is_new = member_id not in self.heard and len(self.heard) < HEARD_MAX
        if not is_new and generation <= self.generation:
            return self
        heard = self.heard | {member_id} if is_new else self.heard
        return replace(self, heard=heard, generation=max(generation, self.generation))

    def compute_waiting(self, now_ms: int, rules: MoveRules) -> tuple[ViewedMember, ...]:
        """The described members that are still waited for: neither heard here nor long silent."""
        others = () if self.view is None else self.view.others
        waited_ms = now_ms - self.began_ms
        return tuple(
            member
            for member in others
            if member.member_id not in self.heard
            and waited_ms < self._patience_ms(member.member_id, rules)
        )

    def compute_unknown(self) -> tuple[ViewedMember, ...]:
        """The described members of which nothing was heard, here or through a relay."""
        others = () if self.view is None else self.view.others
        return tuple(
            member
            for member in others
            if member.member_id not in self.heard and member.member_id not in self.known
        )

    def _patience_ms(self, member_id: str, rules: MoveRules) -> int:
        if member_id not in self.known:
            return rules.grace_ms
        return min(self.known.get(member_id, _UNKNOWN).session_timeout_ms, rules.silent_max_ms)
