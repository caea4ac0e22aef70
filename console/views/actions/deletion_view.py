"""Deletions of groups and of offsets, as they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from console.views.actions.preview import Outcome, Preview, compute_token
from console.views.tables import Table, make_table
from muster.v1 import group_pb2, types_pb2
from wording.commands import render_command

Partitions = Mapping[str, Sequence[int]]


def compute_group_deletion_preview(
    group_id: str, offsets: group_pb2.FetchOffsetsResponse
) -> Preview:
    """What goes with the group."""
    count = sum(len(topic.partitions) for topic in offsets.topics)
    return Preview(
        f"Delete {group_id}",
        [
            f"The group and its {count} committed offsets are here now; afterwards they are not, "
            "also those of open transactions.",
            "Undo brings the offsets back, as long as the history of the log lasts.",
        ],
        "Delete the group",
        compute_token([offsets]),
        render_command("group", "delete", group_id),
        [_make_table(offsets, None)] if count else (),
        is_dangerous=True,
    )


def compute_group_deletion_outcome(group_id: str) -> Outcome:
    """It is gone."""
    return Outcome(
        f"{group_id} is deleted",
        ["With all of its offsets."],
        render_command("group", "delete", group_id),
    )


def compute_offset_deletion_preview(
    group_id: str,
    offsets: group_pb2.FetchOffsetsResponse,
    chosen: Partitions,
    words: Sequence[str],
    fields: Sequence[tuple[str, str]],
) -> Preview:
    """The offsets that go."""
    count = sum(map(len, chosen.values()))
    return Preview(
        f"Delete committed offsets of {group_id}",
        [
            f"{count} offsets are there now; afterwards they are not: consumers start there by "
            "their auto.offset.reset.",
            "Undo brings them back, as long as the history of the log lasts.",
        ],
        "Delete these offsets",
        compute_token([offsets]),
        render_command("group", "delete-offsets", group_id, *words),
        [_make_table(offsets, chosen)],
        fields=fields,
        is_dangerous=True,
    )


def compute_offset_deletion_outcome(
    group_id: str,
    chosen: Partitions,
    failures: Sequence[types_pb2.TopicFailures],
    words: Sequence[str],
) -> Outcome:
    """How many are gone, and why others are not."""
    failed = [
        f"{topic.topic_name}-{row.partition}: {row.error.reason}: {row.error.error_message}"
        for topic in failures
        for row in topic.partitions
    ]
    count = sum(map(len, chosen.values())) - len(failed)
    return Outcome(
        f"{count} offsets of {group_id} are deleted",
        [],
        render_command("group", "delete-offsets", group_id, *words),
        failures=failed[:100],
    )


def choose(
    asked: Mapping[str, Sequence[int] | None], offsets: group_pb2.FetchOffsetsResponse
) -> dict[str, list[int]]:
    """The partitions that are meant: where none are named, all with a committed offset."""
    committed = {
        topic.topic_name: [row.partition for row in topic.partitions] for topic in offsets.topics
    }
    return {
        name: committed.get(name, []) if partitions is None else list(partitions)
        for name, partitions in asked.items()
    }


def _make_table(offsets: group_pb2.FetchOffsetsResponse, chosen: Partitions | None) -> Table:
    wanted = None if chosen is None else {name: set(rows) for name, rows in chosen.items()}
    rows = [
        (topic.topic_name, row.partition, row.offset if row.HasField("offset") else None)
        for topic in offsets.topics
        for row in topic.partitions
        if wanted is None or row.partition in wanted.get(topic.topic_name, ())
    ]
    columns = ("Topic", "#Partition", "#Offset")
    return make_table("offsets", "Offsets that are deleted", columns, rows, len(rows))
