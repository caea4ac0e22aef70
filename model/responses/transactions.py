"""Responses about transactions and producers."""

from __future__ import annotations

from model.ids import GroupId, LogPartition, ProducerId, TopicName
from model.value import value


@value
class ProducerIdResponse:
    producer_id: int


@value
class PendingOffset:
    """A transactional offset that awaits its marker."""

    group_id: GroupId
    topic_name: TopicName
    partition: int
    offset: int


@value
class ListedTransaction:
    """A transaction that is open in one log partition, since ``since_ms`` (wall)."""

    producer_id: ProducerId
    producer_epoch: int
    partition: LogPartition
    since_ms: int
    offsets: tuple[PendingOffset, ...]
    coordinator_epoch: int = 0
    """The highest coordinator epoch of the producer's markers in that partition."""
    times_out_at_ms: int = 0
    """When the transaction times out (wall); the abort may come a little later."""


@value
class ListTransactionsResponse:
    transactions: tuple[ListedTransaction, ...]
