"""A member of the consumer protocol: what it believes, what it says, and how it does as told.

Nothing here knows of a server. Whoever drives a member decides when it hears an answer, when it
gives up what it has to, and when it owns what it was given. What a member on the wire says and
hears, in the fields of requests, is ``tests.support.wire.member.WireState``.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.core.state.consumer.consumer_member import LEAVE_EPOCH
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.ids import GroupId, InstanceId, MemberId, TopicId
from model.log.records import TopicPartitions
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.support.shadow import Place, places
from tests.support.subscriptions import names_in, regex_in
from tests.support.virtual.server import CALLER, REBALANCE_TIMEOUT_MS


class Member:
    """``owned`` is what it reads, ``told`` what it was last told to own; ``None`` for not yet."""

    caller = CALLER
    no_epoch = 0
    """The epoch of who is no member."""

    def __init__(
        self, group_id: GroupId, member_id: MemberId, instance_id: InstanceId | None = None
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = self.no_epoch
        self.owned: set[Place] = set()
        self.told: frozenset[Place] | None = None

    def __str__(self) -> str:
        return f"{self.member_id} at {self.epoch} with {self.owned}, told {self.told}"

    # ------------------------------------------------------------------------- what it says

    def owned_topics(self) -> tuple[TopicPartitions, ...]:
        """What it owns, as a request says it."""
        return to_topics(self.owned)

    def compose_full(
        self,
        names: Iterable[str],
        *,
        timeout_ms: int = REBALANCE_TIMEOUT_MS,
        assignor: str | None = None,
    ) -> ConsumerGroupHeartbeat:
        """All that there is to say: a join at epoch 0. A name that begins with ``/`` is a regex."""
        said = tuple(names)
        return ConsumerGroupHeartbeat(
            self.caller,
            self.group_id,
            self.member_id,
            self.epoch,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=names_in(said),
            subscribed_topic_regex=regex_in(said),
            owned=self.owned_topics(),
            server_assignor=assignor or UNCHANGED,
            instance_id=self.instance_id,
        )

    def compose_partial(self, *, says_owned: bool = False) -> ConsumerGroupHeartbeat:
        """That it is there, and what it owns if so."""
        return ConsumerGroupHeartbeat(
            self.caller,
            self.group_id,
            self.member_id,
            self.epoch,
            owned=self.owned_topics() if says_owned else None,
            instance_id=self.instance_id,
        )

    def compose_leave(self, epoch: int = LEAVE_EPOCH) -> ConsumerGroupLeave:
        """With epoch -2 for a while, with -1 for good."""
        return ConsumerGroupLeave(
            self.caller, self.group_id, self.member_id, epoch, self.instance_id
        )

    # ------------------------------------------------------------------------ what it hears

    def hear(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        """Take over its epoch and what it is told to own."""
        self.note_epoch(answer.member_epoch)
        if answer.assignment is not None:
            self.told = places(answer.assignment)

    def note_epoch(self, epoch: int) -> None:
        """S5: a member never sees its epoch decrease."""
        assert epoch >= self.epoch, f"S5: {self} is told {epoch}"
        self.epoch = epoch

    def forget(self) -> None:
        """It is no member any more: all is lost."""
        self.epoch = self.no_epoch
        self.owned.clear()
        self.told = None

    def revoke(self) -> None:
        """Give up what it was told to give up."""
        if self.told is not None:
            self.owned &= self.told

    def adopt(self) -> None:
        """Own just what it was told to own."""
        if self.told is not None:
            self.owned = set(self.told)


def to_topics(owned: Iterable[Place]) -> tuple[TopicPartitions, ...]:
    """The inverse of ``places``."""
    found: dict[TopicId, list[int]] = {}
    for topic_id, partition in sorted(owned):
        found.setdefault(topic_id, []).append(partition)
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in found.items())
