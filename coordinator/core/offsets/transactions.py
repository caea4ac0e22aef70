"""Transactional offset commits: the group coordinator's part (KIP-98, KIP-447).

The offsets of a transaction are written at once and stay pending until a marker; a fetch of stable
offsets gets UNSTABLE_OFFSET_COMMIT meanwhile. The rows are those of tests/scenarios/README.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from coordinator.core.classic.classic_members import check_classic_commit
from coordinator.core.offsets.offset_commit import (
    COMMITTED,
    NO_EPOCH,
    CheckPartition,
    check_commit_size,
    check_foreign_member,
    compute_assignment_epoch_check,
    compute_partition_error,
    compute_reset_check,
    compute_unknown_topic_result,
    find_topic,
    has_partition,
)
from coordinator.core.offsets.producers import (
    check_marker,
    check_producer,
    compute_next_epoch,
    compute_state_after_abort,
    compute_state_after_marker,
    compute_state_after_offsets,
)
from coordinator.core.state.foreign_groups import ShareGroup
from coordinator.core.state.open_transactions import OffsetPlace
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.offsets import COMMIT_PARTITIONS_MAX, TopicOffsets
from model.commands.transactions import AbortTransaction, TxnOffsetCommit, WriteTxnMarkers
from model.configs.coordinator_settings import ALL_COMMIT, NOBODY_COMMITS
from model.errors import (
    ErrorCode,
    GroupIdNotFound,
    IllegalGeneration,
    InvalidGroupId,
    StaleMemberEpoch,
    UnknownMemberId,
    UnknownServerError,
    UnsupportedVersion,
)
from model.log.records import OffsetCommitKey, OffsetCommitValue, Record
from model.log.transaction_records import TransactionalOffsets, TransactionMarker
from model.now import Now
from model.responses.offsets import (
    FetchedOffset,
    OffsetCommitResponse,
    OffsetFetchResponse,
    PartitionResult,
    TopicResult,
)
from model.responses.response import Done
from model.topics import Topic

TRANSACTION_OFFSETS_MAX: Final = COMMIT_PARTITIONS_MAX
"""The most pending offsets of one transaction: transactions are atomic, so its marker makes all of
them visible in one event-loop iteration and one write."""


def handle_txn_offset_commit(shard: Shard, command: TxnOffsetCommit, now: Now) -> Outcome:
    """Write the offsets as pending (rows O1, O9 and O10).

    Muster cannot verify that the transaction exists. So a transactional commit must satisfy the
    checks of a plain commit, unless ``offsets.transactional.commits`` allows more.

    As in a plain commit, missing topics and partitions fail individually.
    """
    if shard.settings.offsets_transactional_commits == NOBODY_COMMITS:
        raise UnsupportedVersion(
            "Transactional offset commits are disabled (offsets.transactional.commits)."
        )
    if not command.group_id:
        raise InvalidGroupId("A transactional offset commit must have a group id.")
    check_commit_size(command.topics)
    producer_id, epoch = command.producer_id, command.producer_epoch
    check_producer(shard, producer_id, epoch, command.group_id)
    resolved = [(wanted, find_topic(shard, wanted)) for wanted in command.topics]
    check: CheckPartition | None = None
    if any(topic is not None and has_partition(topic, wanted) for wanted, topic in resolved):
        check = check_transactional_commit(shard, command)
    records: list[Record] = []
    results = tuple(
        compute_unknown_topic_result(wanted)
        if topic is None
        else _commit_topic(shard, command, now, wanted, topic, check, records=records)
        for wanted, topic in resolved
    )
    response = OffsetCommitResponse(results)
    if not records:
        return Outcome(response=response)
    _check_transaction_size(shard, command, records)
    group_id = command.group_id
    return Outcome(
        response=response,
        side=compute_state_after_offsets(shard, producer_id, epoch, group_id, now.wall_ms),
        transaction=TransactionalOffsets(producer_id, epoch, tuple(records)),
    )


def _check_transaction_size(
    shard: Shard, command: TxnOffsetCommit, records: Sequence[Record]
) -> None:
    """Raise ``UnknownServerError``, as for a commit of too many partitions."""
    transaction = shard.open_transactions.get(command.producer_id)
    if transaction is None or len(transaction.epochs) + len(records) <= TRANSACTION_OFFSETS_MAX:
        return
    new = sum(record.key not in transaction.epochs for record in records)
    count = len(transaction.epochs) + new
    if new and count > TRANSACTION_OFFSETS_MAX:
        raise UnknownServerError(
            f"The transaction would have {count} pending offsets, which exceeds the maximum of "
            f"{TRANSACTION_OFFSETS_MAX}: commit fewer partitions in one transaction."
        )


def _check_without_group(shard: Shard, command: TxnOffsetCommit, epoch: int) -> None:
    """Raise an error unless the caller may commit in a group that is not a consumer group."""
    streams = shard.foreign_groups.get(command.group_id)
    if streams is not None:
        if epoch < 0 and not streams.members:
            return
        member_epoch = check_foreign_member(streams, command.member_id).member_epoch
        if epoch != member_epoch:
            raise IllegalGeneration(
                f"The received member epoch {epoch} does not match the expected member epoch "
                f"{member_epoch}."
            )
        return
    classic = shard.classic_group(command.group_id)
    if classic is not None:
        check_classic_commit(
            classic,
            command.member_id,
            command.instance_id,
            epoch,
            in_transaction=True,
            nobody_may=shard.settings.offsets_transactional_commits == ALL_COMMIT,
        )
        return
    if epoch < 0:
        return
    if shard.has_other_group(command.group_id):
        raise UnknownMemberId(
            f"Member {command.member_id} is not a member of group {command.group_id}."
        )
    raise IllegalGeneration(f"Group {command.group_id} has no generation {epoch}.")


def check_transactional_commit(shard: Shard, command: TxnOffsetCommit) -> CheckPartition | None:
    """Raise an error unless the caller may commit in the group.

    Returns the check that remains for each partition, ``None`` if there is none. Kafka does not
    check a caller that names no member: producers from before KIP-447 name none.
    """
    epoch = NO_EPOCH if command.member_epoch is None else command.member_epoch
    group = shard.consumer_groups.get(command.group_id)
    if group is None and isinstance(shard.foreign_groups.get(command.group_id), ShareGroup):
        raise GroupIdNotFound(f"Group {command.group_id} is not a consumer group.")
    names_nobody = epoch == NO_EPOCH and not command.member_id and command.instance_id is None
    if names_nobody and shard.settings.offsets_transactional_commits == ALL_COMMIT:
        return None
    if group is None:
        _check_without_group(shard, command, epoch)
        return None
    if epoch < 0 and group.member_count == 0:
        return None
    if names_nobody:
        raise UnknownMemberId(
            f"Group {group.group_id} is not empty: only its members may commit offsets."
        )
    member = group.member(command.member_id)
    if member is None or member.is_reserved:
        raise UnknownMemberId(
            f"Member {command.member_id} is not a member of group {command.group_id}."
        )
    if epoch > member.member_epoch:
        raise IllegalGeneration(
            f"Received member epoch {epoch} is newer than current member epoch "
            f"{member.member_epoch}."
        )
    if epoch == member.member_epoch:
        check = compute_reset_check(shard, group, member) if shard.resets else None
    else:
        check = compute_assignment_epoch_check(group, member, epoch)
    if check is None:
        return None
    checked = check

    def check_partition(topic: Topic, partition: int) -> None:
        try:
            checked(topic, partition)
        except StaleMemberEpoch as stale:
            # Transactional producers do not know STALE_MEMBER_EPOCH.
            raise IllegalGeneration(stale.message) from None

    return check_partition


def _commit_topic(
    shard: Shard,
    command: TxnOffsetCommit,
    now: Now,
    wanted: TopicOffsets,
    topic: Topic,
    check: CheckPartition | None,
    *,
    records: list[Record],
) -> TopicResult:
    """Collect the records of one topic in ``records``; returns the results of its partitions.

    As in Kafka, the records have no topic id: TxnOffsetCommit has topic names only.
    """
    limit = shard.settings.offset_metadata_max_bytes
    results = []
    for partition, offset, leader_epoch, metadata in wanted.offsets.rows():
        error = compute_partition_error(topic, partition, metadata, limit)
        if error is not ErrorCode.NONE:
            results.append(PartitionResult(partition, error))
            continue
        if check is not None:
            check(topic, partition)
        key = OffsetCommitKey(command.group_id, topic.name, partition)
        value = OffsetCommitValue(offset, leader_epoch, metadata, now.wall_ms)
        records.append(Record(key, value))
        results.append(COMMITTED[partition])
    return TopicResult(topic.name, topic.topic_id, tuple(results))


def handle_write_txn_markers(shard: Shard, command: WriteTxnMarkers, now: Now) -> Outcome:
    """End the producer's transaction in this log partition, whether or not one is open.

    The transaction coordinator retries until it gets a response.
    """
    check_marker(shard, command)
    marker = TransactionMarker(
        command.producer_id, command.producer_epoch, command.coordinator_epoch, command.committed
    )
    side = compute_state_after_marker(shard, command, now.wall_ms)
    return Outcome(response=Done(), side=side, transaction=marker)


def handle_abort_transaction(shard: Shard, command: AbortTransaction, now: Now) -> Outcome:
    """Abort a transaction that timed out, if it still is open; its pending offsets are dropped.

    It follows Kafka's ``TransactionCoordinator.abortTimedOutTransactions``.
    """
    producer_id = command.producer_id
    transaction = shard.open_transactions.get(producer_id)
    if transaction is None or transaction.since_ms != command.since_ms:
        return Outcome(response=Done())
    epochs = transaction.group_epochs()
    state = shard.producers.get(producer_id)
    coordinator_epoch = 0 if state is None else max(state.coordinator_epoch, 0)
    marker_epoch = compute_next_epoch(max(epochs.values()))
    return Outcome(
        response=Done(),
        side=compute_state_after_abort(shard, producer_id, epochs, now.wall_ms),
        transaction=TransactionMarker(
            producer_id, marker_epoch, coordinator_epoch, committed=False
        ),
    )


def compute_stable_answer(
    answer: OffsetFetchResponse, unstable: Collection[OffsetPlace]
) -> OffsetFetchResponse:
    """The response to a fetch of stable offsets: UNSTABLE_OFFSET_COMMIT for pending ones (O13)."""
    if not unstable:
        return answer
    return replace(
        answer,
        topics=tuple(
            topic
            if topic.name is None
            else replace(
                topic,
                partitions=tuple(
                    FetchedOffset(row.partition, -1, None, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
                    if (topic.name, row.partition) in unstable and row.error is ErrorCode.NONE
                    else row
                    for row in topic.partitions
                ),
            )
            for topic in answer.topics
        ),
    )
