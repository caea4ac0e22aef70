"""How groups, members and partitions are shown, in the words of Kafka's tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from cli.output import Listing

if TYPE_CHECKING:
    from muster.v1 import admin_pb2, group_pb2, types_pb2

GroupArgument: TypeAlias = Annotated[str, typer.Argument(help="Id of the group.")]


def add_position(
    listing: Listing, response: admin_pb2.DescribeGroupResponse | group_pb2.FetchOffsetsResponse
) -> Listing:
    """Add the log position of an answer about the past."""
    if not response.HasField("position"):
        return listing
    from cli.messages import as_dict
    from wording.positions import render_position

    position = response.position
    content = {**listing.content, "position": as_dict(position)}
    preface = [render_position(position), *listing.preface]
    return replace(listing, content=content, preface=preface)


def is_classic(group: admin_pb2.Group) -> bool:
    from muster.v1 import admin_pb2

    return group.group_type == admin_pb2.GROUP_TYPE_CLASSIC


def render_partitions(topics: Sequence[types_pb2.TopicPartitions]) -> str:
    """Render partitions as ``orders:0,1,2;payments:0``, as Kafka's tool prints assignments."""
    return ";".join(
        f"{topic.topic_name}:{','.join(map(str, topic.partitions))}" for topic in topics
    )


def render_subscription(member: admin_pb2.GroupMember) -> str:
    """Render the topic names, and the regular expression between slashes."""
    regex = member.subscribed_topic_regex
    return ",".join([*member.subscribed_topic_names, *([f"/{regex}/"] if regex else [])])


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


def render_since(wall_ms: int) -> str:
    """Render a wall time in UTC, to the second."""
    time = datetime.fromtimestamp(wall_ms / 1_000, UTC)
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def _render_enum(name: str, prefix: str) -> str:
    return "".join(word.capitalize() for word in name.removeprefix(prefix).split("_"))
