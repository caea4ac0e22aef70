"""The shell of offsets but for plain commits: fetches, and the commands of transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from coordinator.core.offsets.deleted_topics import DeletedTopics
from coordinator.core.offsets.offset_fetch import check_offset_fetch
from coordinator.core.offsets.producers import handle_expire_producers
from coordinator.core.offsets.transactions import (
    compute_stable_answer,
    handle_abort_transaction,
    handle_txn_offset_commit,
    handle_write_txn_markers,
)
from coordinator.core.state.open_transactions import OpenTransaction
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.dispatch.checks import check_group_id_size
from coordinator.runtime.api import Reply
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.commit.durability import Durability
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loop.slices import Slices, Steps
from coordinator.runtime.offsets.offset_reads import read_offsets, read_open_transactions
from model.commands import (
    AbortTransaction,
    ExpireProducers,
    OffsetFetch,
    TransactionCommand,
    TxnOffsetCommit,
    WriteTxnMarkers,
)
from model.errors import GroupError, NotCoordinator, UnknownServerError
from model.ids import GroupId, compute_log_partition
from model.log.transaction_records import TransactionMarker
from model.responses import ListedTransaction, ListTransactionsResponse
from model.topics import TopicImage
from storage.log_store import LogStore, StoreError

log = structlog.get_logger()

TRANSACTIONS_SLICE = 100
"""Open transactions that are read in one turn, each in some 20 µs where it has few offsets."""


class OffsetCommands:
    """Carries out the commands. ``image`` gives the topics that are durable, ``deleted`` those
    whose offsets nobody is to see.

    ``check_space`` raises where nothing may be written; ``answer_error`` answers when what an
    error shows of these groups is durable; ``apply`` applies what a command comes to, whose answer
    shows these groups; ``times_out_ms`` gives the wall time at which a transaction is aborted.
    """

    def __init__(
        self,
        store: LogStore,
        shards: Sequence[Shard],
        writer: Writer,
        durability: Durability,
        clock: SteadyClock,
        slices: Slices,
        *,
        image: Callable[[], TopicImage],
        deleted: Callable[[], DeletedTopics],
        check_space: Callable[[Outcome], None],
        answer_error: Callable[[tuple[GroupId, ...], Reply, GroupError], None],
        apply: Callable[[Shard, Outcome, tuple[GroupId, ...], Reply], None],
        times_out_ms: Callable[[OpenTransaction], int],
    ) -> None:
        self._store = store
        self._shards = shards
        self._image = image
        self._deleted = deleted
        self._writer = writer
        self._durability = durability
        self._clock = clock
        self._slices = slices
        self._check_space = check_space
        self._answer_error = answer_error
        self._apply = apply
        self._times_out_ms = times_out_ms
        self._has_unwritten_marker = False

    # ------------------------------------------------------------------------------ fetches

    def fetch(self, command: OffsetFetch, reply: Reply) -> None:
        """Read from the store; the answer comes when what it shows is durable."""
        group_ids = (command.group_id,)
        self._slices.run(
            self._fetch(command, reply),
            lambda bug: self._answer_error(group_ids, reply, UnknownServerError(repr(bug))),
        )

    def _fetch(self, command: OffsetFetch, reply: Reply) -> Steps[None]:
        group_id = command.group_id
        shard = self._shard_of(group_id)
        try:
            known = check_offset_fetch(shard, command)
            self._write_markers()
            has_offsets = known and group_id in shard.offset_groups
            # What the answer shows is that of now, though it may be read in later turns.
            unstable = frozenset(shard.open_transactions.unstable(group_id))
            generation = self._durability.generation_of_offsets(group_id)
            answer = yield from read_offsets(
                self._store, shard.partition, self._image(), command, has_offsets, self._deleted()
            )
        except GroupError as error:
            self._answer_error((group_id,), reply, error)
            return
        except StoreError as damage:
            log.critical("store_read_failed", group_id=group_id, cause=str(damage))
            failure = UnknownServerError("The offsets cannot be read; the server's log says why.")
            self._answer_error((group_id,), reply, failure)
            return
        if command.require_stable:
            answer = compute_stable_answer(answer, unstable)
        self._writer.answer_when_durable(generation, reply, answer)

    def _write_markers(self) -> None:
        """See to it that the store shows what every marker made visible.

        A fetch must not see an offset as stable, and yet as it was before the transaction.
        """
        if self._has_unwritten_marker:
            self._writer.check_written()
            self._has_unwritten_marker = False

    def _shard_of(self, group_id: GroupId) -> Shard:
        return self._shards[compute_log_partition(group_id, len(self._shards))]

    # ------------------------------------------------------------------------- transactions

    def change(self, command: TransactionCommand, reply: Reply) -> None:
        """Handle, replay and gather; the answer comes when it is durable."""
        groups = (command.group_id,) if isinstance(command, TxnOffsetCommit) else ()
        try:
            shard, outcome = self._handle(command)
            self._check_space(outcome)
        except GroupError as error:
            self._answer_error(groups, reply, error)
            return
        except Exception as bug:
            log.exception("handling_failed", groups=groups, command=type(command).__name__)
            self._answer_error(groups, reply, UnknownServerError(repr(bug)))
            return
        if isinstance(outcome.transaction, TransactionMarker):
            self._has_unwritten_marker = True
        self._apply(shard, outcome, groups, reply)

    def list_transactions(self, reply: Reply) -> None:
        """Read from the store what waits; the answer comes when what it shows is durable."""
        self._slices.run(
            self._list_transactions(reply),
            lambda bug: self._answer_error((), reply, UnknownServerError(repr(bug))),
        )

    def _list_transactions(self, reply: Reply) -> Steps[None]:
        found: list[ListedTransaction] = []
        try:
            for shard in self._shards:
                self._writer.check_written()
                for listed in read_open_transactions(self._store, shard, self._times_out_ms):
                    found.append(listed)
                    if len(found) % TRANSACTIONS_SLICE == 0:
                        yield
                        self._writer.check_written()
        except GroupError as error:
            self._answer_error((), reply, error)
            return
        except StoreError as damage:
            log.critical("store_read_failed", cause=str(damage))
            failure = UnknownServerError("What waits cannot be read; the server's log says why.")
            self._answer_error((), reply, failure)
            return
        generation = self._durability.generation_of_all()
        self._writer.answer_when_durable(generation, reply, ListTransactionsResponse(tuple(found)))

    def _handle(self, command: TransactionCommand) -> tuple[Shard, Outcome]:
        match command:
            case TxnOffsetCommit():
                shard = self._shard_of(command.group_id)
                check_group_id_size(shard, command.group_id)
                return shard, handle_txn_offset_commit(shard, command, self._clock.now())
            case WriteTxnMarkers():
                if not 0 <= command.partition < len(self._shards):
                    raise NotCoordinator(f"There is no log partition {command.partition}.")
                shard = self._shards[command.partition]
                return shard, handle_write_txn_markers(shard, command, self._clock.now())
            case ExpireProducers():
                shard = self._shards[command.partition]
                return shard, handle_expire_producers(shard, command)
            case AbortTransaction():
                shard = self._shards[command.partition]
                return shard, handle_abort_transaction(shard, command, self._clock.now())
