"""Commands of transactions and of the producers that write them."""

from __future__ import annotations

from model.caller import Caller
from model.commands.offsets import TopicOffsets
from model.ids import GroupId, InstanceId, LogPartition, MemberId, ProducerId
from model.value import value


@value
class TxnOffsetCommit:
    """Commit offsets in a transaction (KIP-447): they stay pending until it ends.

    ``member_epoch`` is ``None`` and ``member_id`` empty if the producer names no member. The
    response is an ``OffsetCommitResponse``. With ``adds_partition`` (from version 5, KIP-890) the
    group's partition need not have been added to the transaction before. Neither that nor
    ``transactional_id`` matters here, where no transaction coordinator is: both are for a cluster.
    """

    caller: Caller
    group_id: GroupId
    producer_id: ProducerId
    producer_epoch: int
    topics: tuple[TopicOffsets, ...]
    member_id: MemberId = MemberId("")
    member_epoch: int | None = None
    instance_id: InstanceId | None = None
    transactional_id: str = ""
    adds_partition: bool = False


@value
class WriteTxnMarkers:
    """A transaction coordinator ends a producer's transaction in one log partition.

    The transaction may have offsets of many groups. ``coordinator_epoch`` is the transaction
    coordinator's. From ``transaction_version`` 2 (KIP-890) each transaction has its own producer
    epoch.
    """

    caller: Caller
    partition: LogPartition
    producer_id: ProducerId
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int = 0


@value
class ExpireProducers:
    """Remove the state of producers of one log partition that have been idle for too long."""

    caller: Caller
    partition: LogPartition
    producer_ids: tuple[ProducerId, ...]


@value
class AbortTransaction:
    """Abort a transaction, open since ``since_ms``, that has timed out."""

    caller: Caller
    partition: LogPartition
    producer_id: ProducerId
    since_ms: int


@value
class EndTransaction:
    """An operator ends the producer's transaction in one log partition, which is open there.

    ``producer_epoch`` is the epoch that the operator saw; the command fails at any other.
    """

    caller: Caller
    partition: LogPartition
    producer_id: ProducerId
    producer_epoch: int
    committed: bool


@value
class ListTransactions:
    """List the open transactions, with their pending offsets."""

    caller: Caller


@value
class AllocateProducerId:
    """Allocate a producer id that was never allocated before."""

    caller: Caller
