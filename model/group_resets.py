"""The reset of the offsets of a group with members, while it goes on and after it."""

from __future__ import annotations

from model.ids import LogOffset, TopicId, TopicName
from model.log.commit_records import OffsetRow
from model.value import value


@value
class ResetTopic:
    """Partitions of one topic, and the offsets that they get; ``NO_OFFSET`` for none."""

    name: TopicName
    topic_id: TopicId
    rows: tuple[OffsetRow, ...]


@value
class GroupReset:
    """A reset, begun at a group epoch of its own, by a principal (wall ms).

    Until the offsets are set, at ``set_at_ms``, no member gets these partitions. Afterwards only
    their owners commit them. ``set_at_ms`` is 0 until then. ``undoes`` is the first log offset of
    the change that is undone.
    """

    group_epoch: int
    began_ms: int
    principal: str
    topics: tuple[ResetTopic, ...]
    set_at_ms: int = 0
    undoes: LogOffset | None = None
