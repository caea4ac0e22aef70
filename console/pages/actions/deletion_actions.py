"""Deletions of a group, and of offsets."""

from __future__ import annotations

from typing import Final

from console.pages.actions.action import (
    Action,
    check_still,
    list_fields,
    list_lines,
    read_request_id,
)
from console.refusals import Refused
from console.site import Visit
from console.views.actions.deletion_view import (
    Partitions,
    choose,
    compute_group_deletion_outcome,
    compute_group_deletion_preview,
    compute_offset_deletion_outcome,
    compute_offset_deletion_preview,
)
from console.views.actions.preview import Outcome, Preview, compute_token
from coordinator.service.calls.local_calls import CallRefused
from muster.v1 import admin_pb2, group_pb2, types_pb2
from wording.partitions import parse_partitions


async def fetch_offsets(visit: Visit, group_id: str) -> group_pb2.FetchOffsetsResponse:
    """The committed offsets of a group. Raises ``CallRefused``."""
    request = group_pb2.FetchOffsetsRequest(group_id=group_id)
    answer: group_pb2.FetchOffsetsResponse = await visit.ask(
        "GroupService", "FetchOffsets", request
    )
    if answer.HasField("error"):
        status = 403 if answer.error.reason.endswith("AUTHORIZATION_FAILED") else 409
        raise Refused(status, f"{answer.error.reason}: {answer.error.error_message}")
    return answer


async def _preview_group(visit: Visit, group_id: str) -> Preview:
    request = admin_pb2.DeleteGroupRequest(group_id=group_id, validate_only=True)
    await visit.ask("AdminService", "DeleteGroup", request)
    return compute_group_deletion_preview(group_id, await _fetch_if_allowed(visit, group_id))


async def _fetch_if_allowed(visit: Visit, group_id: str) -> group_pb2.FetchOffsetsResponse:
    """Who may delete a group need not see its offsets."""
    try:
        return await fetch_offsets(visit, group_id)
    except (CallRefused, Refused):
        return group_pb2.FetchOffsetsResponse()


async def _delete_group(visit: Visit, group_id: str) -> Outcome:
    offsets = await _fetch_if_allowed(visit, group_id)
    check_still(visit, compute_token([offsets]))
    request_id = read_request_id(visit)
    request = admin_pb2.DeleteGroupRequest(group_id=group_id, request_id=request_id)
    await visit.ask("AdminService", "DeleteGroup", request)
    return compute_group_deletion_outcome(group_id)


def _make_request(
    group_id: str, chosen: Partitions, *, validate_only: bool
) -> admin_pb2.DeleteOffsetsRequest:
    return admin_pb2.DeleteOffsetsRequest(
        group_id=group_id,
        topics=[
            types_pb2.TopicPartitions(topic_name=name, partitions=partitions)
            for name, partitions in chosen.items()
        ],
        validate_only=validate_only,
    )


async def _preview_offsets(visit: Visit, group_id: str) -> Preview:
    offsets, chosen, words = await _choose(visit, group_id)
    request = _make_request(group_id, chosen, validate_only=True)
    answer = await visit.ask("AdminService", "DeleteOffsets", request)
    for topic in answer.failures:
        for row in topic.partitions[:1]:
            said = f"{topic.topic_name}-{row.partition}: {row.error.reason}"
            raise Refused(409, f"{said}: {row.error.error_message}")
    fields = list_fields(visit, "topic")
    return compute_offset_deletion_preview(group_id, offsets, chosen, words, fields)


async def _delete_offsets(visit: Visit, group_id: str) -> Outcome:
    offsets, chosen, words = await _choose(visit, group_id)
    check_still(visit, compute_token([offsets]))
    request = _make_request(group_id, chosen, validate_only=False)
    request.request_id = read_request_id(visit)
    answer = await visit.ask("AdminService", "DeleteOffsets", request)
    return compute_offset_deletion_outcome(group_id, chosen, answer.failures, words)


async def _choose(
    visit: Visit, group_id: str
) -> tuple[group_pb2.FetchOffsetsResponse, Partitions, list[str]]:
    """The offsets of the topics that are named, the partitions meant, and the options."""
    topics = list_lines(visit, "topic")
    if not topics:
        raise Refused(400, "Say which offsets: choose a topic, or write TOPIC:0,1.")
    asked = parse_partitions(topics)
    offsets = await fetch_offsets(visit, group_id)
    chosen = choose(asked, offsets)
    for name, partitions in chosen.items():
        if not partitions:
            raise Refused(404, f"{group_id} has no committed offsets for {name}.")
    named = group_pb2.FetchOffsetsResponse(
        topics=[topic for topic in offsets.topics if topic.topic_name in chosen]
    )
    return named, chosen, [word for topic in topics for word in ("--topic", topic)]


DELETION_ACTIONS: Final = (
    Action("delete", _preview_group, _delete_group),
    Action("delete-offsets", _preview_offsets, _delete_offsets),
)
