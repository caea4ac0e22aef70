"""A member and its group as they were before a command."""

from __future__ import annotations

from typing import Any

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH, Member
from model.commands.classic import JoinGroup
from model.commands.consumer import ConsumerGroupHeartbeat, ReconcileMember
from model.ids import InstanceId, MemberId
from model.log.records import TopicPartitions


class Before:
    """A member, and its group, as they were before a command."""

    __slots__ = (
        "assigned",
        "epoch",
        "epochs",
        "group",
        "held",
        "instance",
        "is_held_by_classic",
        "member",
        "pending",
        "previous",
        "revision",
        "session_ms",
    )

    def __init__(
        self,
        group: ConsumerGroup | None,
        member: Member | None,
        instance_id: InstanceId | None = None,
    ) -> None:
        self.group = group
        self.member = member
        self.revision = -1 if group is None else group.revision
        self.epoch = -1 if member is None else member.member_epoch
        self.previous = -1 if member is None else member.previous_member_epoch
        classic = None if member is None else member.classic
        self.session_ms = 0 if classic is None else classic.session_timeout_ms
        self.assigned: set[int] = set() if member is None else set(member.assigned)
        self.pending: set[int] = set()
        self.held: set[int] = set()
        if member is not None:
            self.pending = set(member.pending_revocation)
            self.held = self.assigned | self.pending
        # A commit may close the batch, with all that waits for it: these are of before.
        epoch_of = () if group is None else group.assignment_epoch_of
        self.epochs = {number: epoch_of[number] for number in self.held}

        self.instance = find_instance(group, instance_id)
        self.is_held_by_classic = False
        if group is not None and self.instance[0] is not None:
            holder = group.member(MemberId(self.instance[0]))
            self.is_held_by_classic = holder is not None and holder.classic is not None

    @property
    def away(self) -> str | None:
        """The member whose place may be taken."""
        holder, epoch = self.instance
        return holder if epoch == STATIC_LEAVE_EPOCH else None

    def replaced_by(self, command: Any) -> str | None:
        """The member whose place a command may take: a classic one takes that of one alive."""
        is_taken = isinstance(command, JoinGroup) or self.is_held_by_classic
        return self.instance[0] if is_taken else self.away

    def allows_instance(self, command: ConsumerGroupHeartbeat) -> bool:
        """Whether who says this instance id may speak as that instance."""
        holder, _ = self.instance
        if command.instance_id is None or holder == command.member_id:
            return True
        if self.is_held_by_classic and command.member_epoch == 0:
            # A member of the classic protocol does not say that it goes.
            return True
        return command.member_epoch == 0 and holder in (None, self.away)

    def is_unchanged(self) -> bool:
        return self.group is None or self.group.revision == self.revision

    def owns_only_assigned(self, owned: tuple[TopicPartitions, ...]) -> bool:
        assert self.group is not None
        numbers = self.group.numbers
        return numbers.has_all(owned) and numbers.known_numbers(owned) <= self.assigned


def find_instance(
    group: ConsumerGroup | None, instance_id: InstanceId | None
) -> tuple[str | None, int]:
    """Who is the instance, and its epoch, by what the members say of themselves."""
    if group is not None and instance_id is not None:
        for member in group.members():
            if member.metadata is not None and member.metadata.instance_id == instance_id:
                return member.member_id, member.member_epoch
    return None, 0


def is_of_now(command: ConsumerGroupHeartbeat | ReconcileMember, before: Before) -> bool:
    """Whether no other heartbeat has moved the member since this one came."""
    if isinstance(command, ConsumerGroupHeartbeat):
        return True
    is_as_known = command.epoch_known == before.epoch
    return is_as_known and set(command.before) == before.assigned
