"""The requests by which offsets are committed and fetched in the cluster, and their answers.

Topics have names there: OffsetCommit and OffsetFetch name them by id only from version 10 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.codec.client_frames import ClientRequest
from model.commands.transactions import TxnOffsetCommit
from model.errors import ErrorCode
from model.ids import GroupId, TopicName
from upstream.hooks import SentinelIdentity

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
TXN_OFFSET_COMMIT: Final = 28
DELETE_GROUPS: Final = 42
NAMED_MAX: Final = 9
"""The last version of OffsetCommit and OffsetFetch that names topics by name."""
BEFORE_ADDING: Final = 4
"""The last version of TxnOffsetCommit that adds nothing to the transaction."""

_CODES: Final[Mapping[int, ErrorCode]] = {code.value: code for code in ErrorCode}

Spot: TypeAlias = tuple[TopicName, int]
"""A topic and a partition."""


class Row(NamedTuple):
    """The offset of a partition; ``leader_epoch`` is -1 for none."""

    topic: TopicName
    partition: int
    offset: int
    leader_epoch: int
    metadata: str

    @property
    def spot(self) -> Spot:
        """Where it is committed."""
        return self.topic, self.partition


class FetchedRow(NamedTuple):
    """An offset as the cluster has it; ``offset`` is -1 if there is none."""

    offset: int
    leader_epoch: int
    metadata: str
    error: ErrorCode


class FetchedOffsets(NamedTuple):
    """The answer to an OffsetFetch."""

    error: ErrorCode
    rows: Mapping[Spot, FetchedRow]


def compute_code(number: int) -> ErrorCode:
    """The error code of that number; one that Muster does not know is UNKNOWN_SERVER_ERROR."""
    return _CODES.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)


def make_commit(
    group_id: GroupId, identity: SentinelIdentity, rows: Iterable[Row]
) -> ClientRequest:
    """An OffsetCommit by the sentinel."""
    fields = {
        "group_id": group_id,
        "generation_id_or_member_epoch": identity.generation,
        "member_id": identity.member_id,
        "group_instance_id": identity.instance_id,
        "topics": _make_topics(rows),
    }
    return ClientRequest(OFFSET_COMMIT, fields, NAMED_MAX)


def make_transactional_commit(
    commit: TxnOffsetCommit, identity: SentinelIdentity, rows: Iterable[Row]
) -> ClientRequest:
    """A TxnOffsetCommit by the sentinel, of the client's own producer."""
    fields = {
        "transactional_id": commit.transactional_id,
        "group_id": commit.group_id,
        "producer_id": commit.producer_id,
        "producer_epoch": commit.producer_epoch,
        "generation_id": identity.generation,
        "member_id": identity.member_id,
        "group_instance_id": identity.instance_id,
        "topics": _make_topics(rows),
    }
    return ClientRequest(
        TXN_OFFSET_COMMIT, fields, None if commit.adds_partition else BEFORE_ADDING
    )


def _make_topics(rows: Iterable[Row]) -> list[dict[str, Any]]:
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for topic, partition, offset, leader_epoch, metadata in rows:
        by_topic.setdefault(topic, []).append(
            {
                "partition_index": partition,
                "committed_offset": offset,
                "committed_leader_epoch": leader_epoch,
                "committed_metadata": metadata,
            }
        )
    return [{"name": name, "partitions": partitions} for name, partitions in by_topic.items()]


def read_codes(response: Any) -> dict[Spot, ErrorCode]:
    """The result of each partition of an OffsetCommit or a TxnOffsetCommit."""
    return {
        (topic.name, row.partition_index): compute_code(row.error_code)
        for topic in response.topics
        for row in topic.partitions
    }


def make_fetch(
    group_id: GroupId,
    wanted: Mapping[TopicName, Iterable[int]] | None,
    *,
    require_stable: bool,
) -> ClientRequest:
    """An OffsetFetch of some partitions, or of all if ``wanted`` is ``None``."""
    topics = (
        None
        if wanted is None
        else [
            {"name": name, "partition_indexes": tuple(numbers)} for name, numbers in wanted.items()
        ]
    )
    group = {"group_id": group_id, "topics": topics}
    fields = {**group, "groups": [group], "require_stable": require_stable}
    return ClientRequest(OFFSET_FETCH, fields, NAMED_MAX)


def read_offsets(group_id: GroupId, response: Any) -> FetchedOffsets:
    """Read the answer to an OffsetFetch of one group, of any version."""
    found = response
    if hasattr(response, "groups"):
        own = [group for group in response.groups if group.group_id == group_id]
        if not own:
            return FetchedOffsets(ErrorCode.UNKNOWN_SERVER_ERROR, {})
        found = own[0]
    rows = {
        (topic.name, row.partition_index): FetchedRow(
            row.committed_offset,
            getattr(row, "committed_leader_epoch", -1),
            row.metadata or "",
            compute_code(row.error_code),
        )
        for topic in found.topics
        for row in topic.partitions
    }
    return FetchedOffsets(compute_code(getattr(found, "error_code", 0)), rows)


def make_group_deletion(group_id: GroupId) -> ClientRequest:
    """A DeleteGroups of one group."""
    return ClientRequest(DELETE_GROUPS, {"groups_names": [group_id]})


def read_group_deletion(group_id: GroupId, response: Any) -> ErrorCode:
    """The result of that."""
    codes = {each.group_id: compute_code(each.error_code) for each in response.results}
    return codes.get(group_id, ErrorCode.UNKNOWN_SERVER_ERROR)
