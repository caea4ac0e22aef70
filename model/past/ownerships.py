"""Who owned the partitions of a group, and when: the past as intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from model.ids import MemberId, TopicId, TopicName
from model.past.as_of import LogPosition


class Lane(NamedTuple):
    """A partition. The name is empty for a deleted topic, the id where it is not known."""

    topic_name: TopicName
    topic_id: TopicId | None
    partition: int

    @property
    def place(self) -> tuple[str, str, int]:
        """Its place among the lanes: by name, then by id and partition."""
        topic_id = "" if self.topic_id is None else self.topic_id.hex()
        return self.topic_name, topic_id, self.partition


class OwnershipQuestion(NamedTuple):
    """From when on (wall ms) to tell ownerships, and of which partitions.

    Of at most ``lanes_max``, behind the place ``after`` and ``skipped`` more. ``spans_max`` bounds
    what is told of all partitions: the last changes are.
    """

    since_ms: int
    after: tuple[str, str, int] | None
    skipped: int
    lanes_max: int
    spans_max: int


class Moment(NamedTuple):
    """A write that changed the group; ``offset`` is its last. The counts are those after it."""

    offset: int
    timestamp_ms: int
    group_epoch: int
    members: int
    partitions_changed: int


class OwningMember(NamedTuple):
    """A member, as it described itself."""

    member_id: MemberId
    client_id: str
    client_host: str
    instance_id: str


Span: TypeAlias = tuple[int, int, int, bool]
"""What a partition was from a moment on: that, owner, target, and whether its owner revokes it.

Moment and members by number, -1 for none. Plain, as very many of them go from process to process.
"""


@dataclass(frozen=True, slots=True)
class Ownerships:
    """Lanes with their spans, in the order of their places."""

    begin: LogPosition
    members: tuple[OwningMember, ...]
    moments: tuple[Moment, ...]
    lanes: tuple[tuple[Lane, tuple[Span, ...]], ...]
    has_more: bool
    is_known: bool
    """Whether the log has anything of the group."""
