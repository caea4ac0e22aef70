"""What is remembered of commits, markers, fetches and deletions until they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.runtime.api import Answer
from model.commands.groups import DeleteGroup
from model.commands.offsets import DeleteOffsets, OffsetCommit, OffsetFetch
from model.commands.transactions import TxnOffsetCommit
from model.errors import ErrorCode
from model.ids import compute_log_partition
from model.responses.offsets import OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse
from model.responses.response import Done
from tests.sim.checkers.log_checkers import DurableFacts
from tests.sim.checkers.offset_model import (
    LOG_PARTITIONS,
    NO_OFFSET,
    OffsetModel,
    OffsetPlace,
    Taken,
    Transaction,
)
from tests.sim.checkers.violations import check

if TYPE_CHECKING:
    from coordinator.core.state.shard import Shard


class TakenCommit(NamedTuple):
    """``was_ended`` is the transaction of it that was over before the server took it."""

    place: OffsetPlace
    taken: Taken
    was_ended: Transaction | None


class TakenFetch(NamedTuple):
    bounds: tuple[int, int]
    must_be_unstable: bool
    may_be_unstable: bool


class OffsetAnswers:
    """S11, S15 to S17, S19 and S20 of what is answered."""

    def __init__(self, facts: DurableFacts, offsets: OffsetModel) -> None:
        self.facts = facts
        self.offsets = offsets

    # --------------------------------------------------------------------------------- commits

    def begin_commit(self, command: OffsetCommit | TxnOffsetCommit) -> list[TakenCommit]:
        partition = compute_log_partition(command.group_id, LOG_PARTITIONS)
        found = []
        for topic in command.topics:
            for number, offset, _, _ in topic.offsets.rows():
                place = (command.group_id, str(topic.name), number)
                transaction = self.offsets.transaction_of(offset)
                is_over = transaction is not None and transaction.is_over(place[0], partition)
                taken = self.offsets.note_taken(place, offset)
                found.append(TakenCommit(place, taken, transaction if is_over else None))
        return found

    def end_commit(
        self, command: OffsetCommit | TxnOffsetCommit, begun: list[TakenCommit], answer: Answer
    ) -> None:
        accepted: set[tuple[str, int]] = set()
        if isinstance(answer, OffsetCommitResponse):
            accepted = {
                (str(topic.name), result.partition)
                for topic in answer.topics
                for result in topic.partitions
                if result.error is ErrorCode.NONE
            }
        for place, taken, was_ended in begun:
            is_accepted = place[1:] in accepted
            self.offsets.note_answered(place, taken, is_accepted)
            check(
                was_ended is None or not is_accepted,
                "S16",
                lambda over=was_ended: f"{command} was accepted after the end of {over}",  # type: ignore[misc]
            )
        known = self.facts.pending if isinstance(command, TxnOffsetCommit) else self.facts.offsets
        for topic in command.topics:
            for partition, offset, _, _ in topic.offsets.rows():
                if (str(topic.name), partition) in accepted:
                    place = (command.group_id, str(topic.name), partition)
                    durable = offset in known[place]
                    check(durable, "S11", f"{place} at {offset} is not durable")

    # --------------------------------------------------------------------------------- fetches

    def begin_fetch(self, command: OffsetFetch) -> dict[OffsetPlace, TakenFetch]:
        assert command.topics is not None
        partition = compute_log_partition(command.group_id, LOG_PARTITIONS)
        return {
            place: TakenFetch(
                self.offsets.bounds(place),
                self.offsets.must_be_unstable(place, partition),
                self.offsets.may_be_unstable(place, partition),
            )
            for topic in command.topics
            for number in topic.partitions
            if (place := (command.group_id, str(topic.name), number))
        }

    def end_fetch(
        self,
        command: OffsetFetch,
        begun: dict[OffsetPlace, TakenFetch],
        answer: OffsetFetchResponse,
    ) -> None:
        for topic in answer.topics:
            for fetched in topic.partitions:
                place = (command.group_id, str(topic.name), fetched.partition)
                taken = begun[place]
                is_unstable = fetched.error is ErrorCode.UNSTABLE_OFFSET_COMMIT
                if command.require_stable:
                    check(
                        is_unstable or not taken.must_be_unstable,
                        "S16",
                        f"{place} is told as stable, and waits for a marker",
                    )
                allowed = command.require_stable and taken.may_be_unstable
                check(allowed or not is_unstable, "S16", f"{place} is said to be unstable")
                if is_unstable:
                    continue
                self.offsets.check(place, taken.bounds, fetched.offset, "fetch")
                if fetched.offset != NO_OFFSET:
                    durable = self.facts.is_visible(place, fetched.offset)
                    check(durable, "S11", f"{place} shows {fetched.offset}, not durable")

    # ------------------------------------------------------------------------------- deletions

    def begin_deletion(self, command: DeleteGroup | DeleteOffsets, shard: Shard) -> Any:
        """``True`` beside it where somebody is in the group, or subscribes to the topic."""
        group = shard.consumer_groups.get(command.group_id)
        if isinstance(command, DeleteGroup):
            places = [place for place in self.offsets.places() if place[0] == command.group_id]
            is_held = group is not None and group.member_count > 0
        else:
            ((name, partitions),) = command.topics
            places = [(command.group_id, str(name), number) for number in partitions]
            is_held = group is not None and name in group.subscribed_topic_names()
        return self.offsets.note_deleting(places), is_held

    def end_deletion(
        self, command: DeleteGroup | DeleteOffsets, begun: Any, answer: Answer
    ) -> None:
        deleting, is_held = begun
        is_deleted = isinstance(answer, Done)
        if isinstance(answer, OffsetDeleteResponse):
            (topic,) = answer.topics
            codes = {row.error for row in topic.partitions}
            is_deleted = codes == {ErrorCode.NONE}
            if not is_deleted and ErrorCode.NONE in codes:
                # Some of the partitions do not exist: which are gone is of no matter.
                return
        check(not (is_deleted and is_held), "S19", lambda: f"{command} was carried out")
        if is_deleted:
            self.offsets.note_deleted(deleting)
        else:
            self.offsets.note_kept(deleting)
