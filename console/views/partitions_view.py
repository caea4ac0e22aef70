"""Committed offsets, lag and owners of a group's partitions, as they are shown."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

from muster.v1 import admin_pb2, types_pb2
from wording.lag import compute_lag

T = TypeVar("T")

Place: TypeAlias = tuple[str, int]


ROWS_MAX: Final = 1_000
"""The most members, and the most partitions, of one page."""
_SLICE: Final = 200
"""Members looked at in one step."""
_AIMS: Final = 2_000
_PLACES: Final = 5_000


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


class _Holdings(NamedTuple):
    """What a member has and is to have; ``encoded`` is the member of which this was made.

    The message itself would keep the whole answer in memory that it is a part of.
    """

    encoded: bytes
    held: dict[Place, Owner]
    aims: list[Place]


class OwnerFinder:
    """Finds the owners of one group again and again: of each member only what has changed."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, _Holdings] = {}

    def find(
        self, members: Iterable[admin_pb2.GroupMember]
    ) -> Generator[None, None, dict[Place, Owner]]:
        """The owners of all partitions that have or are to have one, a slice at a time."""
        before, known = self._known, dict[str, _Holdings]()
        owners: dict[Place, Owner] = {}
        for number, member in enumerate(members):
            if number % _SLICE == _SLICE - 1:
                yield
            holdings, encoded = before.get(member.member_id), member.SerializeToString()
            if holdings is None or holdings.encoded != encoded:
                holdings = _take_apart(member, encoded)
            known[member.member_id] = holdings
            owners.update(holdings.held)
        nobody = Owner()
        left = _AIMS
        for member_id, holdings in known.items():
            for place in holdings.aims:
                held = owners.get(place, nobody)
                if held.member_id != member_id:
                    owners[place] = held._replace(target_id=member_id)
            left -= len(holdings.aims)
            if left <= 0:
                left = _AIMS
                yield
        self._known = known
        return owners


def _take_apart(member: admin_pb2.GroupMember, encoded: bytes) -> _Holdings:
    """A deleted topic has no name."""
    owner = Owner(member.member_id, member.client_id)
    held = (*member.assignment, *member.pending_revocation)
    aims = list(_list_places(member.target_assignment))
    return _Holdings(encoded, dict.fromkeys(_list_places(held), owner), aims)


def _list_places(topics: Iterable[types_pb2.TopicPartitions]) -> Iterator[Place]:
    for topic in topics:
        if name := topic.topic_name:
            yield from ((name, number) for number in topic.partitions)


def sort_places(places: Iterable[Place]) -> Generator[None, None, list[Place]]:
    """The places, each once, by topic and number, a slice at a time."""
    numbers: dict[str, set[int]] = {}
    for number, (name, partition) in enumerate(places):
        if number % _PLACES == _PLACES - 1:
            yield
        numbers.setdefault(name, set()).add(partition)
    found: list[Place] = []
    for name in sorted(numbers):
        # Numbers alone are sorted quickly, with the name several times as slow.
        found += [(name, partition) for partition in sorted(numbers[name])]
        yield
    return found


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


def cut_page(rows: Sequence[T], page: int) -> Sequence[T]:
    """The rows of a page, which counts from 1."""
    return rows[(page - 1) * ROWS_MAX : page * ROWS_MAX]


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
