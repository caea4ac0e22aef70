"""Runs offset commands other than plain commits: fetches, and the commands of transactions."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from coordinator.core.offsets.deleted_topics import DeletedTopics
from coordinator.core.offsets.offset_fetch import check_offset_fetch
from coordinator.core.offsets.transactions import compute_stable_answer
from coordinator.core.state.open_transactions import OpenTransaction
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.dispatch.command_table import COMMANDS
from coordinator.runtime.api import Reply
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.loop.slices import Steps
from coordinator.runtime.offsets.offset_reads import read_offsets, read_open_transactions
from model.commands.command import TransactionCommand
from model.commands.offsets import OffsetFetch
from model.commands.transactions import ListTransactions, TxnOffsetCommit
from model.errors import GroupError, NotCoordinator, UnknownServerError
from model.ids import GroupId
from model.log.transaction_records import TransactionMarker
from model.responses.transactions import ListedTransaction, ListTransactionsResponse
from model.topics import TopicImage
from storage.log_store import StoreError

log = structlog.get_logger()

TRANSACTIONS_SLICE = 100
"""Open transactions read per iteration, each in some 20 µs if it has few offsets."""


class OffsetCommands:
    """Carries out the commands.

    ``image`` gives the durable topic image, ``deleted`` the topics whose offsets must not be shown.
    ``apply`` applies a command's outcome and takes the groups that its response shows.
    ``times_out_ms`` gives the wall time at which a transaction is aborted.
    """

    def __init__(
        self,
        context: ShardContext,
        *,
        image: Callable[[], TopicImage],
        deleted: Callable[[], DeletedTopics],
        apply: Callable[[Shard, Outcome, tuple[GroupId, ...], Reply], None],
        times_out_ms: Callable[[OpenTransaction], int],
    ) -> None:
        self._context = context
        self._image = image
        self._deleted = deleted
        self._apply = apply
        self._times_out_ms = times_out_ms
        self._has_unwritten_marker = False

    # ------------------------------------------------------------------------------ fetches

    def fetch(self, command: OffsetFetch, reply: Reply) -> None:
        """Read offsets from the store; the response is sent when everything it shows is durable."""
        group_ids = (command.group_id,)
        self._context.slices.run(
            self._fetch(command, reply),
            lambda bug: self._context.answer(group_ids, reply, UnknownServerError(repr(bug))),
        )

    def _fetch(self, command: OffsetFetch, reply: Reply) -> Steps[None]:
        group_id = command.group_id
        shard = self._context.shard_of(group_id)
        try:
            known = check_offset_fetch(shard, command)
            self._write_markers()
            has_offsets = known and group_id in shard.offset_groups
            # The response shows the state of this moment, though the read may take several
            # iterations.
            unstable = frozenset(shard.open_transactions.unstable(group_id))
            generation = self._context.durability.generation_of_offsets(group_id)
            answer = yield from read_offsets(
                self._context.store,
                shard.partition,
                self._image(),
                command,
                has_offsets,
                self._deleted(),
            )
        except GroupError as error:
            self._context.answer((group_id,), reply, error)
            return
        except StoreError as damage:
            log.critical("store_read_failed", group_id=group_id, cause=str(damage))
            failure = UnknownServerError("The offsets cannot be read; see the server's log.")
            self._context.answer((group_id,), reply, failure)
            return
        if command.require_stable:
            answer = compute_stable_answer(answer, unstable)
        self._context.writer.answer_when_durable(generation, reply, answer)

    def _write_markers(self) -> None:
        """Write gathered markers, so that the store shows every offset they committed.

        Otherwise a fetch could report an offset as stable with its value from before the
        transaction.
        """
        if self._has_unwritten_marker:
            self._context.writer.check_written()
            self._has_unwritten_marker = False

    # ------------------------------------------------------------------------- transactions

    def change(self, command: TransactionCommand, reply: Reply) -> None:
        """Handle, replay and gather a command; the response is sent when it is durable."""
        groups = (command.group_id,) if isinstance(command, TxnOffsetCommit) else ()
        try:
            shard, outcome = self._handle(command)
            self._context.check_space(outcome)
        except GroupError as error:
            self._context.answer(groups, reply, error)
            return
        except Exception as bug:
            log.exception("handling_failed", groups=groups, command=type(command).__name__)
            self._context.answer(groups, reply, UnknownServerError(repr(bug)))
            return
        if isinstance(outcome.transaction, TransactionMarker):
            self._has_unwritten_marker = True
        self._apply(shard, outcome, groups, reply)

    def list_transactions(self, command: ListTransactions, reply: Reply) -> None:
        """Read the open transactions from the store; the response waits until they are durable."""
        self._context.slices.run(
            self._list_transactions(reply),
            lambda bug: self._context.answer((), reply, UnknownServerError(repr(bug))),
        )

    def _list_transactions(self, reply: Reply) -> Steps[None]:
        found: list[ListedTransaction] = []
        try:
            for shard in self._context.shards:
                self._context.writer.check_written()
                for listed in read_open_transactions(
                    self._context.store, shard, self._times_out_ms
                ):
                    found.append(listed)
                    if len(found) % TRANSACTIONS_SLICE == 0:
                        yield
                        self._context.writer.check_written()
        except GroupError as error:
            self._context.answer((), reply, error)
            return
        except StoreError as damage:
            log.critical("store_read_failed", cause=str(damage))
            failure = UnknownServerError("The transactions cannot be read; see the server's log.")
            self._context.answer((), reply, failure)
            return
        generation = self._context.durability.generation_of_all()
        self._context.writer.answer_when_durable(
            generation, reply, ListTransactionsResponse(tuple(found))
        )

    def _handle(self, command: TransactionCommand) -> tuple[Shard, Outcome]:
        shard = self._find_shard(command)
        handler = COMMANDS[type(command)].handler
        assert handler is not None
        return shard, handler(shard, command, self._context.clock.now())

    def _find_shard(self, command: TransactionCommand) -> Shard:
        if isinstance(command, TxnOffsetCommit):
            return self._context.shard_of(command.group_id)
        if not 0 <= command.partition < len(self._context.shards):
            raise NotCoordinator(f"There is no log partition {command.partition}.")
        return self._context.shards[command.partition]
