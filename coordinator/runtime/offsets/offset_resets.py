"""Sets offsets of groups from outside at run time; the store knows which offsets there are."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from coordinator.core.offsets.offset_reset import check_reset, handle_reset_offsets
from coordinator.core.state.open_transactions import OffsetPlace
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.offsets.offset_reads import decode_stored_offsets
from model.commands.resets import ResetOffsets
from model.errors import GroupError, UnknownServerError
from model.ids import GroupId
from model.log.records import OffsetCommitKey
from storage.codec.record_codec import encode_key
from storage.log_store import StoreError

log = structlog.get_logger()


class OffsetResets:
    """Carries out the commands. ``apply`` applies a command's outcome.

    ``on_offsets_lost`` gets the groups of which an undo removed offsets.
    """

    def __init__(
        self,
        context: ShardContext,
        *,
        apply: Callable[[Shard, ResetOffsets, Outcome, Reply], None],
        on_offsets_lost: Callable[[GroupId], None],
    ) -> None:
        self._context = context
        self._apply = apply
        self._on_offsets_lost = on_offsets_lost

    def submit(self, command: ResetOffsets, reply: Reply) -> None:
        """Handle, replay and gather a command; the response is sent when it is durable."""
        group_id = command.group_id
        shard = self._context.shard_of(group_id)
        try:
            check_reset(shard, command)
            found = self._find(shard, command)
            outcome = handle_reset_offsets(shard, command, found, self._context.clock.now())
            self._context.check_space(outcome)
        except GroupError as error:
            self._context.answer((group_id,), reply, error)
            return
        except StoreError as damage:
            log.critical("store_read_failed", group_id=group_id, cause=str(damage))
            failure = UnknownServerError("The offsets cannot be read; see the server's log.")
            self._context.answer((group_id,), reply, failure)
            return
        except Exception as bug:
            log.exception("handling_failed", group_id=group_id, command=type(command).__name__)
            self._context.answer((group_id,), reply, UnknownServerError(repr(bug)))
            return

        def answer_and_forget(answer: Answer) -> None:
            try:
                self._on_offsets_lost(group_id)
            finally:
                reply(answer)

        lost = any(value is None for _, value in outcome.records)
        self._apply(shard, command, outcome, answer_and_forget if lost else reply)
        self._context.writer.write_if_full()

    def _find(self, shard: Shard, command: ResetOffsets) -> dict[OffsetPlace, int]:
        """The committed offsets of the partitions, in one look: nothing is committed meanwhile."""
        if command.before is None:
            return {}
        self._context.writer.check_written()
        keys = [
            encode_key(OffsetCommitKey(command.group_id, wanted.name, partition))
            for wanted in command.topics
            if wanted.name is not None
            for partition, _, _, _ in wanted.offsets.rows()
        ]
        entries = self._context.store.get_many_latest(shard.partition, keys)
        stored = decode_stored_offsets(entry for entry in entries if entry is not None)
        return {(each.topic, each.partition): each.value.offset for each in stored}
