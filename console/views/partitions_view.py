"""Committed offsets, lag and owners of a group's partitions, as they are shown."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from muster.v1 import admin_pb2, types_pb2
from wording.lag import compute_lag

Place: TypeAlias = tuple[str, int]


_SLICE: Final = 200
"""Members looked at in one step."""
_AIMS: Final = 2_000


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition. ``target`` is the member that is to get it from its owner, empty if none.

    What is not known is empty: a lag is 0 only if it is.
    """

    topic: str
    partition: int
    owner_id: str
    owner_client: str
    target_id: str
    committed: str
    end: str
    lag: str
    lag_seconds: str
    trend: str
    error: str


class Owner(NamedTuple):
    """Who has a partition, and who is to get it."""

    member_id: str = ""
    client_id: str = ""
    target_id: str = ""


def find_owners(
    members: Iterable[admin_pb2.GroupMember],
) -> Generator[None, None, dict[Place, Owner]]:
    """The owners of all partitions that have or are to have one, a slice at a time.

    A deleted topic has no name.
    """
    owners: dict[Place, Owner] = {}
    aims: list[tuple[Place, str]] = []
    for number, member in enumerate(members):
        if number % _SLICE == _SLICE - 1:
            yield
        owner = Owner(member.member_id, member.client_id)
        for topics in (member.assignment, member.pending_revocation):
            for topic in topics:
                name = topic.topic_name
                owners.update(((name, number), owner) for number in topic.partitions if name)
        for topic in member.target_assignment:
            name = topic.topic_name
            aims.extend(((name, number), member.member_id) for number in topic.partitions if name)
    for number, (place, member_id) in enumerate(aims):
        if number % _AIMS == _AIMS - 1:
            yield
        held = owners.get(place, Owner())
        if held.member_id != member_id:
            owners[place] = held._replace(target_id=member_id)
    return owners


Rows: TypeAlias = dict[Place, types_pb2.CommittedOffset]


def find_committed(topics: Iterable[types_pb2.CommittedTopic]) -> Rows:
    """The answers by partition."""
    return {
        (topic.topic_name, row.partition): row
        for topic in topics
        if topic.topic_name
        for row in topic.partitions
    }


def find_lags(rows: Mapping[Place, types_pb2.CommittedOffset]) -> dict[Place, int]:
    """The lags that are known."""
    return {place: lag for place, row in rows.items() if (lag := compute_lag(row)) is not None}


def list_uncommitted(owners: Mapping[Place, Owner], rows: Mapping[Place, object]) -> list[Place]:
    """Partitions that a member has without a committed offset."""
    return sorted(owners.keys() - rows.keys())


def compute_partition(
    place: Place,
    owner: Owner,
    row: types_pb2.CommittedOffset | None,
    trend: str,
) -> PartitionRow:
    """One partition, with what is known of its offsets."""
    lag = None if row is None else compute_lag(row)
    is_timed = row is not None and row.HasField("lag_ms")
    return PartitionRow(
        topic=place[0],
        partition=place[1],
        owner_id=owner.member_id,
        owner_client=owner.client_id,
        target_id=owner.target_id,
        committed=str(row.offset) if row is not None and row.HasField("offset") else "",
        end=str(row.end_offset) if row is not None and row.HasField("end_offset") else "",
        lag="" if lag is None else f"{lag:,}",
        lag_seconds=f"{row.lag_ms / 1_000:.1f}" if row is not None and is_timed else "",
        trend=trend,
        error="" if row is None else row.error.reason,
    )


def compute_slowest_ms(rows: Sequence[types_pb2.CommittedOffset]) -> int | None:
    """The longest lag in time that is known, in ms."""
    return max((row.lag_ms for row in rows if row.HasField("lag_ms")), default=None)
