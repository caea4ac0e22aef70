"""Deletes groups and offsets at run time; the store knows which offsets exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import structlog

from coordinator.core.groups.group_deletion import (
    check_delete_group,
    check_delete_offsets,
    check_not_being_deleted,
    compute_offset_tombstones,
    handle_delete_group,
    handle_delete_offsets,
    handle_give_group_up,
)
from coordinator.core.replay.offset_records import replay_no_offsets
from coordinator.core.state.open_transactions import OffsetPlace
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.loop.slices import Steps
from coordinator.runtime.offsets.offset_reads import encode_offset_group_prefix, fits_in_key
from model.commands.command import DeletionCommand
from model.commands.groups import DeleteGroup
from model.commands.offsets import DeleteOffsets
from model.commands.places import GiveGroupUp
from model.errors import GroupError, UnknownServerError
from model.ids import GroupId, TopicName
from model.log.records import OffsetCommitKey
from model.responses.offsets import OffsetDeleteResponse, PartitionResult, TopicResult
from model.responses.response import Done
from storage.codec.record_codec import decode_key, encode_key
from storage.log_store import StoreError

log = structlog.get_logger()


SLICE = 1_000
"""Offsets of a group deleted per iteration, each in some 5 µs.

A group with fewer is deleted in one batch with its offsets.
"""


class OffsetDeletion:
    """Carries out the commands. ``apply`` applies a command's outcome."""

    def __init__(
        self,
        context: ShardContext,
        *,
        apply: Callable[[Shard, DeletionCommand, Outcome, Reply], None],
    ) -> None:
        self._context = context
        self._apply = apply

    def submit(self, command: DeletionCommand, reply: Reply) -> None:
        """Handle, replay and gather a command; the response is sent when it is durable."""
        group_ids = (command.group_id,)
        self._context.slices.run(
            self._delete(command, reply),
            lambda bug: self._context.answer(group_ids, reply, UnknownServerError(repr(bug))),
        )

    def _delete(self, command: DeletionCommand, reply: Reply) -> Steps[None]:
        group_id = command.group_id
        shard = self._context.shard_of(group_id)
        try:
            if isinstance(command, DeleteOffsets):
                outcome = yield from self._delete_offsets(shard, command)
            else:
                outcome = yield from self._delete_group(shard, command)
            self._context.check_space(outcome)
        except GroupError as error:
            self._context.answer((group_id,), reply, error)
            return
        except StoreError as damage:
            log.critical("store_read_failed", group_id=group_id, cause=str(damage))
            failure = UnknownServerError("The offsets cannot be read; see the server's log.")
            self._context.answer((group_id,), reply, failure)
            return

        def answer_and_forget(answer: Answer) -> None:
            try:
                self.forget_if_offsetless(group_id)
            finally:
                reply(answer)

        if not outcome.records and isinstance(command, DeleteGroup):
            assert outcome.response is not None
            generation = self._context.durability.generation_of_offsets(group_id)
            self._context.writer.answer_when_durable(
                generation, answer_and_forget, outcome.response
            )
            return
        self._apply(shard, command, outcome, answer_and_forget)

    def _delete_group(self, shard: Shard, command: DeleteGroup | GiveGroupUp) -> Steps[Outcome]:
        group_id = command.group_id
        if isinstance(command, DeleteGroup):
            check_delete_group(shard, group_id)
        check_not_being_deleted(shard, group_id)
        try:
            if isinstance(command, GiveGroupUp) or not command.validate_only:
                yield from self._delete_very_many(shard, command)
            return self._handle(shard, command)
        finally:
            shard.soft.being_deleted.discard(group_id)

    def _delete_very_many(self, shard: Shard, command: DeleteGroup | GiveGroupUp) -> Steps[None]:
        """Delete the group's offsets in slices, if one batch of them would block the loop for long.

        No member can join meanwhile; offsets committed meanwhile are deleted with the group. A
        crash leaves the group with the offsets not yet deleted.
        """
        group_id = command.group_id
        self._context.writer.check_written()
        places = self._scan(shard, group_id)
        left = list(islice(places, SLICE + 1))
        if len(left) <= SLICE:
            return
        shard.soft.being_deleted.add(group_id)
        while len(left) > SLICE:
            outcome = compute_offset_tombstones(group_id, left[:SLICE])
            self._context.check_space(outcome)
            self._apply(shard, command, outcome, _ignore)
            self._context.writer.write_if_full()
            yield
            left = [*left[SLICE:], *islice(places, SLICE)]

    def _delete_offsets(self, shard: Shard, command: DeleteOffsets) -> Steps[Outcome]:
        """Delete the offsets in parts; returns the last part's outcome, with the response for all.

        The earlier parts are already gathered. If one part is refused, the earlier ones stay
        deleted.
        """
        topics: list[TopicResult] = []
        rows: list[PartitionResult] = []
        before: Outcome | None = None
        for part in _split(command.topics):
            if before is not None:
                self._context.check_space(before)
                self._apply(shard, command, replace(before, response=Done()), _ignore)
                self._context.writer.write_if_full()
                yield
            asked = tuple((command.topics[index][0], partitions) for index, partitions in part)
            outcome = self._handle(shard, replace(command, topics=asked))
            assert isinstance(outcome.response, OffsetDeleteResponse)
            for (index, _), result in zip(part, outcome.response.topics, strict=True):
                if index < len(topics):
                    # The previous part has the first partitions of this topic.
                    rows += result.partitions
                    topics[index] = replace(result, partitions=tuple(rows))
                else:
                    topics.append(result)
                    rows = list(result.partitions)
            before = outcome
        assert before is not None, "there is at least one part"
        return replace(before, response=OffsetDeleteResponse(tuple(topics)))

    def _handle(self, shard: Shard, command: DeletionCommand) -> Outcome:
        group_id = command.group_id
        match command:
            case DeleteGroup():
                check_delete_group(shard, group_id)
                return handle_delete_group(shard, command, self._find_all(shard, group_id))
            case GiveGroupUp():
                offsets, now = self._find_all(shard, group_id), self._context.clock.now()
                return handle_give_group_up(shard, command, offsets, now)
            case DeleteOffsets():
                check_delete_offsets(shard, group_id)
                return handle_delete_offsets(shard, command, self._find(shard, command))

    def _find_all(self, shard: Shard, group_id: GroupId) -> list[OffsetPlace]:
        """All offsets of the group, including unreadable ones and ones pending in a transaction."""
        self._context.writer.check_written()
        places = dict.fromkeys(self._scan(shard, group_id))
        places.update(dict.fromkeys(shard.open_transactions.unstable(group_id)))
        return list(places)

    def _scan(self, shard: Shard, group_id: GroupId) -> Iterator[OffsetPlace]:
        """The offsets that the store shows now."""
        for entry in self._context.store.latest(
            shard.partition, encode_offset_group_prefix(group_id)
        ):
            key = decode_key(entry.key)
            assert isinstance(key, OffsetCommitKey), "the prefix selects offset keys"
            yield key.topic, key.partition

    def _find(self, shard: Shard, command: DeleteOffsets) -> set[OffsetPlace]:
        """The requested offsets that exist."""
        self._context.writer.check_written()
        places: list[tuple[TopicName, int]] = [
            (name, partition)
            for name, partitions in command.topics
            if fits_in_key(name)
            for partition in dict.fromkeys(partitions)
            if partition >= 0
        ]
        keys = [encode_key(OffsetCommitKey(command.group_id, *place)) for place in places]
        found = self._context.store.get_many_latest(shard.partition, keys)
        return {
            *(place for place, entry in zip(places, found, strict=True) if entry is not None),
            *shard.open_transactions.unstable(command.group_id),
        }

    def forget_if_offsetless(self, group_id: GroupId) -> None:
        """Mark a group that lost offsets as having none, if the store shows none."""
        if (
            self._context.durability.offsets.get(group_id, 0)
            > self._context.writer.syncs.durable_generation
        ):
            # The store may not show the latest write yet. If that is a tombstone, its answer calls
            # this again.
            return
        shard = self._context.shard_of(group_id)
        prefix = encode_offset_group_prefix(group_id)
        if not self._context.store.has_latest(shard.partition, prefix):
            replay_no_offsets(shard, group_id)


def _split(
    topics: Sequence[tuple[TopicName, tuple[int, ...]]],
) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
    """Split the request into one or more parts of ``SLICE`` partitions, by topic index."""
    part: list[tuple[int, tuple[int, ...]]] = []
    left = SLICE
    for index, (_, partitions) in enumerate(topics):
        # A topic without partitions costs as much as one partition.
        for begin in range(0, max(len(partitions), 1), SLICE):
            taken = partitions[begin : begin + SLICE]
            if left < max(len(taken), 1):
                yield part
                part, left = [], SLICE
            part.append((index, taken))
            left -= max(len(taken), 1)
    yield part


def _ignore(answer: Answer) -> None:
    """Only the last part's answer reaches the client."""
