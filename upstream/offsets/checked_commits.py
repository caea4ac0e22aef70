"""What a check has accepted of a commit, and the answer to the commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from model.commands.offsets import TopicOffsets
from model.errors import ErrorCode
from model.responses.offsets import OffsetCommitResponse, PartitionResult, TopicResult
from upstream.offsets.offset_requests import Row, Spot


def accept_rows(topics: Iterable[TopicOffsets], answer: OffsetCommitResponse) -> list[Row]:
    """The rows that a check has accepted, by the names of their topics now."""
    rows: dict[Spot, Row] = {}
    # A topic without partitions may have no result.
    asked = (topic for topic in topics if len(topic.partitions))
    results = (result for result in answer.topics if result.partitions)
    for topic, result in zip(asked, results, strict=True):
        for row, checked in zip(topic.offsets.rows(), result.partitions, strict=True):
            if checked.error is ErrorCode.NONE and result.name is not None:
                found = Row(result.name, *row)
                rows.pop(found.spot, None)
                rows[found.spot] = found
    return list(rows.values())


def compute_answer(
    checked: OffsetCommitResponse, codes: Mapping[Spot, ErrorCode]
) -> OffsetCommitResponse:
    """The answer to a commit: what the check has refused, and the results of the rest."""
    return OffsetCommitResponse(tuple(_compute_topic(topic, codes) for topic in checked.topics))


def _compute_topic(topic: TopicResult, codes: Mapping[Spot, ErrorCode]) -> TopicResult:
    name = topic.name
    if name is None:
        return topic
    rows = tuple(
        PartitionResult(row.partition, codes[name, row.partition])
        if row.error is ErrorCode.NONE
        else row
        for row in topic.partitions
    )
    return replace(topic, partitions=rows)
