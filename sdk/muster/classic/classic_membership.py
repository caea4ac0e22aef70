"""What one classic member is in its group: its ids, generation, phase and lease."""

from __future__ import annotations

from enum import Enum

from muster.assignors.classic import JoinedMember
from muster.classic.classic_options import ClassicOptions
from muster.classic.classic_protocol import NO_GENERATION, Generation
from muster.connection.lease import ClassicLease, read_clock
from muster.v1 import classic_pb2


class Phase(Enum):
    """OUT before the start and after the end."""

    OUT = "out"
    JOINING = "joining"
    SYNCING = "syncing"
    MEMBER = "member"


class Lost(Exception):
    """The member was fenced or has expired; ``forgets_id``: even its member id is unknown."""

    def __init__(self, reason: str, *, forgets_id: bool) -> None:
        super().__init__(reason)
        self.forgets_id = forgets_id


class ClassicMembership:
    """``lost`` says why the member was lost, until ``ClassicEngine`` handles it.

    ``rejoin_reason``, if not empty, makes the member join again, and goes into its JoinGroup.
    ``joined_at`` is when the JoinGroup was sent that was answered last. ``leaves_for_good``: the
    member sends a LeaveGroup when it closes.
    """

    __slots__ = (
        "generation",
        "has_lease",
        "has_left",
        "joined_at",
        "leader",
        "lease",
        "leaves_for_good",
        "lost",
        "member_id",
        "phase",
        "rejoin_reason",
    )

    def __init__(self, options: ClassicOptions) -> None:
        self.member_id = ""
        self.generation = NO_GENERATION
        self.leader = ""
        self.phase = Phase.OUT
        self.lease = ClassicLease(options.session_timeout_ms, options.rebalance_timeout_ms)
        self.has_lease = False
        self.joined_at = float("-inf")
        self.lost: Lost | None = None
        self.rejoin_reason = ""
        self.leaves_for_good = not options.instance_id
        self.has_left = False

    @property
    def holds(self) -> bool:
        """Whether the member owns its assignment now: its lease has not ended by its own clock."""
        return self.has_lease and self.lost is None and read_clock() < self.compute_lease_deadline()

    @property
    def is_leader(self) -> bool:
        """Whether the member leads the current generation of its group."""
        return self.generation != NO_GENERATION and self.leader == self.member_id

    def compute_lease_deadline(self) -> float:
        """When the lease ends, in seconds of ``read_clock``."""
        return self.lease.compute_deadline()

    def accept(self, answer: classic_pb2.JoinGroupResponse) -> Generation:
        """Enter the generation that a JoinGroup was answered with."""
        self.member_id = answer.member_id
        self.generation = answer.generation
        self.leader = answer.leader
        members = tuple(
            JoinedMember(each.member_id, each.instance_id or None, each.metadata)
            for each in answer.members
        )
        return Generation(
            answer.generation, answer.member_id, answer.leader, answer.protocol_name, members
        )

    def drop(self) -> None:
        """The member owns nothing, and is in no generation."""
        self.generation = NO_GENERATION
        self.has_lease = False
