"""What one member is, owns and has to do next; pure.

The server tells states (``Assignment``, ``Fenced``), the shell (``muster.engine``) carries out
steps one after another: an application sees ``Revoke`` before the server hears of it, and never two
callbacks at a time. What is told while a callback runs replaces what was told before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from muster.client_assignor import MemberAssignment, decode_told
from muster.partitions import Owned, TopicPartition, decode_partitions, encode_partitions
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
    """Call ``on_assigned``; the partitions are owned already."""

    partitions: Partitions


class Lose(NamedTuple):
    """Call ``on_lost``, then ``finish_lose``. The partitions are owned no more."""

    partitions: Partitions


class Inform(NamedTuple):
    """Call ``on_assignment`` of the assignor, then ``finish_inform``."""

    assignor: str
    assignment: MemberAssignment
    generation: int


class Acknowledge(NamedTuple):
    """Send this."""

    message: group_pb2.Acknowledge


class Rejoin(NamedTuple):
    """Join again at epoch 0."""


Step: TypeAlias = Revoke | Assign | Lose | Inform | Acknowledge | Rejoin


@dataclass(slots=True, eq=False)
class Membership:
    """``owned``: handed to the application and not given up. ``told``: the latest assignment.

    ``grants`` numbers what is owned: a partition that was given up, or lost, and got again has
    another number, for it may have been another member's meanwhile.
    ``informed`` is the generation that the member's own assignor was told of last.
    """

    status: Status = Status.OUT
    member_epoch: int = 0
    join_id: int = 0
    incarnation: int = 0
    owned: Owned = field(default_factory=dict)
    grants: dict[TopicPartition, int] = field(default_factory=dict)
    lost: set[TopicPartition] = field(default_factory=set)
    told: Owned | None = None
    assignment_id: int = 0
    acknowledged_id: int = 0
    is_answered: bool = False
    names: dict[bytes, str] = field(default_factory=dict)
    local: Inform | None = None
    informed: int = 0
    _granted: int = 0

    def begin_join(self) -> int:
        """A Join is about to be sent: at epoch 0, or to resume. Its ``join_id``.

        What was told before and not done yet is dropped: the claim of the Join is what is owned
        now, and nothing may be added to it before the answer.
        """
        self.join_id += 1
        self.is_answered = False
        self.told = self.local = None
        self.assignment_id = self.acknowledged_id = 0
        if self.status is not Status.MEMBER:
            self.status = Status.JOINING
            self.incarnation += 1
            self.informed = 0
        return self.join_id

    def handle_assignment(self, join_id: int, assignment: group_pb2.Assignment) -> bool:
        """Whether it was for us: what was told before our last Join was handled is not."""
        if join_id != self.join_id or self.status not in (Status.JOINING, Status.MEMBER):
            return False
        if assignment.HasField("assignment"):
            topics = assignment.assignment.topics
            self.names.update({t.topic_id: t.topic_name for t in topics if t.topic_name})
            self.told = decode_partitions(topics, self.names)
        self.local = None
        if assignment.HasField("local"):
            local = assignment.local
            given = decode_told(local, self.names)
            self.local = Inform(local.assignor, given, local.generation)
        self.status = Status.MEMBER
        self.is_answered = True
        self.member_epoch = assignment.member_epoch
        self.assignment_id = assignment.assignment_id
        return True

    def lose(self) -> None:
        """The member is none any more: all that it owned is lost."""
        if self.status is Status.OUT:
            return
        self.status = Status.LOST
        self.member_epoch = 0
        self.told = self.local = None
        self.lost.update(self.owned)
        self.owned.clear()
        self.grants.clear()

    def leave(self) -> None:
        """The member is out; the application has given everything up, or was told."""
        self.lose()
        self.status = Status.OUT
        self.lost.clear()

    def return_to_group(self) -> None:
        """A member that is out is to join again."""
        if self.status is Status.OUT:
            self.status = Status.LOST

    def compute_step(self) -> Step | None:
        """What to do next; ``None`` until something is told."""
        if self.status is Status.LOST:
            return Lose(frozenset(self.lost)) if self.lost else Rejoin()
        if self.status is not Status.MEMBER or self.told is None:
            return None
        revoked = frozenset(p for p, topic in self.owned.items() if self.told.get(p) != topic)
        if revoked:
            return Revoke(revoked)
        assigned = frozenset(self.told.keys() - self.owned.keys())
        if assigned:
            return Assign(assigned)
        if self.local is not None and self.local.generation > self.informed:
            return self.local
        if self.acknowledged_id != self.assignment_id:
            return Acknowledge(self.compute_acknowledge(is_final=True))
        return None

    def compute_acknowledge(self, *, is_final: bool) -> group_pb2.Acknowledge:
        """``is_final`` says what is owned; without it the member is still at it."""
        owned = None
        if is_final:
            owned = types_pb2.PartitionSet(topics=encode_partitions(self.owned))
        return group_pb2.Acknowledge(
            assignment_id=self.assignment_id, member_epoch=self.member_epoch, owned=owned
        )

    def begin_assign(self, partitions: Partitions) -> None:
        """The application is about to be told that it owns these."""
        assert self.told is not None
        self._granted += 1
        for partition in partitions:
            self.owned[partition] = self.told[partition]
            self.grants[partition] = self._granted

    def finish_revoke(self, partitions: Partitions) -> None:
        """The application has given these up, be the member still one or not."""
        for partition in partitions:
            self.owned.pop(partition, None)
            self.grants.pop(partition, None)
            self.lost.discard(partition)

    def finish_inform(self, generation: int) -> None:
        """The assignor knows of what was computed for this generation."""
        self.informed = max(self.informed, generation)

    def finish_lose(self, partitions: Partitions) -> None:
        """The application knows that these are lost."""
        self.lost.difference_update(partitions)
