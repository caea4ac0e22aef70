"""Topics, and who reads them, as they are shown."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.views.tables import Table, make_table
from muster.v1 import admin_pb2
from wording.groups import render_group_state, render_type

RACKS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in the list."""

    name: str
    partitions: int
    topic_id: str


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A group that subscribes to the topic."""

    group_id: str
    group_type: str
    state: str
    members: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic with its readers. ``racks`` is there if some are known."""

    topic: TopicRow
    readers: Sequence[ReaderRow]
    racks: Table | None


def compute_topic_row(topic: admin_pb2.Topic) -> TopicRow:
    """A row of the list; the id as Kafka's tools write it."""
    topic_id = base64.urlsafe_b64encode(topic.topic_id).decode().rstrip("=")
    return TopicRow(topic.topic_name, topic.num_partitions, topic_id)


def compute_topic_view(
    topic: admin_pb2.Topic, groups: Sequence[admin_pb2.GroupSummary]
) -> TopicView:
    """What is shown of a topic."""
    known = [racks for racks in topic.replica_racks if racks.names]
    racks = None
    if known:
        racks = make_table(
            "racks",
            "Racks of the replicas",
            ("#Partition", "Racks"),
            (
                (number, ", ".join(each.names))
                for number, each in enumerate(topic.replica_racks[:RACKS_MAX])
            ),
            len(topic.replica_racks),
        )
    return TopicView(compute_topic_row(topic), [_make_reader(group) for group in groups], racks)


def _make_reader(group: admin_pb2.GroupSummary) -> ReaderRow:
    return ReaderRow(
        group.group_id,
        render_type(group.group_type),
        render_group_state(group.state),
        group.members,
        group.group_epoch,
    )
