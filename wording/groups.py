"""Groups, members and partitions in the words of Kafka's tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.v1 import types_pb2


def render_partitions(topics: Sequence[types_pb2.TopicPartitions]) -> str:
    """Render partitions as ``orders:0,1,2;payments:0``, as Kafka's tool prints assignments."""
    return ";".join(
        f"{topic.topic_name}:{','.join(map(str, topic.partitions))}" for topic in topics
    )


def render_type(group_type: int) -> str:
    """Render a group type as ``Consumer``, ``Classic``, ``Share`` or ``Streams``."""
    from muster.v1 import admin_pb2

    return _render_enum(admin_pb2.GroupType.Name(group_type), "GROUP_TYPE_")


def render_group_state(state: int) -> str:
    """Render a group state as Kafka does: ``Stable``, ``PreparingRebalance``."""
    from muster.v1 import admin_pb2

    return _render_enum(admin_pb2.GroupState.Name(state), "GROUP_STATE_")


def render_member_state(state: int) -> str:
    """Render a member state as in Kafka's records: ``STABLE``, ``UNREVOKED_PARTITIONS``."""
    from muster.v1 import admin_pb2

    return admin_pb2.MemberState.Name(state).removeprefix("MEMBER_STATE_")


def _render_enum(name: str, prefix: str) -> str:
    return "".join(word.capitalize() for word in name.removeprefix(prefix).split("_"))
