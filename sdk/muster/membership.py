"""The state of one member, what it owns, and its next step; pure.

The server sends states (``Assignment``, ``Fenced``), and the shell (``muster.reconciliation``)
takes one step after another: the application revokes partitions before the server hears of it, and
callbacks never run in parallel. An assignment that arrives during a callback replaces the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from muster.client_assignor import MemberAssignment, decode_client_assignment
from muster.partitions import (
    Owned,
    TopicPartition,
    decode_partitions,
    decode_tokens,
    encode_partitions,
)
from muster.v1 import group_pb2, types_pb2

Partitions: TypeAlias = frozenset[TopicPartition]


class Status(Enum):
    """JOINING until the server has answered; LOST until ``on_lost`` has returned."""

    JOINING = "joining"
    MEMBER = "member"
    LOST = "lost"
    OUT = "out"


class Revoke(NamedTuple):
    """Call ``on_revoked``, then ``finish_revoke``."""

    partitions: Partitions


class Assign(NamedTuple):
    """Call ``on_assigned``; ``begin_assign`` has made the member their owner."""

    partitions: Partitions


class Lose(NamedTuple):
    """Call ``on_lost``, then ``finish_lose``. The member no longer owns the partitions."""

    partitions: Partitions


class Inform(NamedTuple):
    """Call ``on_assignment`` of the assignor, then ``finish_inform``."""

    assignor: str
    assignment: MemberAssignment
    generation: int


class Acknowledge(NamedTuple):
    """Send this message."""

    message: group_pb2.Acknowledge


class Rejoin(NamedTuple):
    """Join again at epoch 0."""


Step: TypeAlias = Revoke | Assign | Lose | Inform | Acknowledge | Rejoin


@dataclass(slots=True, eq=False)
class Membership:
    """``owned``: handed to the application and not revoked. ``assignment``: the latest one.

    ``grants`` numbers owned partitions: one that was revoked or lost, and assigned again, gets a
    new number, because another member may have owned it meanwhile.
    ``tokens`` are the fencing tokens of the latest assignment.
    ``informed`` is the last generation that was passed to the client-side assignor.
    """

    # More than 15 attributes: one value holds all that the next step depends on.

    status: Status = Status.OUT
    member_epoch: int = 0
    join_id: int = 0
    incarnation: int = 0
    owned: Owned = field(default_factory=dict)
    grants: dict[TopicPartition, int] = field(default_factory=dict)
    lost: set[TopicPartition] = field(default_factory=set)
    assignment: Owned | None = None
    tokens: dict[TopicPartition, int] = field(default_factory=dict)
    assignment_id: int = 0
    acknowledged_id: int = 0
    is_answered: bool = False
    names: dict[bytes, str] = field(default_factory=dict)
    local: Inform | None = None
    informed: int = 0
    _granted: int = 0

    def begin_join(self) -> int:
        """Prepare for a Join, at epoch 0 or to resume, and return its ``join_id``.

        Drops an assignment that was not reached: the Join claims the partitions that are owned
        now, and none may be added before it is answered.
        """
        self.join_id += 1
        self.is_answered = False
        self.assignment = self.local = None
        self.assignment_id = self.acknowledged_id = 0
        if self.status is not Status.MEMBER:
            self.status = Status.JOINING
            self.incarnation += 1
            self.informed = 0
        return self.join_id

    def handle_assignment(self, join_id: int, assignment: group_pb2.Assignment) -> bool:
        """Take an assignment; ``False`` if it precedes the answer to the last Join."""
        if join_id != self.join_id or self.status not in (Status.JOINING, Status.MEMBER):
            return False
        if assignment.HasField("assignment"):
            topics = assignment.assignment.topics
            self.names.update({t.topic_id: t.topic_name for t in topics if t.topic_name})
            self.assignment = decode_partitions(topics, self.names)
            self.tokens = decode_tokens(topics, self.names)
        self.local = None
        if assignment.HasField("client_assignment"):
            local = assignment.client_assignment
            given = decode_client_assignment(local, self.names)
            self.local = Inform(local.assignor, given, local.generation)
        self.status = Status.MEMBER
        self.is_answered = True
        self.member_epoch = assignment.member_epoch
        self.assignment_id = assignment.assignment_id
        return True

    def lose(self) -> None:
        """The member was fenced or has expired: all that it owned is lost."""
        if self.status is Status.OUT:
            return
        self.status = Status.LOST
        self.member_epoch = 0
        self.assignment = self.local = None
        self.lost.update(self.owned)
        self.owned.clear()
        self.grants.clear()

    def leave(self) -> None:
        """The member is out: the application has given everything up, or ``on_lost`` was called."""
        self.lose()
        self.status = Status.OUT
        self.lost.clear()

    def return_to_group(self) -> None:
        """Let a member that is out join again."""
        if self.status is Status.OUT:
            self.status = Status.LOST

    def compute_step(self) -> Step | None:
        """The next step; ``None`` if the member has to wait for the server."""
        if self.status is Status.LOST:
            return Lose(frozenset(self.lost)) if self.lost else Rejoin()
        if self.status is not Status.MEMBER or self.assignment is None:
            return None
        revoked = frozenset(p for p, topic in self.owned.items() if self.assignment.get(p) != topic)
        if revoked:
            return Revoke(revoked)
        assigned = frozenset(self.assignment.keys() - self.owned.keys())
        if assigned:
            return Assign(assigned)
        if self.local is not None and self.local.generation > self.informed:
            return self.local
        if self.acknowledged_id != self.assignment_id:
            return Acknowledge(self.compute_acknowledge(is_final=True))
        return None

    def compute_acknowledge(self, *, is_final: bool) -> group_pb2.Acknowledge:
        """An Acknowledge of the owned partitions, or of progress only, if not ``is_final``."""
        owned = None
        if is_final:
            owned = types_pb2.PartitionSet(topics=encode_partitions(self.owned))
        return group_pb2.Acknowledge(
            assignment_id=self.assignment_id, member_epoch=self.member_epoch, owned=owned
        )

    def begin_assign(self, partitions: Partitions) -> None:
        """``on_assigned`` is about to be called with these."""
        assert self.assignment is not None
        self._granted += 1
        for partition in partitions:
            self.owned[partition] = self.assignment[partition]
            self.grants[partition] = self._granted

    def finish_revoke(self, partitions: Partitions) -> None:
        """The application has given these up, whether or not the member was lost meanwhile."""
        for partition in partitions:
            self.owned.pop(partition, None)
            self.grants.pop(partition, None)
            self.lost.discard(partition)

    def finish_inform(self, generation: int) -> None:
        """The assignor got the assignment of this generation."""
        self.informed = max(self.informed, generation)

    def finish_lose(self, partitions: Partitions) -> None:
        """``on_lost`` has returned for these."""
        self.lost.difference_update(partitions)
