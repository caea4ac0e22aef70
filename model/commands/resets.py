"""Commands that set the committed offsets of a group from outside of it."""

from __future__ import annotations

from collections.abc import Mapping

from model.caller import Caller
from model.commands.offsets import TopicOffsets
from model.ids import GroupId, LogOffset, TopicName
from model.value import value


@value
class ResetOffsets:
    """Set offsets of a group, all or none. Topics have names; one with an id is that one only.

    ``before`` are the offsets that the caller saw, of the same partitions, and ``revision`` the
    group that it saw (``OffsetsReset``); each is ``None`` if the caller does not mind. A group that
    does not exist is refused unless ``creates``. ``undoes`` is the first log offset of the change
    that is undone: then ``NO_OFFSET`` in place of an offset removes the one that there is.
    """

    caller: Caller
    group_id: GroupId
    topics: tuple[TopicOffsets, ...]
    before: Mapping[tuple[TopicName, int], int] | None = None
    revision: str | None = None
    creates: bool = False
    undoes: LogOffset | None = None
    validate_only: bool = False


@value
class FinishReset:
    """Set the offsets of a reset that goes on, if no member owns any of its partitions now."""

    group_id: GroupId


@value
class DescribeReset:
    """Tell how far the last reset of a group with members is."""

    caller: Caller
    group_id: GroupId
