"""Reports of where partitions end whose records the server does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import grpc.aio

from muster.connection.unary import ask, describe_trouble
from muster.errors import MusterError, ReportFailed, decode_error
from muster.partitions import TopicPartition
from muster.v1 import group_pb2, group_pb2_grpc

PARTITIONS_MAX: Final = 10_000
"""The server refuses larger reports."""
TIMEOUT_S: Final = 10.0
"""A report that comes later would say of an older end that it is the present one."""


async def report_end_offsets(
    stub: group_pb2_grpc.GroupServiceAsyncStub, ends: Mapping[TopicPartition, int]
) -> float:
    """For how many seconds the server believes them.

    Raises ``ReportFailed`` after all others were taken, and ``MusterError`` if the server cannot be
    reached or takes none. Nothing is retried: the next report says more.
    """
    if not ends:
        raise ValueError("no partitions: there is nothing to report")
    rows = [(TopicPartition(*key), end) for key, end in ends.items()]
    failures: dict[TopicPartition, MusterError] = {}
    max_age_ms = 0
    for begin in range(0, len(rows), PARTITIONS_MAX):
        request = _encode(rows[begin : begin + PARTITIONS_MAX])
        try:
            response = await ask(stub.ReportEndOffsets, request, timeout=TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise MusterError(describe_trouble(error)) from error
        if response.HasField("error"):
            raise decode_error(response.error)
        max_age_ms = response.max_age_ms
        for topic in response.failures:
            for each in topic.partitions:
                place = TopicPartition(topic.topic_name, each.partition)
                failures[place] = decode_error(each.error)
    if failures:
        raise ReportFailed(failures)
    return max_age_ms / 1_000


def _encode(rows: Sequence[tuple[TopicPartition, int]]) -> group_pb2.ReportEndOffsetsRequest:
    by_topic: dict[str, list[group_pb2.PartitionEndOffset]] = {}
    for (topic, partition), end in rows:
        entry = group_pb2.PartitionEndOffset(partition=partition, end_offset=end)
        by_topic.setdefault(topic, []).append(entry)
    return group_pb2.ReportEndOffsetsRequest(
        topics=[
            group_pb2.TopicEndOffsets(topic_name=topic, partitions=entries)
            for topic, entries in by_topic.items()
        ]
    )
