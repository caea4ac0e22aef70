"""Frames of Kafka requests, encoded before anything is timed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.stores import EPOCH
from gateway.apis.api_registry import APIS
from tests.support.wire.frames import frame, make_request

LEAVE_EPOCH = -1
REBALANCE_TIMEOUT_MS = 300_000

_VERSIONS = {api.name: (api.key, api.versions[-1]) for api in APIS}


def encode(name: str, **fields: Any) -> bytes:
    """A request in the newest version that Muster knows."""
    key, version = _VERSIONS[name]
    return frame(key, version, 7, make_request(key, version, **fields))


def make_heartbeat(group_id: str, member: str, epoch: int = EPOCH, **fields: Any) -> bytes:
    return encode(
        "ConsumerGroupHeartbeat",
        group_id=group_id,
        member_id=member,
        member_epoch=epoch,
        **fields,
    )


def make_join(
    group_id: str, member: str, topics: Sequence[str] | None = None, regex: str | None = None
) -> bytes:
    return make_heartbeat(
        group_id,
        member,
        0,
        subscribed_topic_names=topics,
        subscribed_topic_regex=regex,
        rebalance_timeout=REBALANCE_TIMEOUT_MS,
        topic_partitions=(),
    )


def make_leave(group_id: str, member: str) -> bytes:
    return make_heartbeat(group_id, member, LEAVE_EPOCH)


def make_commit(
    group_id: str,
    topic_id: bytes,
    offsets: Iterable[tuple[int, int]],
    member: str = "",
    epoch: int = EPOCH,
) -> bytes:
    """An OffsetCommit without metadata of (partition, offset)."""
    rows = [
        {
            "partition_index": number,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": None,
        }
        for number, offset in offsets
    ]
    return encode(
        "OffsetCommit",
        group_id=group_id,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        group_instance_id=None,
        topics=({"topic_id": topic_id, "partitions": rows},),
    )


def make_fetch(group_id: str) -> bytes:
    """An OffsetFetch of all offsets of a group."""
    groups = ({"group_id": group_id, "member_id": None, "member_epoch": -1, "topics": None},)
    return encode("OffsetFetch", groups=groups, require_stable=False)


def make_metadata(name: str | None) -> bytes:
    """A Metadata request for one topic, or for all."""
    topics = None if name is None else ({"topic_id": None, "name": name},)
    return encode("Metadata", topics=topics, allow_auto_topic_creation=False)
