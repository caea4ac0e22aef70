"""How groups, members and partitions are shown, in the words of Kafka's tools."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from cli.completion.names import complete_groups
from cli.output import Listing

if TYPE_CHECKING:
    from muster.v1 import admin_pb2, group_pb2

GroupArgument: TypeAlias = Annotated[
    str, typer.Argument(help="Id of the group.", autocompletion=complete_groups)
]


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


def render_subscription(member: admin_pb2.GroupMember) -> str:
    """Render the topic names, and the regular expression between slashes."""
    regex = member.subscribed_topic_regex
    return ",".join([*member.subscribed_topic_names, *([f"/{regex}/"] if regex else [])])
