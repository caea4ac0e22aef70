"""Lines of `muster group describe` about members that wait for partitions of others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

LINES_MAX = 20
"""The most waits shown: when a large group moves, every member may wait for many others."""

NAMES_MAX = 8
"""The most partitions named in one line."""


def render_waits(members: Iterable[admin_pb2.GroupMember]) -> list[str]:
    """A line for each wait, as ``m2 waits for orders-3 from m1, 4 s``."""
    waits = [(member.member_id, wait) for member in members for wait in member.waits]
    lines = [_render_wait(member_id, wait) for member_id, wait in waits[:LINES_MAX]]
    if len(waits) > LINES_MAX:
        lines.append(f"and {len(waits) - LINES_MAX} more waits; -o json shows all")
    return lines


def _render_wait(member_id: str, wait: admin_pb2.MemberWait) -> str:
    names = [
        f"{topic.topic_name or topic.topic_id.hex()}-{partition}"
        for topic in wait.partitions
        for partition in topic.partitions
    ]
    shown = ", ".join(names[:NAMES_MAX])
    if len(names) > NAMES_MAX:
        shown += f" and {len(names) - NAMES_MAX} more"
    line = f"{member_id} waits for {shown or 'a deleted topic'} from {wait.owner_id}"
    if wait.HasField("waited_ms"):
        line += f", {wait.waited_ms // 1000} s"
    if wait.HasField("left_ms"):
        kept = "it" if len(names) == 1 else "them"
        line += f" ({wait.owner_id} may keep {kept} for {-(-wait.left_ms // 1000)} s more)"
    return line
