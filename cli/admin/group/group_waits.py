"""Lines of `muster group describe` about members that wait for partitions of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.v1 import admin_pb2, types_pb2

LINES_MAX = 20
"""The most waits shown: when a large group moves, every member may wait for many others."""

NAMES_MAX = 8
"""The most partitions named in one line."""


def render_waits(members: Iterable[admin_pb2.GroupMember]) -> list[str]:
    """A line for each wait, as ``m2 waits for orders-3 from m1, 4 s``."""
    waits = [(member.member_id, wait) for member in members for wait in member.waits]
    lines = [render_wait(member_id, wait) for member_id, wait in waits[:LINES_MAX]]
    if len(waits) > LINES_MAX:
        lines.append(f"and {len(waits) - LINES_MAX} more waits; -o json shows all")
    return lines


def render_wait(member_id: str, wait: admin_pb2.MemberWait) -> str:
    """A wait with its length, and how much longer it may be."""
    names = name_partitions(wait.partitions)
    line = render_wait_for(member_id, wait)
    if wait.HasField("waited_ms"):
        line += f", {wait.waited_ms // 1000} s"
    if wait.HasField("left_ms"):
        kept = "it" if len(names) == 1 else "them"
        line += f" ({wait.owner_id} may keep {kept} for {-(-wait.left_ms // 1000)} s more)"
    return line


def render_wait_for(member_id: str, wait: admin_pb2.MemberWait) -> str:
    """A wait without its length, as ``m2 waits for orders-3 from m1``."""
    names = name_partitions(wait.partitions)
    return f"{member_id} waits for {render_names(names)} from {wait.owner_id}"


def name_partitions(topics: Iterable[types_pb2.TopicPartitions]) -> list[str]:
    """The names of partitions, as ``orders-3``; a topic that is gone has its id."""
    return [
        f"{topic.topic_name or topic.topic_id.hex()}-{partition}"
        for topic in topics
        for partition in topic.partitions
    ]


def render_names(names: Sequence[str]) -> str:
    """The first of these partitions, and how many more there are."""
    shown = ", ".join(names[:NAMES_MAX])
    if len(names) > NAMES_MAX:
        shown += f" and {len(names) - NAMES_MAX} more"
    return shown or "a deleted topic"
