"""A member and its group as they were before a command."""

from __future__ import annotations

from coordinator.core.consumer_group import STATIC_LEAVE_EPOCH, ConsumerGroup, Member
from model.commands import ConsumerGroupHeartbeat, ReconcileMember
from model.ids import InstanceId
from model.records import TopicPartitions


class Before:
    """A member, and its group, as they were before a command."""

    __slots__ = (
        "assigned",
        "epoch",
        "epochs",
        "group",
        "held",
        "instance",
        "member",
        "pending",
        "previous",
        "revision",
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

    @property
    def away(self) -> str | None:
        """The member whose place may be taken."""
        holder, epoch = self.instance
        return holder if epoch == STATIC_LEAVE_EPOCH else None

    def allows_instance(self, command: ConsumerGroupHeartbeat) -> bool:
        """Whether who says this instance id may speak as that instance."""
        holder, _ = self.instance
        if command.instance_id is None or holder == command.member_id:
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
